"""An engine whose store is the test: it answers when it likes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sql import Catalog, Emission, Engine
from sql.engine.answers import answer
from sql.plan.lookup_plan import Refusal, Request


class LookupWorld:
    """An engine that asks for devices. `shown` turns emissions into what a test compares."""

    def __init__(self, shown: Callable[[Sequence[Emission]], list[Any]]) -> None:
        self.catalog = Catalog()
        self.catalog.requests = []
        self.engine = Engine(self.catalog)
        self.shown = shown

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the table of devices."""
        found: dict[str, int] = self.catalog.lookup_tables["device"].counts
        return found

    def push(self, now_ms: int, *devices: str | None, temp: float = 1.0) -> list[Any]:
        """Readings of these devices arrive."""
        rows = [{"dev": device, "temp": temp} for device in devices]
        return self.shown(self.engine.push("reading", rows, now_ms))

    def say(self, now_ms: int, device: str, *sites: str) -> list[Any]:
        """The store answers for a device."""
        rows = [{"id": device, "site": site} for site in sites]
        return self.shown(answer(self.engine, Request("device", ("id",), (device,)), rows, now_ms))

    def refuse(self, now_ms: int, device: str, reason: str) -> list[Any]:
        """The store refuses the request for a device."""
        return self.shown(answer(self.engine, Request("device", ("id",), (device,)), Refusal(reason), now_ms))

    def asked(self) -> list[Any]:
        """The keys that were asked for since this was called last."""
        assert self.catalog.requests is not None
        found = [request.key[0] for request in self.catalog.requests]
        self.catalog.requests.clear()
        return found

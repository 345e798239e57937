"""The base of what the engine hosts beside queries: by default it keeps nothing and has
nothing to do in time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from sql.algebra.event import Delta
from sql.emission import Emission
from sql.plan.logical import Plan
from sql.rows import as_dict


class Hosted(ABC):
    """Behaves like a query towards the engine."""

    steps_itself = False
    takes_lots = False

    def __init__(self, name: str, plan: Plan) -> None:
        self.name = name
        self.plan = plan

    def push_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Rows that another query gave out together arrive."""
        return self.push(stream, rows, now_ms)

    @abstractmethod
    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events arrive."""

    def arriving(self, stream: str, row: object, now_ms: int) -> None:
        """An event arrives: filters are evaluated before any statement has acted on it."""

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Named windows have changed."""
        return []

    def fill(self, *, posts: bool = False) -> list[Emission]:
        """Start from the present rows of named windows."""
        return []

    def advance(self, now_ms: int) -> list[Emission]:
        return []

    def next_deadline(self) -> int | None:
        return None

    def flush(self, now_ms: int) -> list[Emission]:
        return []

    def reject(self, row: object, why: str, now_ms: int) -> list[Emission]:
        return [Emission(self.name, now_ms, "error", [dict(as_dict(row))], (), why)]

    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        return [emission for emission in emissions if emission.kind != "rows"]

    def variable_changed(self, name: str) -> None:
        return None

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        return []

    def counters(self) -> dict[str, int]:
        return {}

    def terminate(self, now_ms: int) -> list[Emission]:
        """The context partition of the instance ends."""
        return []

    def retained(self) -> int:
        """The number of events held."""
        return 0

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        return None

"""A rule on an engine that can be thrown away between two steps: its state goes
through JSON into a new one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sql import Catalog, Engine, Plan
from tests.conformance.scenario import Drive
from tests.conformance.structs import StructEngine, new_engine, structs_of


def nobody(engine: Engine) -> None:
    """No rules are deployed beside the one that is looked at."""


class Restartable:
    """One rule. `prepare` makes a new catalog and plan, as a new process would."""

    def __init__(self, prepare: Callable[[], tuple[Catalog, Plan]], now_ms: int, drive: Drive) -> None:
        self.prepare = prepare
        self.drive = drive
        self.structs: dict[str, frozenset[str]] | None = {} if drive.structs else None
        self.engine = self._deployed(now_ms, None)
        if isinstance(self.engine, StructEngine):
            self.structs = structs_of(self.engine)
            self.engine = self._deployed(now_ms, None)

    def _deployed(self, now_ms: int, state: Any, guests: Callable[[Engine], None] = nobody) -> Engine:
        catalog, plan = self.prepare()
        engine = new_engine(catalog, structs=self.structs)
        guests(engine)
        engine.deploy("rule", plan, now_ms, state)
        return engine

    def restart(self, now_ms: int) -> None:
        """Save, discard, restore."""
        if self.drive.restarts:
            self.renew(now_ms)

    def renew(self, now_ms: int, guests: Callable[[Engine], None] = nobody) -> None:
        """Put the state into a new engine, in which `guests` deploys others before the rule."""
        state = json.loads(json.dumps(self.engine.snapshot("rule"), allow_nan=False))
        self.engine = self._deployed(now_ms, state, guests)

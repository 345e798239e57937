"""An engine that can be thrown away between two steps: its state goes through JSON into a new one."""

from __future__ import annotations

import json
from collections.abc import Callable

from sql import Catalog, Engine
from sql.plan.plan import Plan


class Restartable:
    """One rule on an engine. `prepare` makes a new catalog and plan, as a new process would."""

    def __init__(self, engine: Engine, prepare: Callable[[], tuple[Catalog, Plan]], *, restarts: bool) -> None:
        self.engine = engine
        self.prepare = prepare
        self.restarts = restarts

    def restart(self, now_ms: int) -> None:
        """Save, discard, restore."""
        if not self.restarts:
            return
        state = json.loads(json.dumps(self.engine.snapshot("rule"), allow_nan=False))
        catalog, plan = self.prepare()
        self.engine = Engine(catalog)
        self.engine.deploy("rule", plan, now_ms, state)

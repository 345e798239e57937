"""Runs one rule twice over the same steps and compares all it emits: in batches, and one by one with
restarts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from edge.intake.codecs.rows import row_class
from sql import Emission, Engine, RuleOptions, plan_rule
from tests.support.streams import catalog_of

PROCESSING_TIME = "CREATE STREAM m () WITH (DATASOURCE='m', FORMAT='json')"
EVENT_TIME = "CREATE STREAM m () WITH (DATASOURCE='m', FORMAT='json', TIMESTAMP='ts')"
COLUMNS = ("dev", "v", "n", "ts")

EXTREMES = {"lo", "hi"}

Step = tuple[int, list[dict[str, Any]]]
"""Time becomes so much (ms); then these events arrive, in one batch."""


class Run:
    """One engine with one rule."""

    def __init__(
        self, sql: str, *, event_time: bool, singly: bool = False, structs: bool = False, **options: Any
    ) -> None:
        self.catalog = catalog_of(EVENT_TIME if event_time else PROCESSING_TIME)
        self.plan = plan_rule(sql, self.catalog, RuleOptions(**options))
        self.singly = singly
        self.row: Any = (lambda row: row_class(COLUMNS)(**row)) if structs else dict
        self.shape: Any = "struct" if structs else "dict"
        self.now_ms = 0
        self.engine = self._engine(None)

    def _engine(self, state: dict[str, Any] | None) -> Engine:
        engine = Engine(self.catalog)
        engine.deploy("r", self.plan, self.now_ms, state, shape=self.shape, make_row=self.row)
        return engine

    def step(self, step: Step) -> list[Emission]:
        """Time passes, events arrive: in one batch, or one by one with a restart before each."""
        self.now_ms, events = step
        out = [*self.engine.advance(self.now_ms)]
        if not self.singly:
            return out + self.engine.push("m", [self.row(event) for event in events], self.now_ms)
        for event in events:
            self.restart()
            out += self.engine.push("m", [self.row(event)], self.now_ms)
        return out

    def restart(self) -> None:
        """The state goes through JSON into a new engine."""
        self.engine = self._engine(json.loads(json.dumps(self.engine.snapshot("r"))))


def compare(
    sql: str,
    steps: Sequence[Step],
    *,
    event_time: bool = False,
    structs: bool = False,
    restarts: bool = False,
    flush: bool = True,
    **options: Any,
) -> list[Emission]:
    """The emissions of the batches, after making sure that single events give and count exactly the same."""
    batched, single = (
        Run(sql, singly=choice, event_time=event_time, structs=structs, **options) for choice in (False, True)
    )
    everything: list[Emission] = []
    for number, step in enumerate(steps):
        if restarts:
            batched.restart()
        got, wanted = batched.step(step), single.step(step)
        assert shown(rows_first(got)) == shown(rows_first(wanted)), f"{sql}\nat step {number} {step}"
        everything += got
    if flush:
        got, wanted = [*batched.engine.flush(batched.now_ms)], [*single.engine.flush(single.now_ms)]
        assert shown(got) == shown(wanted), f"{sql}\nat the end"
        everything += got
    assert counted(batched.engine) == counted(single.engine)
    return everything


def rows_first(emissions: list[Emission]) -> list[Emission]:
    """The rows in order, then the errors: those of a batch follow its rows."""
    return [item for item in emissions if item.kind != "error"] + [
        item for item in emissions if item.kind == "error"
    ]


def shown(emissions: list[Emission]) -> list[str]:
    """Emissions as text: tells 1 from 1.0 and TRUE, and NaN equals NaN.

    Of two equal numbers, 0 and 0.0, either may be the least or greatest: events with a NULL
    are folded before others.
    """
    for emission in emissions:
        for row in (*emission.inserted, *emission.removed):
            for name in EXTREMES & row.keys():
                if row[name].__class__ is float and row[name].is_integer():
                    row[name] = int(row[name])
    return [repr(emission) for emission in emissions]


def counted(engine: Engine) -> dict[str, int]:
    """The counters that do not speak of how the state is kept."""
    return {
        name: count
        for name, count in engine.counters("r").items()
        if name not in ("retained", "division_by_zero")
    }

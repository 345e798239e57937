"""What the laws are tried on: random streams of events, and an engine to run them through.

Times are multiples of 250 ms, lengths of windows multiples of 500 ms: boundaries are
met exactly all the time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from sql import Emission, Engine, Plan, RuleOptions, parse, plan_rule
from sql.binder.contexts.context_binder import bind_context
from sql.syntax import CreateContext
from tests.support.streams import catalog_of

Step = dict[str, Any]

SCHEMA = "create schema E(id string, k string, v double, ts long, n int, f boolean)"
EVENT_TIME_DDL = (
    'CREATE STREAM E (id string, k string, v float, ts bigint, n bigint, f boolean) WITH (TIMESTAMP="ts")'
)
"""In event time the same stream, ordered by `ts`."""


@st.composite
def stream(draw: st.DrawFn, *, longest: int = 14) -> list[Step]:
    """Steps in order of time: the clock moves by 0 to 3 s, events arrive; their own time strays from it."""
    steps: list[Step] = []
    now = 0
    for number in range(draw(st.integers(1, longest))):
        if draw(st.booleans()):
            now += 250 * draw(st.integers(0, 12))
            steps.append({"advance": now})
        event = {
            "id": f"e{number}",
            "k": draw(st.sampled_from(["A", "B", None])),
            "v": draw(st.sampled_from([1.0, 2.5, 10.0, None])),
            "ts": max(0, now + 250 * draw(st.integers(-6, 4))),
            "n": draw(st.integers(1, 4)),
            "f": draw(st.booleans()),
        }
        steps.append({"send": "E", "event": event})
    return [*steps, {"advance": now + draw(st.sampled_from([500, 5000]))}]


class Run:
    """One query on an engine of its own, with what it has emitted."""

    def __init__(
        self, query: str, *, context: str = "", event_time: bool = False, late_tolerance_ms: int = 0
    ) -> None:
        """`context`: the declaration of the context C, which the query then names."""
        self.query = query
        self.context = context
        self.options = RuleOptions(event_time=event_time, late_tolerance_ms=late_tolerance_ms)
        self.ddl = EVENT_TIME_DDL if event_time else SCHEMA
        self.now = 0
        self.emissions: list[Emission] = []
        self.engine, self.plan = self._start()

    def _start(self, state: Any = None) -> tuple[Engine, Plan]:
        catalog = catalog_of(self.ddl)
        if self.context:
            (declared,) = parse(self.context)
            assert isinstance(declared, CreateContext)
            catalog.contexts["C"] = bind_context(declared, catalog, self.options, self.context)
        plan = plan_rule(self.query, catalog, self.options)
        engine = Engine(catalog)
        engine.deploy("rule", plan, self.now, state)
        return engine, plan

    def step(self, step: Step) -> Sequence[Emission]:
        """Do one step; what comes of it."""
        if "advance" in step:
            self.now = step["advance"]
            out: Sequence[Emission] = self.engine.advance(self.now)
        elif "flush" in step:
            out = self.engine.flush(self.now)
        else:
            out = self.engine.push("E", step.get("events") or [step["event"]], self.now)
        self.emissions += out
        return out

    def all(self, steps: list[Step]) -> Run:
        """Do all steps."""
        for step in steps:
            self.step(step)
        return self

    def restart(self) -> None:
        """Save as JSON, discard, restore."""
        state = json.loads(json.dumps(self.engine.snapshot("rule"), allow_nan=False))
        self.engine, self.plan = self._start(state)

    def posts(self) -> list[tuple[int, str, list[str], list[str]]]:
        """What was emitted, as text so that NaN equals NaN: rows of one emission in order,
        removed ones as a bag."""
        return [
            (out.at_ms, out.kind, list(map(repr, out.inserted)), sorted(map(repr, out.removed)))
            for out in self.emissions
        ]

    def merged(self) -> list[tuple[int, list[str], list[str]]]:
        """What was emitted by instant: how a batch of events is cut into posts is no part of the result."""
        instants: dict[int, tuple[list[str], list[str]]] = {}
        for out in self.emissions:
            inserted, removed = instants.setdefault(out.at_ms, ([], []))
            inserted += map(repr, out.inserted)
            removed += map(repr, out.removed)
        return [(at, inserted, sorted(removed)) for at, (inserted, removed) in instants.items()]


def together(steps: list[Step]) -> list[Step]:
    """The same steps with consecutive events in one push."""
    out: list[Step] = []
    for step in steps:
        if "event" in step and out and "events" in out[-1]:
            out[-1]["events"].append(step["event"])
        else:
            out.append({"send": "E", "events": [step["event"]]} if "event" in step else step)
    return out

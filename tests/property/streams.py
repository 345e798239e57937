"""What the laws are tried on: random streams of events, and queries over every window.

Times are multiples of 250 ms and lengths of windows multiples of 500 ms, so that boundaries are met exactly all the time.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from sql import Catalog, Emission, Engine, Plan, RuleOptions, parse, plan_rule

Step = dict[str, Any]

DDL = "create schema E(id string, k string, v double, ts long, n int, f boolean)"
EVENT_TIME_DDL = 'CREATE STREAM E (id string, k string, v float, ts bigint, n bigint, f boolean) WITH (TIMESTAMP="ts")'
"""In event time the same stream, ordered by `ts`."""

RETAINING = (
    "#length(3)", "#time(2 sec)", "#keepall", "#firstlength(2)", "#firsttime(2 sec)", "#unique(k)", "#firstunique(k)",
    "#lastevent", "#firstevent", "#ext_timed(ts, 2 sec)", "#sort(2, n desc)", "#sort(3, n, ts desc)", "#rank(k, 2, n)",
    "#time_accum(1 sec)", "#time_order(ts, 1 sec)", "#timetolive(ts)", "#expr(sum(n) < 8)",
    "#expr(newest_event.k = oldest_event.k)", "#length(2)#time(2 sec)", "#unique(k)#length(2)", "#sort(2, n)#time(1 sec)",
    "#time(2 sec)#firstunique(k)", "#length(2)#time(2 sec) retain-union", "#unique(k)#unique(n) retain-union",
    "#time(1 sec)#firstlength(3) retain-union", "#groupwin(k)#length(2)", "#groupwin(k)#time(2 sec)",
    "#groupwin(k)#sort(1, n)",
)  # fmt: skip
"""EPL windows that let events in at once."""

BATCHES = (
    "#length_batch(3)", "#time_batch(2 sec)", "#time_batch(1 sec, 500L)", '#time_batch(1 sec, "FORCE_UPDATE")',
    '#time_batch(1500 msec, "START_EAGER")', "#time_length_batch(2 sec, 3)", '#time_length_batch(1 sec, 2, "FORCE_UPDATE")',
    "#ext_timed_batch(ts, 2 sec)", "#ext_timed_batch(ts, 2 sec, 500L)", "#expr_batch(sum(n) > 5)", "#expr_batch(f, false)",
    "#unique(k)#length_batch(3)", "#time(2 sec)#length_batch(2)", "#groupwin(k)#time_batch(1 sec)",
    "#groupwin(k)#length_batch(2)",
)  # fmt: skip
"""EPL windows that post groups of events."""

SELECTS = (
    "select irstream * from E{}", "select irstream id, n from E(n > 1){} where v is not null",
    "select irstream sum(v) as s, count(*) as c, min(n) as lo, max(n) as hi, avg(v) as a from E{}",
    "select irstream id, sum(v) as s from E{}", "select irstream k, sum(n) as s, count(*) as c from E{} group by k",
    "select irstream id, k, count(v) as c from E{} where n < 4 group by k having count(*) > 1",
    "select rstream id from E{}", "select first(id) as a, last(id) as z, count(distinct k) as d from E{}",
    "select irstream id, prior(1, id) as p from E{}",
)  # fmt: skip

GROUP_WINDOWS = (
    "TUMBLINGWINDOW(ss, 2)", "TUMBLINGWINDOW(ms, 1500)", "HOPPINGWINDOW(ss, 3, 1)", "HOPPINGWINDOW(ss, 1, 2)",
    "SLIDINGWINDOW(ss, 1)", "SLIDINGWINDOW(ss, 2) OVER(WHEN n > 2)", "SLIDINGWINDOW(ss, 1, 1)", "SESSIONWINDOW(ss, 3, 1)",
    "COUNTWINDOW(3)", "COUNTWINDOW(3, 1)", "COUNTWINDOW(4, 2)", "STATEWINDOW(n > 3, n < 2)", "STATEWINDOW(f)",
    "TUMBLINGWINDOW(ss, 2) FILTER(WHERE n > 1) OVER(PARTITION BY k)", "SESSIONWINDOW(ss, 2, 1) OVER(PARTITION BY k)",
    "SLIDINGWINDOW(ss, 1) OVER(PARTITION BY k WHEN f)", "COUNTWINDOW(2) FILTER(WHERE v IS NOT NULL) OVER(PARTITION BY k)",
    "HOPPINGWINDOW(ss, 2, 1) OVER(PARTITION BY k)",
)  # fmt: skip
"""eKuiper windows."""

GROUP_SELECTS = (
    "SELECT * FROM E GROUP BY {}", "SELECT id, n FROM E WHERE n > 1 GROUP BY {} ORDER BY n DESC, id LIMIT 2",
    "SELECT count(*) AS c, sum(v) AS s, avg(v) AS a, collect(id) AS ids, window_start() AS ws, window_end() AS we "
    "FROM E GROUP BY {}",
    "SELECT k, count(v) AS c, min(n) AS lo, max(n) AS hi FROM E WHERE f OR n > 1 GROUP BY k, {} HAVING count(*) > 1",
)  # fmt: skip

LOTS = (
    "", "within 1.5", "retain 2", "within 2.0 retain 2", "retain all", "within 1.5 every 1.0", "within 0.5 every 1.0",
    "within 2.0 every 0.5 retain 2", "retain 3 every 2", "retain 2 every 3", "retain 3 with unique e.k",
    "within 2.0 with unique e.k", "within 2.0 every 1.0 with unique e.k", "partition by e.k retain 2",
    "partition by e.k retain 2 every 2",
)  # fmt: skip
"""Windows of stream queries."""

LOT_SELECTS = (
    "from e in E {} select e.id", "from e in E {} where e.n > 1 select e.id", "from e in E {} select rstream e.id",
    "from e in E {} select sum(e.v)", "from e in E {} group by e.k select count(e.v)",
    "from e in E {} having count() > 1 select count()",
)  # fmt: skip


def lot_queries() -> list[str]:
    """All of them, but the combination the language refuses."""
    return [select.format(window) for window in LOTS for select in LOT_SELECTS
            if not (window == "retain all" and "rstream" in select)]  # fmt: skip


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

    def __init__(self, query: str, *, event_time: bool = False, late_tolerance_ms: int = 0) -> None:
        self.query = query
        self.options = RuleOptions(event_time=event_time, late_tolerance_ms=late_tolerance_ms)
        self.ddl = EVENT_TIME_DDL if event_time else DDL
        self.now = 0
        self.emissions: list[Emission] = []
        self.engine, self.plan = self._start()

    def _start(self, state: Any = None) -> tuple[Engine, Plan]:
        catalog = Catalog()
        for statement in parse(self.ddl):
            catalog.define(statement)
        plan = plan_rule(self.query, catalog, self.options)
        engine = Engine(catalog)
        engine.deploy("rule", plan, self.now, state)
        return engine, plan

    def step(self, step: Step) -> list[Emission]:
        """Do one step; what comes of it."""
        if "advance" in step:
            self.now = step["advance"]
            out = self.engine.advance(self.now)
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
        """What was emitted, as text so that NaN equals NaN: rows of one emission in order, removed ones as a bag."""
        return [
            (out.at_ms, out.kind, list(map(repr, out.inserted)), sorted(map(repr, out.removed))) for out in self.emissions
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

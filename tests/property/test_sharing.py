"""Rules that gather together, or share an event-time stage, give, count and remember what each does alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql import Engine, RuleOptions, plan_rule
from tests.support.streams import catalog_of
from tests.unit.fast.support import EVENT_TIME, PROCESSING_TIME, shown

AGGREGATES = (
    "avg(v) AS a, count(*) AS c",
    "count(*) AS c, avg(v) AS a",
    "max(n) AS hi",
    "min(v) AS lo, sum(n * 2) AS s",
    "count(n) AS some, max(v) AS hi",
    "count(*) AS c",
    "dev AS again",
)
WINDOWS = (
    "TUMBLINGWINDOW(ss, 2)",
    "TUMBLINGWINDOW(ss, 3)",
    "HOPPINGWINDOW(ss, 3, 1)",
    "HOPPINGWINDOW(ss, 1, 2)",
    "HOPPINGWINDOW(ms, 2500, 1000)",
    "SESSIONWINDOW(ss, 4, 2)",
)
FILTERS = ("", "WHERE n > 0", "WHERE dev = 'a'", "WHERE v >= 1 AND n > 0")
RESTS = ("", "HAVING count(*) > 1", "HAVING max(v) > 2", "ORDER BY key LIMIT 1")
WHOLE = [
    f"SELECT dev AS key, {columns} FROM m {where} GROUP BY dev, {window} {rest}".strip()
    for columns in AGGREGATES
    for window in WINDOWS
    for where in FILTERS
    for rest in RESTS
]
OTHERS = (
    "SELECT dev, v FROM m WHERE dev = 'a'",
    "SELECT n, lag(n) AS before FROM m WHERE v > 1",
    "SELECT dev, v * 2 AS w FROM m",
    "select dev, sum(v) as s from m#length(2)",
)

values = st.one_of(st.sampled_from([0, 1, 2, 2.5, 10]), st.none(), st.just("x"))
rows = st.fixed_dictionaries(
    {
        "dev": st.sampled_from(["a", "b", None]),
        "v": values,
        "n": st.one_of(st.integers(-1, 2), st.just("z")),
        "back": st.sampled_from([0, 0, 0, 1, 700, 2100]),
        "bad": st.integers(0, 30),
    }
)
plain_rows = st.fixed_dictionaries(
    {
        "dev": st.sampled_from(["a", "b"]),
        "v": st.sampled_from([0, 1, 2.5]),
        "n": st.integers(0, 2),
        "back": st.sampled_from([0, 0, 300]),
        "bad": st.just(0),
    }
)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, str, Any]]:
    """Events, and things that happen to rules: (instant, what, of what)."""
    like = draw(st.sampled_from([WHOLE[0], WHOLE[40], WHOLE[-40]]))
    alike = [rule for rule in WHOLE if rule.split("GROUP BY")[1][:22] == like.split("GROUP BY")[1][:22]]
    pool = st.one_of(
        st.sampled_from(alike), st.sampled_from(alike), st.sampled_from(WHOLE), st.sampled_from(OTHERS)
    )
    rule = st.tuples(st.just("deploy"), pool)
    events = st.tuples(
        st.just("events"), st.lists(draw(st.sampled_from([rows, plain_rows, plain_rows])), max_size=6)
    )
    index = st.integers(0, 20)
    other = st.one_of(st.tuples(st.sampled_from(["remove", "restore", "alone", "save"]), index), rule)
    history = [(0, *draw(rule)) for _ in range(draw(st.integers(2, 6)))]
    now_ms = 0
    for _ in range(draw(st.integers(1, 14))):
        now_ms += draw(st.sampled_from([0, 1, 300, 1000, 1999, 2000, 9000]))
        history.append((now_ms, *draw(st.one_of(events, events, events, other))))
    return history


class Both:
    """The same rules in one engine, and each in one of its own."""

    def __init__(self, *, event_time: bool, **options: Any) -> None:
        self.ddl = EVENT_TIME if event_time else PROCESSING_TIME
        self.options = RuleOptions(**options)
        self.together = self._engine()
        self.alone: dict[str, Engine] = {}
        self.rules: dict[str, str] = {}
        self.number = 0

    def _engine(self) -> Engine:
        catalog = catalog_of(self.ddl)
        return Engine(catalog)

    def do(self, now_ms: int, what: str, of: Any) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """One thing happens; what the rules say in the one engine and in the others."""
        if what == "events":
            events = [
                {
                    **{key: row[key] for key in ("dev", "v", "n")},
                    "ts": now_ms - row["back"] if row["bad"] < 30 else "?",
                }
                for row in of
            ]
            return self._said(lambda engine: engine.push("m", [dict(row) for row in events], now_ms))
        said = self._said(lambda engine: engine.advance(now_ms))
        if what == "deploy":
            self._deploy(f"r{self.number}", of, now_ms)
            self.number += 1
        elif self.rules:
            name = sorted(self.rules)[of % len(self.rules)]
            if what == "remove":
                self.together.remove(name)
                del self.alone[name], self.rules[name]
            else:
                self._restore(
                    [name] if what == "restore" else list(self.rules), now_ms, from_alone=what == "alone"
                )
        return said

    def _deploy(self, name: str, rule: str, now_ms: int) -> None:
        self.rules[name] = rule
        self.alone[name] = self._engine()
        for engine in (self.together, self.alone[name]):
            engine.deploy(name, plan_rule(rule, engine.catalog, self.options), now_ms)

    def _restore(self, names: list[str], now_ms: int, *, from_alone: bool) -> None:
        """Rules begin again with the state that they had here, or each for itself."""
        for name in names:
            kept, lone = (
                json.loads(json.dumps(engine.snapshot(name))) for engine in (self.together, self.alone[name])
            )
            for engine, state in ((self.together, lone if from_alone else kept), (self.alone[name], lone)):
                engine.deploy(name, plan_rule(self.rules[name], engine.catalog, self.options), now_ms, state)

    def _said(self, act: Any) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        got: dict[str, list[str]] = {}
        for emission in act(self.together):
            got.setdefault(emission.rule, []).extend(shown([emission]))
        wanted = {name: shown(act(engine)) for name, engine in self.alone.items()}
        return got, {name: said for name, said in wanted.items() if said}

    def counts(self) -> list[dict[str, dict[str, int]]]:
        """What has been counted by rule, in the one engine and in the others."""
        engines = (dict.fromkeys(self.rules, self.together), self.alone)
        return [
            {
                name: {key: count for key, count in engine[name].counters(name).items() if key != "retained"}
                for name in self.rules
            }
            for engine in engines
        ]


@pytest.mark.parametrize("event_time", [False, True], ids=["processing", "event"])
@given(history=histories(), tolerance=st.sampled_from([0, 1000]), idle_ms=st.sampled_from([None, 1500]))
def test_rules_together_do_what_each_does_alone(
    event_time: bool, history: list[tuple[int, str, Any]], tolerance: int, idle_ms: int | None
) -> None:
    both = Both(
        event_time=event_time, late_tolerance_ms=tolerance, idle_timeout_ms=idle_ms, max_future_ms=60_000
    )
    for now_ms, what, of in history:
        got, wanted = both.do(now_ms, what, of)
        assert got == wanted, (now_ms, what, of)
        together, alone = both.counts()
        assert together == alone
    got, wanted = both._said(lambda engine: engine.flush(history[-1][0]))
    assert got == wanted, "flush"

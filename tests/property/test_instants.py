"""Many events pushed with their instants give what each gives when it is pushed at its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.drive import Run, drive, in_runs
from sql import Emission, Engine, RuleOptions, plan_rule
from sql.emission import apart
from tests.property.paths import rows_first, shown
from tests.property.rules import Rule
from tests.support.streams import catalog_of

RULES = [
    "SELECT k, avg(v) AS a, count(*) AS c, window_start() AS ws FROM m GROUP BY k, TUMBLINGWINDOW(ss, 2)",
    "SELECT k, max(v) AS x, window_end() AS we FROM m WHERE n > 0 GROUP BY k, HOPPINGWINDOW(ms, 2500, 1000)",
    "SELECT avg(v) AS a, window_start() AS ws, window_end() AS we FROM m GROUP BY SLIDINGWINDOW(ss, 2)",
    "SELECT sum(v / n) AS a, count(*) AS c FROM m GROUP BY SLIDINGWINDOW(ss, 2, 1)",
    "SELECT id, v FROM m GROUP BY SLIDINGWINDOW(ss, 1) OVER (WHEN n > 1)",
    "SELECT id, v FROM m GROUP BY SESSIONWINDOW(ss, 5, 1)",
    "SELECT collect(id) AS ids, window_start() AS ws FROM m GROUP BY COUNTWINDOW(3, 1)",
    "SELECT count(*) AS c, window_start() AS ws, window_end() AS we FROM m "
    "GROUP BY STATEWINDOW(n > 2, n < 1)",
    "SELECT k, count(*) AS c FROM m GROUP BY TUMBLINGWINDOW(ss, 1) OVER(PARTITION BY k)",
    "SELECT id, v - lag(v) AS d FROM m WHERE n > 0",
    "select id, sum(v) as s from m#time(2 sec)",
    "select k, avg(v) as a from m#time(2 sec) group by k output last every 1 seconds",
    "select k, avg(v) as a from m#time(2 sec) group by k output snapshot every 1 seconds",
    "select k, sum(v) as s from m#time(2 sec) group by k output first every 3 events",
    "select irstream id from m#time_accum(1 sec) output all every 1500 milliseconds",
]

SHARING = [
    "SELECT k, avg(v) AS a, window_start() AS ws FROM m GROUP BY k, TUMBLINGWINDOW(ss, 2)",
    "SELECT k, count(*) AS c FROM m GROUP BY k, TUMBLINGWINDOW(ss, 2) HAVING count(*) > 1",
    "SELECT k, max(v) + 1 AS x, window_start() AS ws FROM m GROUP BY k, TUMBLINGWINDOW(ss, 2)",
]

events = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 300, 1000, 2000, 2500, 9000]),
        st.fixed_dictionaries(
            {
                "k": st.sampled_from(["a", "b", None]),
                "v": st.sampled_from([1, 2.5, None, "x"]),
                "n": st.integers(0, 3),
                "late": st.sampled_from([0, 0, 0, 700]),
                "bad": st.integers(0, 20).map(lambda number: not number),
            }
        ),
    ),
    min_size=1,
    max_size=20,
)


def in_place(rule: Rule, emissions: list[Emission]) -> list[str]:
    """Emissions as texts; in processing time the errors of a push stand behind its rows: all come last."""
    return shown(rule, emissions if rule.event_time else rows_first(emissions))


def run(rule: Rule, rows: list[dict[str, Any]], cuts: list[int] | None) -> list[str]:
    """The emissions: each event by itself, or in batches that end at `cuts`."""
    catalog = catalog_of(rule.ddl)
    plan = plan_rule(rule.text, catalog, RuleOptions(**rule.options))
    if cuts is None:
        arrivals = ((row["at"], "m", row) for row in rows)
        alone = list(apart(drive(Engine(catalog), {"r": plan}, in_runs(arrivals, 1))))
        return in_place(rule, alone)
    engine = Engine(catalog, by_instants=True)
    engine.deploy("r", plan, rows[0]["at"])
    out: list[Emission] = []
    for first, last in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        if first < last:
            out += engine.push_instants("m", rows[first:last], [row["at"] for row in rows[first:last]])
    return in_place(rule, out + engine.flush(rows[-1]["at"]))


@pytest.mark.parametrize("event_time", [False, True], ids=["processing", "event"])
@pytest.mark.parametrize("text", RULES)
@given(drawn=events, data=st.data())
def test_batches_of_instants(text: str, event_time: bool, drawn: list[Any], data: st.DataObject) -> None:
    rows, now_ms = [], 0
    for number, (gap_ms, row) in enumerate(drawn):
        now_ms += gap_ms
        rows.append({"id": f"e{number}", "at": now_ms, "ts": max(0, now_ms - row["late"]), **row})
        if row["bad"]:
            rows[-1]["ts"] = "bad"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3), label="cuts"))
    rule = Rule(text, event_time=event_time)
    assert run(rule, rows, cuts) == run(rule, rows, None)


FAMILY = [
    f"SELECT sum(v) AS s, window_start() AS ws FROM m WHERE k = '{k}' GROUP BY TUMBLINGWINDOW(ss, 1)"
    for k in "abcdefgh"
]

several = st.one_of(
    st.lists(st.sampled_from(RULES), min_size=2, max_size=3),
    st.lists(st.sampled_from(SHARING), min_size=2, max_size=3),
    st.just(FAMILY),
)


@given(drawn=events, texts=several, data=st.data())
def test_batches_of_instants_for_several_rules(
    drawn: list[Any], texts: list[str], data: st.DataObject
) -> None:
    """Each rule emits in its own order what it emits event by event."""
    arrivals, now_ms = [], 0
    for number, (gap_ms, row) in enumerate(drawn):
        now_ms += gap_ms
        stamp = "bad" if row["bad"] else max(0, now_ms - row["late"])
        arrivals.append((now_ms, "m", {"id": f"e{number}", "ts": stamp, **row}))
    longest = data.draw(st.integers(2, 20), label="longest")
    is_event_time = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))

    def emitted(runs: Iterable[Run]) -> list[list[str]]:
        rules = [Rule(text, event_time=flag) for text, flag in zip(texts, is_event_time, strict=True)]
        catalog = catalog_of(rules[0].ddl)
        plans = {
            str(at): plan_rule(rule.text, catalog, RuleOptions(**rule.options))
            for at, rule in enumerate(rules)
        }
        out = list(apart(drive(Engine(catalog, by_instants=True), plans, runs)))
        return [
            in_place(rule, [item for item in out if item.rule == str(at)]) for at, rule in enumerate(rules)
        ]

    assert emitted(in_runs(arrivals, longest)) == emitted(in_runs(arrivals, 1))

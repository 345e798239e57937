"""The filter index changes nothing but the cost: rules give and count what each gives and counts alone."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sql import Engine, RuleOptions, plan_rule
from sql.engine.filter_index import FilterIndex
from tests.support.streams import catalog_of
from tests.unit.fast.support import PROCESSING_TIME, shown
from tests.unit.fast.test_any_stream import keys, values

CONDITIONS = [
    *(f"dev = '{device}'" for device in "abcdefghij"),
    *(f"v = {number} AND n > 0" for number in range(-5, 6)), "dev IN ('a', 'b')", "dev IN ('b', 'x')",
    "v > 3", "v >= 3", "v < 3 AND dev = 'a'", "v <= 0", "4 < v", "v BETWEEN -1 AND 2",
    "v IN (-1:2]", "v NOT IN [0:2)", "n IN (0:2)",
    "v BETWEEN 2 AND -1", "dev < 'b'", "dev = 'a' OR v = 1", "v IS NULL", "n > 0 AND v > 1",
    "dev = 'b' AND n * 2 > 1", "NULL < 1",
]  # fmt: skip
RULES = [f"SELECT dev, v, n FROM m WHERE {condition}" for condition in CONDITIONS] + [
    "SELECT count(*) AS c FROM m WHERE dev = 'a' GROUP BY TUMBLINGWINDOW(ss, 10)",
    "SELECT count(*) AS c FROM m WHERE v > 0 GROUP BY COUNTWINDOW(2)",
    "SELECT count(*) AS c FROM m GROUP BY COUNTWINDOW(2) FILTER(WHERE v > 0)",
    "select sum(v) as s from m(v > 0)#length(2)",
    "SELECT v - lag(v) AS d FROM m WHERE v > 0",
    "SELECT dev FROM m",
]

numbers = st.one_of(st.integers(-2, 2), st.just("z"))
events = st.lists(st.fixed_dictionaries({"dev": keys, "v": values, "n": numbers}), max_size=6)


def engine_with(rules: list[str]) -> Engine:
    """An engine with these rules on stream m."""
    catalog = catalog_of(PROCESSING_TIME)
    engine = Engine(catalog)
    for number, rule in enumerate(rules):
        engine.deploy(f"r{number}", plan_rule(rule, catalog, RuleOptions()), 0)
    return engine


@given(batches=st.lists(events, min_size=1, max_size=4))
def test_rules_together_do_what_each_does_alone(batches: list[list[dict[str, Any]]]) -> None:
    together = engine_with(RULES)
    got: dict[str, list[str]] = {f"r{number}": [] for number in range(len(RULES))}
    for at_ms, rows in enumerate(batches):
        for emission in together.push("m", [dict(row) for row in rows], at_ms):
            got[emission.rule] += shown([emission])
    for number, rule in enumerate(RULES):
        alone = engine_with([rule])
        wanted: list[str] = []
        for at_ms, rows in enumerate(batches):
            for emission in alone.push("m", [dict(row) for row in rows], at_ms):
                emission.rule = f"r{number}"
                wanted += shown([emission])
        assert got[f"r{number}"] == wanted, rule
        assert together.counters(f"r{number}") == alone.counters("r0"), rule


def test_an_event_meets_only_rules_that_can_match() -> None:
    engine = engine_with(
        [f"SELECT v FROM m WHERE dev = 'd{number}'" for number in range(8)] + ["SELECT v, n FROM m"]
    )
    out: list[Any] = []
    index = FilterIndex(engine.queries.values())
    met = [entry.name for entry, _, _ in index.route([{"dev": "d3", "v": 1}, {"dev": "d9", "v": 2}], 0, out)]
    assert met == ["r8"]
    assert [(emission.rule, emission.inserted) for emission in out] == [("r3", [{"v": 1}])]


def test_rules_that_are_alike_run_as_a_family() -> None:
    engine = engine_with([f"SELECT dev, v FROM m WHERE dev = 'd{number}' AND v > 0" for number in range(20)])
    values = [("d3", 1), ("d9", -1), ("d9", "x"), ("d9", 4)]
    out = engine.push("m", [{"dev": dev, "v": value} for dev, value in values], 0)
    assert [(emission.rule, emission.kind) for emission in out] == [
        ("r3", "rows"),
        ("r9", "rows"),
        ("r9", "error"),
    ]
    (column,) = engine.roster.indexes["m"].columns.values()
    assert [len(family.values) for family in column.large] == [20]
    assert [engine.counters("r9")[name] for name in ("events_in", "rows_out", "errors")] == [4, 1, 1]
    engine.remove("r3")
    assert engine.push("m", [{"dev": "d3", "v": 1}], 0) == []
    assert engine.counters("r9")["events_in"] == 5

"""An event that cannot be evaluated is one error, stands in no row, and leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Catalog, Engine, parse, plan_rule
from sql.syntax import CreateStream

STREAM = 'CREATE STREAM m (dev STRING, v FLOAT) WITH (DATASOURCE="m")'

EVENTS = [("a", 1.0), ("b", "x"), ("c", 2.0), ("c", 4.0)]
"""Under `length(2)` the second, which is wrong, leaves with the fourth."""


def run(
    text: str, events: list[tuple[str, Any]]
) -> tuple[Engine, list[str], list[tuple[list[Any], list[Any]]]]:
    (statement,) = parse(STREAM)
    assert isinstance(statement, CreateStream)
    catalog = Catalog()
    catalog.define(statement)
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(text, catalog), 0)
    found = [e for at, (dev, v) in enumerate(events) for e in engine.push("m", [{"dev": dev, "v": v}], at)]
    errors = [str(e.error) for e in found if e.kind == "error"]
    rows = [
        ([*map(list, map(dict.values, e.inserted))], [*map(list, map(dict.values, e.removed))])
        for e in found
        if e.kind == "rows"
    ]
    return engine, errors, rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("select irstream v + 1 as w from m#length(2) where v > 0",
         [([[2.0]], []), ([[3.0]], [[2.0]]), ([[5.0]], [])]),
        ("select irstream v + 1 as w from m#length(2)", [([[2.0]], []), ([[3.0]], [[2.0]]), ([[5.0]], [])]),
        ("select irstream sum(v) as s from m#length(2)",
         [([[1.0]], [[None]]), ([[2.0]], [[1.0]]), ([[6.0]], [[2.0]])]),
        (
            "select irstream dev, sum(v) as s from m#length(2) group by dev",
            [([["a", 1.0]], [["a", None]]), ([["c", 2.0], ["a", None]], [["c", None], ["a", 1.0]]),
             ([["c", 6.0]], [["c", 2.0]])],
        ),
        (
            "select irstream v + 1 as k, count(*) as c from m#length(2) group by v + 1",
            [([[2.0, 1]], [[2.0, 0]]), ([[3.0, 1], [2.0, 0]], [[3.0, 0], [2.0, 1]]),
             ([[5.0, 1]], [[5.0, 0]])],
        ),
    ],
    ids=["where", "select", "aggregate", "group", "key"],
)  # fmt: skip
def test_it_is_an_error_once_and_in_no_row(text: str, rows: list[Any]) -> None:
    _, errors, found = run(text, EVENTS)
    assert len(errors) == 1, errors
    assert [row for row in found if row != ([], [])] == rows


def test_without_a_window_it_is_not_kept() -> None:
    engine, errors, _ = run("select dev, sum(v) as s from m group by dev", [("a", 1.0), *[("a", "x")] * 50])
    assert len(errors) == 50
    assert engine.queries["r"].counters()["retained"] == 1, (
        "the first event of the group, and none of the others"
    )


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("v > 1", "'>' cannot compare string with bigint"),
        ("v + 1", "arithmetic takes numbers, not string"),
        ("v - 1", "'-' takes numbers, not string and bigint"),
        ("-v", "'-' takes a number, not string"),
        ("v * dev", "arithmetic takes numbers, not string"),
    ],
)
def test_reasons_are_in_words_of_sql(expression: str, reason: str) -> None:
    (statement,) = parse('CREATE STREAM m () WITH (DATASOURCE="m")')
    assert isinstance(statement, CreateStream)
    catalog = Catalog()
    catalog.define(statement)
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(f"SELECT {expression} AS w FROM m", catalog), 0)
    (error,) = engine.push("m", [{"v": "x", "dev": 2}], 0)
    assert error.error == f"1:8: cannot evaluate {expression}: {reason}"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("flag + 1", 2),
        ("-flag", -1),
        ("flag > 0", True),
        ("flag = 1", None),
        ("flag IN (1)", None),
        ("abs(flag)", None),
    ],
)
def test_booleans_in_place_of_numbers_are_as_the_manual_says(expression: str, value: Any) -> None:
    """`docs/semantics.md`, Numbers: operators take an undeclared TRUE as 1; the others
    refuse it, here as None."""
    catalog = Catalog()
    (statement,) = parse('CREATE STREAM m () WITH (DATASOURCE="m")')
    assert isinstance(statement, CreateStream)
    catalog.define(statement)
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(f"SELECT {expression} AS x FROM m", catalog), 0)
    (found,) = engine.push("m", [{"flag": True}], 0)
    assert found.inserted == ([{"flag": True}] if value is None else [{"x": value}])
    assert (found.kind == "error") is (value is None)


LOTS = [
    "from x in Peaks partition by x.v + 1 retain 1 select x.v",
    "from x in Peaks retain 9 with unique x.v + 1 select x.v",
    "from x in Peaks within 5.0 every 1.0 with unique x.v + 1 select x.v",
]


@pytest.mark.parametrize("text", LOTS)
def test_a_row_of_a_lot_whose_key_fails_does_not_take_the_others_with_it(text: str) -> None:
    (statement,) = parse('CREATE STREAM m () WITH (DATASOURCE="m")')
    assert isinstance(statement, CreateStream)
    catalog = Catalog()
    catalog.define(statement)
    engine = Engine(catalog)
    engine.deploy("lot", plan_rule("insert into Peaks select v from m#length_batch(3)", catalog), 0)
    engine.deploy("r", plan_rule(text, catalog), 0)
    found = [e for v in (1, "x", 3) for e in engine.push("m", [{"v": v}], 500)] + engine.advance(2_000)
    mine = [e for e in found if e.rule == "r"]
    assert [e.inserted for e in mine if e.kind == "error"] == [[{"v": "x"}]]
    assert [row for e in mine if e.kind == "rows" for row in e.inserted] == [{"v": 1}, {"v": 3}]
    assert engine.counters("r")["errors"] == 1 and engine.dispatch.defects == 0

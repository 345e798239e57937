"""The content of a window whose rows read earlier events: `prev` in the window, `prior`
also beyond its begin."""

from __future__ import annotations

import json

import pytest

from sql import Catalog, Engine, parse, plan_rule

CASES = [
    ("select n, prior(1, n) as p from m#length(3)", [(3, 2), (4, 3), (5, 4)]),
    ("select n, prior(2, n) as p from m#length(3)", [(3, 1), (4, 2), (5, 3)]),
    ("select n, prior(2, n) as p from m#time(3 msec)", [(3, 1), (4, 2), (5, 3)]),
    ("select n, prev(1, n) as p from m#length(3)", [(3, None), (4, 3), (5, 4)]),
    ("select n, prior(1, n) as p from m#unique(n)", [(0, None), (1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]),
    ("select n, prior(2, n) as p from m#length(3) output snapshot every 1 sec", [(3, 1), (4, 2), (5, 3)]),
]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("query", "expected"), CASES)
def test_content(query: str, expected: list[tuple[int, int | None]], restarts: bool) -> None:
    catalog = Catalog()
    catalog.define(parse("CREATE STREAM m (n BIGINT)")[0])  # type: ignore[arg-type]
    plan = plan_rule(query, catalog)
    engine = Engine(catalog)
    engine.deploy("r", plan, 0)
    for n in range(6):
        engine.push("m", [{"n": n}], n)
        if restarts:
            state = json.loads(json.dumps(engine.snapshot("r")))
            engine = Engine(catalog)
            engine.deploy("r", plan, n, state)
    assert [(row["n"], row["p"]) for row in engine.read("r")] == expected


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        ("output all every 10 sec", 4),
        ("output all every 3 events", 4),
        ("output last every 10 sec", 4),
        ("output every 10 sec", 0),
        ("output every 3 events", 3),
    ],
)
def test_output_all_shows_what_is_counted_now(limit: str, count: int) -> None:
    """Without a selector, rows that the limit holds back are not in the content yet."""
    catalog = Catalog()
    catalog.define(parse("CREATE STREAM m (n BIGINT)")[0])  # type: ignore[arg-type]
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(f"select count(*) as n from m {limit}", catalog), 0)
    for at in range(4):
        engine.push("m", [{"n": at}], at)
    assert engine.read("r") == [{"n": count}]

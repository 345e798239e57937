"""Every table of keys has a bound; what is over it is an error event, and the keys that are there go on."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Engine, RuleOptions, plan_rule
from tests.support.streams import catalog_of

STREAM = 'CREATE STREAM m (dev STRING, v FLOAT) WITH (DATASOURCE="m")'

TABLES = {
    "GROUP BY without window": "SELECT dev, sum(v) AS x FROM m GROUP BY dev",
    "groupwin": "SELECT dev, v AS x FROM m#groupwin(dev)#length(2)",
    "dimensions of an aggregate": "SELECT dev, sum(v, group_by: dev) AS x FROM m#length(9)",
    "dimensions of a filtered aggregate": (
        "SELECT dev, avg(v, filter: v > 0, group_by: dev) AS x FROM m#length(9) GROUP BY v"
    ),
    "partitions of analytic functions": "SELECT dev, acc_sum(v) OVER (PARTITION BY dev) AS x FROM m",
    "analytic functions in EPL": (
        "SELECT istream dev, acc_sum(v) OVER (PARTITION BY dev) AS x FROM m#length(9)"
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_third_key_of_two_is_an_error_event(name: str) -> None:
    catalog = catalog_of(STREAM)
    engine = Engine(catalog)
    plan = plan_rule(TABLES[name], catalog, RuleOptions(max_groups=2))
    engine.deploy("r", plan, 0)
    seen: list[tuple[str, Any]] = []
    for at, dev in enumerate("abcacb"):
        seen += [(e.kind, e.inserted[0]["dev"]) for e in engine.push("m", [{"dev": dev, "v": 1.0}], at)]
    assert seen == [
        ("rows", "a"),
        ("rows", "b"),
        ("error", "c"),
        ("rows", "a"),
        ("error", "c"),
        ("rows", "b"),
    ]
    assert engine.queries["r"].counters()["errors"] == 2
    other = Engine(catalog)
    other.deploy("r", plan_rule(TABLES[name], catalog, RuleOptions(max_groups=1)), 0, engine.snapshot("r"))
    after = [e.kind for dev in "abc" for e in other.push("m", [{"dev": dev, "v": 1.0}], 10)]
    assert after == ["rows", "rows", "error"], "a lower bound forgets nothing"


def test_a_restart_makes_no_room() -> None:
    catalog = catalog_of(STREAM)

    def engine_of(bound: int, state: Any = None) -> Engine:
        engine = Engine(catalog)
        plan = plan_rule("SELECT dev FROM m#length_batch(9)", catalog, RuleOptions(max_window_events=bound))
        engine.deploy("r", plan, 0, state)
        return engine

    def errors(engine: Engine, count: int) -> int:
        return sum(e.kind == "error" for e in engine.push("m", [{"dev": "a", "v": 1.0}] * count, 0))

    engine = engine_of(3)
    assert errors(engine, 2) == 0
    state = engine.snapshot("r")
    assert errors(engine_of(3, state), 3) == 2
    assert errors(engine_of(2, state), 3) == 3
    assert errors(engine_of(4, state), 3) == 1

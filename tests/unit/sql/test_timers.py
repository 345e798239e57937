"""The deadlines of rules: however often one moves, it is kept once."""

from __future__ import annotations

from sql import Engine, plan_rule
from tests.support.streams import catalog_of

RULES = {
    "often": "SELECT count(*) AS n FROM m GROUP BY TUMBLINGWINDOW(ss, 1)",
    "moves": "SELECT count(*) AS n FROM m GROUP BY SESSIONWINDOW(hh, 24, 1)",
    "stays": "SELECT count(*) AS n FROM m GROUP BY TUMBLINGWINDOW(hh, 24)",
}


def engine_of(rules: dict[str, str]) -> Engine:
    catalog = catalog_of("CREATE STREAM m (v BIGINT)")
    engine = Engine(catalog)
    for name, sql in rules.items():
        engine.deploy(name, plan_rule(sql, catalog), 0)
    return engine


def test_a_deadline_that_moves_with_each_event_is_kept_once() -> None:
    engine = engine_of(RULES)
    for at_ms in range(1, 2000):
        engine.push("m", [{"v": 1}], at_ms)
    assert engine.next_deadline_ms() == 2000
    assert len(engine.timers.deadlines.heap) < 200


def test_a_rule_that_comes_back_fires_behind_those_deployed_before() -> None:
    same = RULES["often"]
    engine = engine_of({"a": same, "b": same})
    engine.push("m", [{"v": 1}], 1)
    engine.remove("a")
    engine.deploy("a", plan_rule(same, engine.catalog), 1)
    engine.push("m", [{"v": 1}], 2)
    assert [(each.rule, each.inserted) for each in engine.advance(1000)] == [
        ("b", [{"n": 2}]),
        ("a", [{"n": 1}]),
    ]

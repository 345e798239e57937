"""Which rules gather together, and when they part."""

from __future__ import annotations

import json
from typing import Any

from sql import Engine, RuleOptions, plan_rule
from tests.unit.fast.test_filter_index import engine_with

WINDOWS = {"tumbling": "TUMBLINGWINDOW(ss, 2)", "hopping": "HOPPINGWINDOW(ss, 2, 1)"}
AVERAGE = "SELECT dev, avg(v) AS a, count(*) AS c FROM m GROUP BY dev, {}"
LOUDEST = "SELECT dev, max(n) AS hi FROM m GROUP BY dev, {}"


def engine_of(window: str, *rules: str) -> Engine:
    return engine_with([rule.format(WINDOWS[window]) for rule in rules])


def events(*values: Any, n: Any = 1) -> list[dict[str, Any]]:
    return [{"dev": "a", "v": value, "n": n} for value in values]


def rows_of(engine: Engine, now_ms: int) -> dict[str, list[Any]]:
    """What the rules show at an instant."""
    return {out.rule: [list(row.values()) for row in out.inserted] for out in engine.advance(now_ms)}


def test_rules_that_differ_in_having_gather_once() -> None:
    engine = engine_of("tumbling", *(f"{AVERAGE} HAVING count(*) > {number}" for number in range(5)))
    engine.push("m", events(1.0, 2.0), 10)
    assert engine.gathering_with("r0") == ["r1", "r2", "r3", "r4"]
    assert rows_of(engine, 2000) == {"r0": [["a", 1.5, 2]], "r1": [["a", 1.5, 2]]}


def test_rules_that_differ_in_aggregates_gather_once() -> None:
    engine = engine_of("hopping", AVERAGE, LOUDEST)
    engine.push("m", events(1.0, 2.0, n=3), 10)
    assert engine.gathering_with("r0") == ["r1"]
    assert rows_of(engine, 1000) == {"r0": [["a", 1.5, 2]], "r1": [["a", 3]]}


def test_an_event_that_only_some_can_take_parts_them_until_the_window_ends() -> None:
    engine = engine_of("tumbling", AVERAGE, LOUDEST, f"{AVERAGE} HAVING count(*) > 1")
    engine.push("m", events(1.0), 10)
    assert engine.gathering_with("r0") == ["r1", "r2"]
    errors = engine.push("m", events(2.0, "x", 4.5, n=7), 20)
    assert sorted((out.rule, out.error) for out in errors) == [
        ("r0", "avg takes numbers, not string 'x'"), ("r2", "avg takes numbers, not string 'x'"),
    ]  # fmt: skip
    assert engine.gathering_with("r0") == ["r2"], "rules with equal aggregates stay together"
    assert engine.gathering_with("r1") == []
    assert rows_of(engine, 2000) == {"r0": [["a", 2.5, 3]], "r1": [["a", 7]], "r2": [["a", 2.5, 3]]}
    assert engine.counters("r1")["events_in"] == 4
    engine.push("m", events(1.0), 2010)
    assert engine.gathering_with("r0") == ["r1", "r2"]


def test_an_event_that_nobody_can_take_parts_nobody() -> None:
    rules = [rule.replace("FROM m", "FROM m WHERE n > 0") for rule in (AVERAGE, LOUDEST)]
    engine = engine_of("tumbling", *rules)
    errors = engine.push("m", [*events(1.0, n="x"), *events(1.0, n=2)], 10)
    assert [(out.rule, out.kind) for out in errors] == [("r0", "error"), ("r1", "error")]
    assert engine.gathering_with("r0") == ["r1"]


def test_a_rule_deployed_later_joins_when_it_holds_the_same() -> None:
    engine = engine_of("hopping", AVERAGE, AVERAGE)
    engine.push("m", events(1.0), 10)
    engine.deploy("late", plan_rule(LOUDEST.format(WINDOWS["hopping"]), engine.catalog, RuleOptions()), 500)
    for now_ms, others in ((600, []), (1100, []), (2100, ["r0", "r1"])):
        engine.push("m", events(1.0), now_ms)
        assert engine.gathering_with("late") == others, now_ms


def test_restored_rules_gather_together_in_the_middle_of_a_window() -> None:
    engine = engine_of("tumbling", AVERAGE, LOUDEST)
    engine.push("m", events(1.0, n=4), 10)
    states = {name: json.loads(json.dumps(engine.snapshot(name))) for name in engine.queries}
    other = engine_of("tumbling")
    for name, rule in (("r0", AVERAGE), ("r1", LOUDEST)):
        other.deploy(name, plan_rule(rule.format(WINDOWS["tumbling"]), other.catalog, RuleOptions()), 20, states[name])
    other.push("m", events(2.0), 30)
    assert other.gathering_with("r0") == ["r1"]
    assert rows_of(other, 2000) == {"r0": [["a", 1.5, 2]], "r1": [["a", 4]]}

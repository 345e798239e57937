"""Which rules gather together or share an event-time stage, and when they part."""

from __future__ import annotations

import json
from typing import Any

from sql import Engine, RuleOptions, plan_rule, run_script
from tests.support.streams import catalog_of
from tests.unit.fast.support import EVENT_TIME
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
    assert engine.roster.shares_with("r0") == ["r1", "r2", "r3", "r4"]
    assert rows_of(engine, 2000) == {"r0": [["a", 1.5, 2]], "r1": [["a", 1.5, 2]]}


def test_rows_that_several_rules_select_are_made_once() -> None:
    engine = engine_of("tumbling", *(f"{AVERAGE} HAVING avg(v) > {number}" for number in range(3)), LOUDEST)
    engine.push("m", [{"dev": dev, "v": v, "n": 7} for dev, v in (("a", 0.5), ("b", 1.5), ("c", 9.0))], 10)
    found = {out.rule: out.inserted for out in engine.advance(2000)}
    assert [row["dev"] for row in found["r0"]] == ["a", "b", "c"]
    assert [row["dev"] for row in found["r1"]] == ["b", "c"]
    assert found["r2"] == [{"dev": "c", "a": 9.0, "c": 1}]
    assert found["r2"][0] is found["r0"][2]
    assert found["r3"] == [{"dev": "a", "hi": 7}, {"dev": "b", "hi": 7}, {"dev": "c", "hi": 7}]
    assert [engine.counters(f"r{number}")["rows_out"] for number in range(4)] == [3, 2, 1, 3]


def test_a_row_that_having_cannot_take_is_an_error_of_its_rule_alone() -> None:
    engine = engine_of("tumbling", f"{AVERAGE} HAVING avg(v) > 1", f"{AVERAGE} HAVING sqrt(dev) > 1")
    engine.push("m", events(2.0), 10)
    first, second = engine.advance(2000)
    assert (first.rule, first.kind, first.inserted) == ("r0", "rows", [{"dev": "a", "a": 2.0, "c": 1}])
    assert (second.rule, second.kind) == ("r1", "error")
    assert second.error is not None and "sqrt" in second.error


def test_rules_that_differ_in_aggregates_gather_once() -> None:
    engine = engine_of("hopping", AVERAGE, LOUDEST)
    engine.push("m", events(1.0, 2.0, n=3), 10)
    assert engine.roster.shares_with("r0") == ["r1"]
    assert rows_of(engine, 1000) == {"r0": [["a", 1.5, 2]], "r1": [["a", 3]]}


def test_an_event_that_only_some_can_take_parts_them_until_the_window_ends() -> None:
    engine = engine_of("tumbling", AVERAGE, LOUDEST, f"{AVERAGE} HAVING count(*) > 1")
    engine.push("m", events(1.0), 10)
    assert engine.roster.shares_with("r0") == ["r1", "r2"]
    errors = engine.push("m", events(2.0, "x", 4.5, n=7), 20)
    assert sorted((out.rule, out.error) for out in errors) == [
        ("r0", "1:17: cannot evaluate v: avg takes numbers, not string 'x'"),
        ("r2", "1:17: cannot evaluate v: avg takes numbers, not string 'x'"),
    ]
    assert engine.roster.shares_with("r0") == ["r2"], "rules with equal aggregates stay together"
    assert engine.roster.shares_with("r1") == []
    assert rows_of(engine, 2000) == {"r0": [["a", 2.5, 3]], "r1": [["a", 7]], "r2": [["a", 2.5, 3]]}
    assert engine.counters("r1")["events_in"] == 4
    engine.push("m", events(1.0), 2010)
    assert engine.roster.shares_with("r0") == ["r1", "r2"]


def test_an_event_that_nobody_can_take_parts_nobody() -> None:
    rules = [rule.replace("FROM m", "FROM m WHERE n > 0") for rule in (AVERAGE, LOUDEST)]
    engine = engine_of("tumbling", *rules)
    errors = engine.push("m", [*events(1.0, n="x"), *events(1.0, n=2)], 10)
    assert [(out.rule, out.kind) for out in errors] == [("r0", "error"), ("r1", "error")]
    assert engine.roster.shares_with("r0") == ["r1"]


def test_a_rule_deployed_later_joins_when_it_holds_the_same() -> None:
    engine = engine_of("hopping", AVERAGE, AVERAGE)
    engine.push("m", events(1.0), 10)
    engine.deploy("late", plan_rule(LOUDEST.format(WINDOWS["hopping"]), engine.catalog, RuleOptions()), 500)
    for now_ms, others in ((600, []), (1100, []), (2100, ["r0", "r1"])):
        engine.push("m", events(1.0), now_ms)
        assert engine.roster.shares_with("late") == others, now_ms


def test_restored_rules_gather_together_in_the_middle_of_a_window() -> None:
    engine = engine_of("tumbling", AVERAGE, LOUDEST)
    engine.push("m", events(1.0, n=4), 10)
    states = {name: json.loads(json.dumps(engine.snapshot(name))) for name in engine.queries}
    other = engine_of("tumbling")
    for name, rule in (("r0", AVERAGE), ("r1", LOUDEST)):
        other.deploy(
            name, plan_rule(rule.format(WINDOWS["tumbling"]), other.catalog, RuleOptions()), 20, states[name]
        )
    other.push("m", events(2.0), 30)
    assert other.roster.shares_with("r0") == ["r1"]
    assert rows_of(other, 2000) == {"r0": [["a", 1.5, 2]], "r1": [["a", 4]]}


def timed_engine(rules: list[str], **options: Any) -> Engine:
    catalog = catalog_of(EVENT_TIME)
    engine = Engine(catalog)
    for number, rule in enumerate(rules):
        engine.deploy(f"r{number}", plan_rule(rule, catalog, RuleOptions(**options)), 0)
    return engine


def stages_of(engine: Engine) -> int:
    return len({query.stage for query in engine.queries.values()})  # type: ignore[attr-defined]


def test_in_event_time_an_event_meets_only_rules_that_can_match_and_time_meets_all() -> None:
    rules = [
        f"SELECT count(*) AS c FROM m WHERE dev = 'd{n}' GROUP BY TUMBLINGWINDOW(ss, 2)" for n in range(10)
    ]
    engine = timed_engine(rules)
    engine.push("m", [{"dev": "d3", "ts": 100}, {"dev": "d7", "ts": 200}], 0)
    assert stages_of(engine) == 1
    stages = engine.queries.items()
    met = [name for name, stage in stages if stage.query.retained()]  # type: ignore[attr-defined]
    assert met == ["r3", "r7"]
    out = engine.push("m", [{"dev": "d0", "ts": 2000}], 1)
    assert [(emission.rule, emission.at_ms) for emission in out] == [("r3", 2000), ("r7", 2000)]
    assert [engine.counters(name)["events_in"] for name in ("r0", "r5")] == [3, 3]


def test_late_and_refused_events_are_told_by_every_rule_that_shares_the_stage() -> None:
    engine = timed_engine(
        [AVERAGE.format(WINDOWS["tumbling"]), LOUDEST.format(WINDOWS["hopping"])], max_future_ms=1000
    )
    out = engine.push("m", [{"dev": "a", "ts": 500}, {"dev": "a", "ts": 400}, {"dev": "a", "ts": 5000}], 500)
    assert [(emission.rule, emission.kind) for emission in out] == [
        ("r0", "late"),
        ("r1", "late"),
        ("r0", "error"),
        ("r1", "error"),
    ]
    assert [engine.counters("r1")[name] for name in ("late", "refused_future", "errors")] == [1, 1, 1]


def test_a_rule_deployed_later_shares_the_stage_once_its_own_is_in_the_same_state() -> None:
    rule = AVERAGE.format(WINDOWS["tumbling"])
    engine = timed_engine([rule, rule], late_tolerance_ms=100)
    engine.push("m", [{"dev": "a", "v": 1, "ts": 500}], 500)
    engine.deploy("late", plan_rule(rule, engine.catalog, RuleOptions(late_tolerance_ms=100)), 510)
    engine.push("m", [{"dev": "a", "v": 1, "ts": 520}], 520)
    assert stages_of(engine) == 2, "an event from before still waits in the other stage"
    engine.push("m", [{"dev": "a", "v": 1, "ts": 700}], 700)
    engine.push("m", [{"dev": "a", "v": 1, "ts": 710}], 710)
    assert stages_of(engine) == 1


def test_restored_rules_share_the_stage_where_the_same_events_wait() -> None:
    rule = AVERAGE.format(WINDOWS["tumbling"])
    engine = timed_engine([rule, rule], late_tolerance_ms=1000)
    engine.push("m", [{"dev": "a", "v": 1.5, "ts": 500, "n": [1]}], 500)
    states = [json.dumps(engine.snapshot(name)) for name in engine.queries]
    for other, stages in ((states[1], 1), (states[1].replace("1.5", "2.5"), 2)):
        restored = timed_engine([])
        for name, state in (("r0", states[0]), ("r1", other)):
            plan = plan_rule(rule, restored.catalog, RuleOptions(late_tolerance_ms=1000))
            restored.deploy(name, plan, 510, json.loads(state))
        restored.push("m", [{"dev": "a", "v": 1, "ts": 520}], 520)
        assert stages_of(restored) == stages


def test_rules_that_part_in_event_time_show_earlier_windows_first() -> None:
    """An average refuses the text that a count takes, long after the first window has ended."""
    rules = (
        "SELECT avg(v) AS a FROM m GROUP BY TUMBLINGWINDOW(ss, 2)",
        "SELECT count(*) AS c FROM m GROUP BY TUMBLINGWINDOW(ss, 2)",
    )
    catalog = catalog_of(EVENT_TIME)
    engine = Engine(catalog)
    for name, rule in zip(("mean", "count"), rules, strict=True):
        engine.deploy(name, plan_rule(rule, catalog, RuleOptions(event_time=True)), 0)
    engine.push("m", [{"ts": 0, "v": 1}], 0)
    assert engine.roster.shares_with("mean") == ["count"]
    rows = [{"ts": 1_000, "v": 2}, {"ts": 3_000, "v": 3}, {"ts": 5_000, "v": "x"}, {"ts": 7_000, "v": 4}]
    out = engine.push("m", rows, 0)
    assert [(item.at_ms, item.kind) for item in out if item.rule == "mean"] == [
        (2_000, "rows"), (4_000, "rows"), (5_000, "error"),
    ]  # fmt: skip
    assert [item.at_ms for item in out if item.rule == "count"] == [2_000, 4_000, 6_000]


def test_a_variable_lets_a_rule_act_whose_events_come_no_more_in_event_time() -> None:
    """Eight rules share a stage and the filter index, which keeps other devices' events away from each."""
    catalog = catalog_of(EVENT_TIME)
    engine = Engine(catalog)
    run_script(engine, "create variable int T = 10", 0)
    for number in range(8):
        text = f"select irstream dev from m(dev = 'd{number}')#expr(T > 5)"
        engine.deploy(f"rule {number}", plan_rule(text, catalog, RuleOptions(event_time=True)), 0)
    engine.push("m", [{"dev": "d0", "ts": 1_000}], 0)
    engine.push("m", [{"dev": "d1", "ts": 1_000}], 0)
    engine.set_variable("T", 2)
    out = engine.push("m", [{"dev": "none", "ts": 20_000}], 0)
    assert [(item.rule, item.at_ms, item.removed) for item in out] == [
        ("rule 0", 1_000, [{"dev": "d0"}]),
        ("rule 1", 1_000, [{"dev": "d1"}]),
    ]

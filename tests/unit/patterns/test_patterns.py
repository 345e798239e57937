"""Patterns as a rule sees them: what follows what, what did not happen, bounds, warnings,
restarts. Worked by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sql import Catalog, Engine, RuleOptions, SqlError, plan_rule
from tests.conformance.catalog import define

STREAMS = """
create stream hot (dev string, temp float);
create stream ack (dev string);
create stream fault (dev string, code bigint);
"""

Step = tuple[int, str, dict[str, Any]]


def rows(sql: str, steps: list[Step], until: int = 0, **options: Any) -> list[tuple[int, dict[str, Any]]]:
    """(instant, row) of all that a rule tells; before every step it goes through a
    snapshot into a new engine."""
    catalog = define(Catalog(), STREAMS)
    plan = plan_rule(sql, catalog, RuleOptions(**options))
    engine = Engine(catalog)
    engine.deploy("r", plan, 0)
    out = []
    for at, stream, row in [*steps, (until, "", {})]:
        state = json.loads(json.dumps(engine.snapshot("r"), allow_nan=False))
        engine.deploy("r", plan, engine.now_ms or 0, state)
        found = engine.push(stream, [row], at) if stream else engine.advance(at)
        out += [(emission.at_ms, told) for emission in found for told in emission.inserted]
    return out


def test_absence_in_words_of_ekuiper() -> None:
    sql = "SELECT h.dev AS dev FROM PATTERN (hot(temp > 90) AS h -> NOT ack(dev = h.dev)) WITHIN 30 sec"
    steps: list[Step] = [
        (0, "hot", {"dev": "a", "temp": 95.0}),
        (1000, "hot", {"dev": "b", "temp": 96.0}),
        (2000, "hot", {"dev": "c", "temp": 20.0}),
        (5000, "ack", {"dev": "a"}),
    ]
    assert rows(sql, steps, 60_000) == [(31_000, {"dev": "b"})]


def test_a_not_between_two_steps_lets_nothing_come_between() -> None:
    pattern = "(hot AS h -> NOT ack(dev = h.dev) -> fault(dev = h.dev) AS f)"
    sql = f"SELECT f.code AS code FROM PATTERN {pattern} WITHIN 10 sec"
    hot: Step = (0, "hot", {"dev": "a", "temp": 95.0})
    fault: Step = (2000, "fault", {"dev": "a", "code": 7})
    assert rows(sql, [hot, fault]) == [(2000, {"code": 7})]
    assert rows(sql, [hot, (1000, "ack", {"dev": "a"}), fault]) == []
    assert rows(sql, [hot, (10_000, "fault", {"dev": "a", "code": 7})]) == []


def test_a_not_at_the_end_of_several_steps_waits_for_the_end_of_the_attempt() -> None:
    sql = (
        "SELECT h.dev AS dev FROM PATTERN (hot AS h -> fault(dev = h.dev) AS f -> NOT ack(dev = h.dev)) "
        "WITHIN 10 sec"
    )
    hot: Step = (0, "hot", {"dev": "a", "temp": 95.0})
    fault: Step = (4000, "fault", {"dev": "a", "code": 7})
    assert rows(sql, [hot, fault], 20_000) == [(10_000, {"dev": "a"})]
    assert rows(sql, [hot, fault, (5000, "ack", {"dev": "a"})], 20_000) == []
    assert rows(sql, [hot], 20_000) == []


def test_three_faults_of_one_machine_in_a_minute() -> None:
    sql = (
        "select a.dev as dev, c.code as code from pattern [every a=fault -> "
        "(b=fault(dev=a.dev) -> c=fault(dev=a.dev)) where timer:within(1 min)]"
    )
    seen = (
        (0, "x"),
        (10_000, "y"),
        (20_000, "x"),
        (59_999, "x"),
        (70_000, "y"),
        (79_999, "x"),
        (119_999, "x"),
    )
    steps: list[Step] = [(at, "fault", {"dev": dev, "code": at}) for at, dev in seen]
    assert rows(sql, steps) == [
        (59_999, {"dev": "x", "code": 59_999}),
        (79_999, {"dev": "x", "code": 79_999}),
    ]


def test_a_partial_beyond_the_bound_is_refused_or_takes_the_place_of_the_oldest() -> None:
    sql = "select h.dev as dev from pattern [every h=hot -> ack]"
    steps: list[Step] = [(at, "hot", {"dev": str(at), "temp": 1.0}) for at in range(3)] + [
        (5, "ack", {"dev": "x"})
    ]
    assert [row["dev"] for _, row in rows(sql, steps, max_pattern_partials=2)] == ["0", "1"]
    newest = rows(sql, steps, max_pattern_partials=2, pattern_overflow="drop_oldest")
    assert [row["dev"] for _, row in newest] == ["1", "2"]


def test_counters_tell_what_lives_and_what_was_dropped() -> None:
    catalog = define(Catalog(), STREAMS)
    engine = Engine(catalog)
    sql = "select h.dev as dev from pattern [every h=hot -> (ack(dev=h.dev) where timer:within(1 sec))]"
    engine.deploy("r", plan_rule(sql, catalog, RuleOptions(max_pattern_partials=2)), 0)
    for dev in "abc":
        engine.push("hot", [{"dev": dev, "temp": 1.0}], 0)
    engine.push("ack", [{"dev": "b"}], 10)
    counts = engine.counters("r")
    assert (
        counts["partials"],
        counts["partials_started"],
        counts["partials_dropped"],
        counts["matches"],
    ) == (
        1,
        2,
        1,
        1,
    )
    engine.advance(1000)
    assert engine.counters("r")["partials"] == 0 and engine.counters("r")["partials_expired"] == 1


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("every (every a=hot)", "B711"),
        ("every-distinct(a.dev) a=hot", "B712"),
        ("every a=hot or b=ack", "B713"),
        ("every a=hot -> not b=ack", "B714"),
        ("every a=hot -> b=ack", "B715"),
        ("every a=hot -> b=ack where timer:within(1 sec)", None),
        ("every a=hot -[5]> b=ack", None),
        ("every a=hot -> (timer:interval(30 sec) and not ack(dev=a.dev))", None),
    ],
)
def test_check_warns_of_what_is_rarely_meant(pattern: str, code: str | None) -> None:
    plan = plan_rule(f"select * from pattern [{pattern}]", define(Catalog(), STREAMS))
    assert [problem.code for problem in plan.warnings] == ([code] if code else [])


@pytest.mark.parametrize(
    ("sql", "code", "marked"),
    [
        ("select * from pattern [every a=hot -> b=ack(dev=c.dev)]", "B201", "c.dev"),
        ("select a.dev from pattern [[2] a=hot]", "B806", "a.dev"),
        ("select * from pattern [a=hot where timer:interval(1)]", "P019", "timer:interval"),
        ("select * from pattern [[3:1] a=hot until ack]", "B803", "[3:1] a=hot until ack"),
        ("SELECT * FROM PATTERN (NOT ack -> hot) WITHIN 1 sec", "P018", "NOT ack"),
    ],
)
def test_what_cannot_work_is_refused_where_it_stands(sql: str, code: str, marked: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule(sql, define(Catalog(), STREAMS))
    (problem,) = caught.value.problems
    assert (problem.code, sql[problem.span.start : problem.span.end]) == (code, marked)


def test_neighbouring_rows_by_match_recognize() -> None:
    sql = (
        "select * from hot match_recognize (partition by dev measures A.dev as dev, last(B.temp) as top, "
        "C.temp as back pattern (A B+ C) define B as B.temp > prev(B.temp), C as C.temp < prev(C.temp))"
    )
    steps: list[Step] = [
        (at, "hot", {"dev": dev, "temp": temp})
        for at, (dev, temp) in enumerate(
            [("x", 1.0), ("y", 5.0), ("x", 2.0), ("y", 4.0), ("x", 3.0), ("x", 2.5), ("y", 3.0)]
        )
    ]
    assert rows(sql, steps) == [(5, {"dev": "x", "top": 3.0, "back": 2.5})]


def _recognizing(
    pattern: str, options: RuleOptions, events: list[dict[str, Any]]
) -> tuple[Engine, list[Any]]:
    """An engine with match_recognize over E that has read events, and the rows it has told."""
    catalog = define(Catalog(), "create stream E (id string, n bigint);")
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(f"select * from E match_recognize ({pattern})", catalog, options), 0)
    emissions = engine.push("E", events, 1000)
    return engine, [row for emission in emissions for row in emission.inserted]


def test_idle_partitions_are_forgotten_and_counted() -> None:
    """Three partitions may keep a row for prev; that of a fourth one is forgotten."""
    pattern = "partition by id measures A.id as a pattern (A) define A as A.n > prev(A.n)"
    events = [{"id": name, "n": n} for n in (1, 2) for name in ("w", "x", "y", "z")]
    engine, told = _recognizing(pattern, RuleOptions(max_recognize_attempts=3), events)
    counts = engine.counters("r")
    assert told == [{"a": "w"}, {"a": "x"}, {"a": "y"}]
    assert (counts["partitions"], counts["partitions_forgotten"], counts["attempts"]) == (3, 2, 0)


def test_ways_to_read_the_same_rows_do_not_multiply() -> None:
    """Each row fits both variables: 2**40 readings, of which those that can go on alike are one."""
    pattern = "measures count(A.id) as a pattern ((A | B)* C) define C as C.n = 0"
    events = [{"id": "e", "n": 1}] * 40 + [{"id": "e", "n": 0}]
    _, told = _recognizing(pattern, RuleOptions(), events)
    assert told == [{"a": 40}]


def test_readings_are_bounded_where_all_are_wanted() -> None:
    pattern = "measures count(A.id) as a all matches pattern ((A | B)+ C) define C as C.n = 0"
    events = [{"id": "e", "n": 1}] * 30
    engine, told = _recognizing(pattern, RuleOptions(max_recognize_attempts=100), events)
    counts = engine.counters("r")
    assert told == []
    assert counts["attempts"] <= 100 and counts["attempts_dropped"] > 0

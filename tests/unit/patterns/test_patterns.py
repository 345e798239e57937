"""What patterns count, warn of and refuse, and the bounds of match_recognize; `tests/scenarios/patterns` has
what they emit."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Engine, RuleOptions, SqlError, plan_rule
from sql.errors import CorruptState
from tests.support.streams import catalog_of, engine_of

STREAMS = """
create stream hot (dev string, temp float);
create stream ack (dev string);
create stream fault (dev string, code bigint);
"""


def test_counters_tell_what_lives_and_what_was_dropped() -> None:
    sql = "select h.dev as dev from pattern [every h=hot -> (ack(dev=h.dev) where timer:within(1 sec))]"
    engine = engine_of(STREAMS, sql, max_pattern_partials=2)
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


def test_searches_of_an_every_inside_an_every_are_bounded() -> None:
    engine = engine_of(STREAMS, "select 1 as one from pattern [every (every hot)]", max_pattern_partials=4)
    found = [engine.push("hot", [{"dev": "a"}], 0) for _ in range(4)]
    assert [sum(len(post.inserted) for post in posts) for posts in found] == [1, 2, 4, 4]
    assert engine.counters("r")["partials_dropped"] == 8


def test_the_matches_of_one_event_are_bounded() -> None:
    nested = "select 1 as one from pattern [every (every (every hot))]"
    free, bounded = engine_of(STREAMS, nested), engine_of(STREAMS, nested, max_pattern_partials=4)
    found = [
        [sum(len(post.inserted) for post in engine.push("hot", [{"dev": "a"}], 0)) for _ in range(4)]
        for engine in (free, bounded)
    ]
    assert found == [[1, 3, 9, 27], [1, 3, 4, 4]]
    assert free.counters("r")["matches_dropped"] == 0 < bounded.counters("r")["matches_dropped"]


def test_outputs_that_one_event_causes_are_one_post() -> None:
    engine = engine_of(STREAMS, "select h.dev as dev from pattern [every h=hot -> ack] output every 2 events")
    for dev in "abcde":
        engine.push("hot", [{"dev": dev, "temp": 1.0}], 0)
    (post,) = engine.push("ack", [{"dev": "x"}], 10)
    assert [row["dev"] for row in post.inserted] == ["a", "b", "c", "d"]


def test_timers_of_searches_that_have_ended_leave_those_of_the_others() -> None:
    pattern = "every h=hot -> (ack(dev=h.dev) and fault) where timer:within(1 sec)"
    engine = engine_of(STREAMS, f"select h.dev as dev from pattern [{pattern}]")
    for number in range(300):
        engine.push("hot", [{"dev": str(number), "temp": 1.0}], number)
    for number in (number for number in range(300) if number % 10):
        engine.push("ack", [{"dev": str(number)}], 400)
    engine.push("fault", [{"dev": "x", "code": 1}], 500)
    counts = engine.counters("r")
    assert (counts["matches"], counts["partials"]) == (270, 30)
    engine.advance(1000)
    assert engine.counters("r")["partials"] == 29
    engine.advance(1290)
    counts = engine.counters("r")
    assert (counts["partials"], counts["partials_expired"]) == (0, 30)


@pytest.mark.parametrize(
    ("pattern", "counter", "dropped", "matches"),
    [
        ("(every h=hot) and k=ack", "remembered_dropped", 2, 2),
        ("[4] h=hot", "remembered_dropped", 2, 1),
        ("every-distinct(h.dev) h=hot", "keys_dropped", 2, 4),
    ],
)
def test_what_a_pattern_remembers_is_bounded_and_counted(
    pattern: str, counter: str, dropped: int, matches: int
) -> None:
    engine = engine_of(
        STREAMS, f"select 1 as one from pattern [{pattern}]", max_pattern_rows=2, max_pattern_keys=2
    )
    for dev in "abca":
        engine.push("hot", [{"dev": dev, "temp": 1.0}], 0)
    engine.push("ack", [{"dev": "a"}], 0)
    counts = engine.counters("r")
    assert (counts[counter], counts["matches"]) == (dropped, matches)


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("every (every a=hot)", "B711"),
        ("every (a=hot -> every b=ack where timer:within(1 sec))", "B711"),
        ("every (every a=hot and b=ack)", "B711"),
        ("every (a=hot -> (timer:interval(1 sec) and not (every b=ack)))", None),
        ("every-distinct(a.dev) a=hot", "B712"),
        ("every a=hot or b=ack", "B713"),
        ("every a=hot -> not b=ack", "B714"),
        ("not ack", "B714"),
        ("every (not ack)", "B714"),
        ("not ack and timer:interval(30 sec)", None),
        ("every a=hot -> b=ack", "B715"),
        ("every a=hot -> b=ack where timer:within(1 sec)", None),
        ("every a=hot -[5]> b=ack", None),
        ("every a=hot -> (timer:interval(30 sec) and not ack(dev=a.dev))", None),
    ],
)
def test_check_warns_of_what_is_rarely_meant(pattern: str, code: str | None) -> None:
    plan = plan_rule(f"select * from pattern [{pattern}]", catalog_of(STREAMS))
    assert [problem.code for problem in plan.warnings] == ([code] if code else [])


@pytest.mark.parametrize(
    ("sql", "code", "marked"),
    [
        ("select * from pattern [every a=hot -> b=ack(dev=c.dev)]", "B201", "c.dev"),
        ("select a.dev from pattern [[2] a=hot]", "B806", "a.dev"),
        ("select * from pattern [a=hot where timer:interval(1)]", "P019", "timer:interval"),
        ("select * from pattern [every not hot]", "P001", "not"),
        ("select * from pattern [every every hot]", "P001", "every"),
        ("select * from pattern [[3:1] a=hot until ack]", "B803", "[3:1] a=hot until ack"),
        ("SELECT * FROM PATTERN (NOT ack -> hot) WITHIN 1 sec", "P018", "NOT ack"),
    ],
)
def test_what_cannot_work_is_refused_where_it_stands(sql: str, code: str, marked: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule(sql, catalog_of(STREAMS))
    (problem,) = caught.value.problems
    assert (problem.code, sql[problem.span.start : problem.span.end]) == (code, marked)


def _recognizing(
    pattern: str, options: RuleOptions, events: list[dict[str, Any]]
) -> tuple[Engine, list[Any]]:
    """An engine with match_recognize over E that has read events, and the rows it has told."""
    catalog = catalog_of("create stream E (id string, n bigint);")
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


def test_attempts_that_an_earlier_version_saved_go_on() -> None:
    """It saved a list of attempts, each with its readings and the matches that wait."""
    pattern = "measures A.n as a, count(B.n) as b pattern (A B*) interval 2 sec define B as B.n >= A.n"
    engine, told = _recognizing(pattern, RuleOptions(), [{"id": "e", "n": 1}, {"id": "e", "n": 2}])
    state = engine.snapshot("r")
    found = state["sources"]["recognized"][0]
    ((key, readings, recent, rows, waiting),) = found["partitions"]
    attempts = [
        [first, 1000, due, [reading for reading in readings if reading[0] == first], complete]
        for first, due, complete in waiting
    ]
    found["partitions"] = [[key, [attempts, recent, rows]]]
    engine.restore("r", state)
    assert told == []
    assert [emission.inserted for emission in engine.advance(3000)] == [[{"a": 1, "b": 1}]]


def test_attempts_that_wait_do_not_take_the_state_of_those_that_do_not() -> None:
    def recognizer(interval: str) -> Any:
        pattern = f"measures A.id as a pattern (A B) {interval} define B as B.n > A.n"
        engine, _ = _recognizing(pattern, RuleOptions(), [{"id": "w", "n": 1}])
        running: Any = engine.queries["r"]
        return running.sources.recognized[0].recognizer

    with pytest.raises(CorruptState):
        recognizer("interval 1 sec").restore(recognizer("").snapshot(), dict)

"""What `why` says of live searches: which filter or timer they wait for, since when, with which events."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Engine, plan_rule, run_script
from sql.explain.waits import Wait, waits
from tests.support.streams import catalog_of, engine_of

STREAMS = """
create stream hot (dev string, temp float);
create stream ack (dev string);
create stream stop (dev string);
"""

Event = tuple[int, str, dict[str, Any]]
HOT: list[Event] = [
    (1_000, "hot", {"dev": "a", "temp": 95.0}),
    (2_000, "hot", {"dev": "b", "temp": 96.0}),
]
ACK: Event = (3_000, "ack", {"dev": "b"})
TAGS = {"h": "dev=a temp=95"}


def waiting(sql: str, events: list[Event]) -> list[Wait]:
    """What a rule waits for after these events."""
    engine = engine_of(STREAMS, sql)
    for at, stream, row in events:
        engine.push(stream, [row], at)
    return waits(engine.queries["r"])


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        (
            "every h=hot -> s=ack(dev = h.dev) where timer:within(30 sec)",
            HOT,
            [Wait("s=ack(dev = h.dev)", 2, 1_000, 31_000, TAGS)],
        ),
        (
            "every h=hot -> s=ack(dev = h.dev) where timer:within(30 sec)",
            [*HOT, ACK],
            [Wait("s=ack(dev = h.dev)", 1, 1_000, 31_000, TAGS)],
        ),
        (
            "every h=hot -> s=ack(dev = h.dev) -> stop(dev = s.dev)",
            [*HOT, ACK],
            [
                Wait("stop(dev = s.dev)", 1, 3_000, None, {"h": "dev=b temp=96", "s": "b"}),
                Wait("s=ack(dev = h.dev)", 1, 1_000, None, TAGS),
            ],
        ),
        (
            "every h=hot -> (timer:interval(10 sec) and not ack) -> stop",
            [HOT[0]],
            [
                Wait("ack", 1, 1_000, None, TAGS),
                Wait("timer timer:interval(10 sec)", 1, 1_000, 11_000, TAGS),
            ],
        ),
        ("every h=hot(temp > 100) -> ack", HOT, []),
    ],
)
def test_what_a_pattern_waits_for(pattern: str, events: list[Event], expected: list[Wait]) -> None:
    found = waiting(f"select * from pattern [{pattern}]", events)
    assert sorted(found, key=lambda wait: wait.what) == sorted(expected, key=lambda wait: wait.what)


def test_in_a_context_the_searches_of_all_partitions_are_together() -> None:
    catalog = catalog_of(STREAMS)
    engine = Engine(catalog)
    run_script(engine, "create context ByDev partition by dev from hot, dev from ack", 0)
    sql = "context ByDev select h.temp as temp from pattern [h=hot -> ack]"
    engine.deploy("r", plan_rule(sql, catalog), 0)
    for at, stream, row in HOT:
        engine.push(stream, [row], at)
    assert waits(engine.queries["r"]) == [Wait("ack", 2, 1_000, None, TAGS)]

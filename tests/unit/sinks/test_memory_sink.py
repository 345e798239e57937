"""The memory sink and its bus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sinks import build_action
from sinks.memory_bus import MemoryBus, topic_matches
from tests.support.waiting import PATIENCE_MS
from tests.unit.sinks.support import Bench, LeapingClock, Scripted, rows


@pytest.mark.parametrize(
    ("topic_filter", "topic", "matches"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a/b", "a", False),
        ("a", "a/b", False),
        ("a/+/c", "a/b/c", True),
        ("a/+", "a/", True),
        ("a/+", "a", False),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("#", "a/b", True),
        ("#", "$internal", False),
        ("+/x", "$internal/x", False),
        ("$internal/#", "$internal/x", True),
    ],
)
def test_topic_filters(topic_filter: str, topic: str, matches: bool) -> None:
    assert topic_matches(topic_filter, topic) is matches


class Stream:
    """A reader of the bus that is full for its first `refusals` offers."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.rows: list[Any] = []

    def __call__(self, topic: str, rows: Sequence[Any], at_ms: int) -> bool:
        if self.refusals:
            self.refusals -= 1
            return False
        self.rows += [(topic, dict(row), at_ms) for row in rows]
        return True


def test_every_subscriber_gets_every_row_once_though_one_is_full() -> None:
    bench = Bench(Scripted(), clock=LeapingClock())
    streams = [Stream(), Stream(refusals=3), Stream()]
    for stream in streams:
        bench.memory.subscribe("plant/#", stream)
    delivery = build_action(
        "memory", {"topic": "plant/{{.site}}"}, rule_id="r", environment=bench.environment
    )
    assert delivery.submit(rows({"site": "s", "n": 1}, at_ms=5), 1)
    assert delivery.submit(rows({"site": "t", "n": 2, "gap": None}, at_ms=6), 2)
    assert bench.await_receipts(2) == [(1, "delivered"), (2, "delivered")]
    expected = [("plant/s", {"site": "s", "n": 1}, 5), ("plant/t", {"site": "t", "n": 2}, 6)]
    assert [stream.rows for stream in streams] == [expected] * 3
    assert delivery.stats().retried == 3
    assert delivery.close(bench.clock.monotonic_ms() + PATIENCE_MS) == 0


def test_a_subscription_can_be_ended_twice() -> None:
    bus = MemoryBus()
    end = bus.subscribe("a", Stream())
    assert len(bus.subscribers("a")) == 1
    end()
    end()
    assert bus.subscribers("a") == []

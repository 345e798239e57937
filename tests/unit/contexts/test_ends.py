"""What an event costs where many partitions may end: conditions are asked once, or find the partitions by hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sql.algebra.context.ends import EventEnds
from sql.algebra.context.level_definitions import EventCondition
from sql.algebra.event import Event
from tests.unit.contexts.support import World

LIVE = 20


def test_a_condition_that_reads_the_event_alone_is_asked_once_for_all_partitions() -> None:
    asked: list[Event] = []

    def passes(event: Event, row: Sequence[Any]) -> bool:
        asked.append(event)
        return False

    point = EventCondition("E", passes)
    world = World("create context C initiated by S as s; context C select context.s.id as s from E")
    for number in range(LIVE):
        world.send("S", id=str(number))
    ends = EventEnds(point)
    assert ends.of(Event({}, 0, 0)) == ()
    for partition in world.engine.contexts["C"].life.live:
        ends.add(partition)
    assert ends.of(Event({}, 0, 0)) == ()
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("pattern", "given"),
    [
        ("T(id = s.id) -> T(id = s.id, n = 9)", 1),
        ("(T(id = s.id) or E(n = 5)) -> T(n = 9)", 1),
        ("T(n = 7) -> T(n = 9)", LIVE),
        ("T(n = 8, id = s.id)", 0),
        ("T(n > s.n) -> T(n = 9)", LIVE),
        ("every-distinct(a.n) a=T(id = s.id) -> T(n = 6)", 1),
    ],
)
def test_an_event_is_given_to_the_patterns_that_it_may_move(pattern: str, given: int) -> None:
    world = World(
        f"create context C initiated by S as s terminated by pattern [{pattern}]; "
        "context C select context.s.id as s from E"
    )
    for number in range(LIVE):
        world.send("S", id=str(number), n=0)
    root = world.engine.contexts["C"].life.root
    assert root is not None
    assert root.pattern_ends is not None
    assert len(root.pattern_ends.reached("T", {"id": "3", "n": 7})) == given
    assert len(root.pattern_ends.reached("T", {"id": None, "n": 4})) == (LIVE if "s.n" in pattern else 0)


def test_partitions_that_an_index_finds_end_by_their_patterns_in_order_of_allocation() -> None:
    world = World(
        "create context C initiated by S as s terminated by pattern [T(id = s.id) -> T(id = s.id, n = 9)]; "
        "context C select context.id as i, context.s.id as s, count(*) as c from E output last when terminated"
    )
    for name in ("a", "b", "a", "c"):
        world.send("S", id=name)
    for name in ("a", "b"):
        world.send("T", id=name, n=1)
    assert world.send("T", id="c", n=9) == []
    assert world.send("T", id="a", n=9) == [{"i": 0, "s": "a", "c": 0}, {"i": 2, "s": "a", "c": 0}]
    world.send("T", id="c", n=9)
    assert [item["s"]["id"] for item in world.engine.partitions("C")] == ["b"]
    assert world.send("T", id="b", n=9) == [{"i": 1, "s": "b", "c": 0}]


def test_the_index_of_patterns_is_restored_with_the_partitions() -> None:
    script = (
        "create context C initiated by S as s terminated by pattern [T(id = s.id) -> T(id = s.id)]; "
        "@name('r') context C select context.s.id as s, count(*) as c from E output last when terminated"
    )
    first, second = World(script), World(script)
    for name in ("a", "b"):
        first.send("S", id=name)
    first.send("T", id="b")
    for name in first.engine.queries:
        second.engine.restore(name, first.engine.snapshot(name))
    assert second.send("T", id="a") == []
    assert second.send("T", id="b") == [{"s": "b", "c": 0}]
    assert second.send("T", id="a") == [{"s": "a", "c": 0}]

"""What an event costs where many partitions may end: conditions are asked once,
or find the partitions by hash."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import pytest

from sql.algebra.context.context_conditions import EventCondition
from sql.algebra.context.ends import EventEnds, PatternEnds
from sql.algebra.context.level import LiveLevel
from sql.algebra.context.partition import Partition
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
    life = world.engine.contexts["C"].life
    assert life.root is not None
    ends = EventEnds(life.root, life, point, of_all=True)
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
    assert isinstance(root, LiveLevel)
    assert isinstance(root.ends, PatternEnds)
    assert len(root.ends.reached("T", {"id": "3", "n": 7})) == given
    assert len(root.ends.reached("T", {"id": None, "n": 4})) == (LIVE if "s.n" in pattern else 0)


@pytest.mark.parametrize("end", ["after 3 sec", "T(n = 9) as t"])
@pytest.mark.parametrize("report", ["last when terminated", "snapshot when terminated", "every 100 events"])
def test_partitions_that_end_together_give_out_what_each_gives_out_alone(end: str, report: str) -> None:
    script = (
        f"create context C initiated by S as s terminated by {end}; "
        f"context C select context.s.id as s, context.id as i, count(*) as c from E output {report}"
    ).replace("terminated by after", "terminated after")
    together, alone = World(script), World(script)
    found = []
    for world in (together, alone):
        rows = [world.send("S", id=str(number)) for number in range(3 * LIVE)]
        rows += [world.to(1000), world.send("S", id="later"), world.send("E", id="x"), world.to(3000)]
        rows += [world.send("T", id="t", n=9), world.to(9000), world.engine.partitions("C")]
        found.append(rows)
    assert found[0] == found[1]
    assert any(found[0]) is (report != "every 100 events")


def test_the_heap_gives_out_the_ends_of_one_instant_and_keeps_the_others() -> None:
    world = World(
        "create context C context K partition by k from E, "
        "context O initiated by E(n > 0) as s terminated after 5 sec; "
        "context C select context.K.key1 as k, context.O.s.id as s, count(*) as c from E "
        "output last when terminated"
    )
    for number in range(2 * LIVE):
        world.send("E", id=f"a{number}", k="a", n=1)
        world.send("E", id=f"b{number}", k="b", n=1)
    for number in range(LIVE):
        world.send("E", id=f"more{number}", k="b", n=1)
    world.to(2000)
    world.send("E", id="late", k="a", n=1)
    ended = world.to(5000)
    both = [f"{k}{number}" for number in range(2 * LIVE) for k in "ab"]
    assert [row["s"] for row in ended] == [*both, *(f"more{number}" for number in range(LIVE))]
    assert [row["s"] for row in world.to(7000)] == ["late"]
    assert world.engine.partitions("C") == []


COUNT = "context C select count(*) as c from E"


@pytest.mark.parametrize(
    ("definition", "statement"),
    [
        ("initiated by E as a terminated by pattern [S(id = a.id) or timer:interval(1 day)]", COUNT),
        ("initiated by E as a terminated by S(id = a.id)", f"{COUNT} output snapshot every 1 day"),
        ("initiated by E as a terminated by S(id = a.id)", f"{COUNT}#time(1 day)"),
        ("partition by id from E, id from S terminated by S", f"{COUNT} output last every 1 day"),
    ],
)
@pytest.mark.long
def test_what_has_ended_is_freed_before_its_time_would_have_come(definition: str, statement: str) -> None:
    before = _partitions_in_memory()
    world = World(f"create context C {definition}; {statement};")
    world.send("E", id="stays")
    for number in range(500):
        world.send("E", id=f"e{number}")
        world.send("S", id=f"e{number}")
    assert len(world.engine.partitions("C")) == 1
    assert _partitions_in_memory() - before < 200


def _partitions_in_memory() -> int:
    """Those of all tests: others may still hold theirs."""
    gc.collect()
    return sum(isinstance(each, Partition) for each in gc.get_objects())

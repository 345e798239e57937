"""Batches through a context: the statements get events together, and give out what
they give out one by one."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from sql import Emission
from tests.unit.contexts.support import World

KEYED = "create context C partition by k from E terminated by E(f) as e; "
CORRELATED = "create context C initiated by E(n = 0) as s terminated by E(n = 4, k = s.k); "

SCRIPTS = {
    "rows": KEYED + "context C select context.id as p, k, sum(n) as s, context.e.id as e from E",
    "end report": KEYED + "context C select context.key1 as k, avg(n) as a, context.e.id as e from E "
    "output last every 3 events and when terminated",
    "periods": KEYED + "context C select context.key1 as k, count(*) as c from E output last every 20 msec",
    "two statements": KEYED + "context C select k, count(*) as c from E(n > 1); "
    "context C select k, max(n) as hi from E#length(2)",
    "groups": (
        "create context C start @now end after 1 sec; context C select k, count(*) as c from E group by k"
    ),
    "correlated": CORRELATED + "context C select context.id as p, count(*) as c from E(k = context.s.k)",
    "all partitions": CORRELATED
    + "context C select context.id as p, count(*) as c from E output when terminated",
    "errors": KEYED + "context C select k, sum(v / n) as s from E having sum(v / n) > cast(id, int)",
    "two in cells": KEYED
    + "context C select context.key1 as k, count(*) as c from E(n > 1) output last when terminated; "
    "context C select k, sum(n) as s from E group by k",
    "two keys, a filter": "create context C partition by k and n from E(v < 2) "
    "initiated by E(f = false) as s terminated by E(f and v = s.v); "
    "context C select context.key2 as n, count(*) as c from E "
    "output last when terminated",
    "two correlated": CORRELATED
    + "context C select count(*) as c from E(k = context.s.k) output last when terminated; "
    "context C select context.s.n as n, sum(n) as s from E(n = context.s.n) "
    "output all every 5 msec and when terminated",
    "an end that compares": "create context C initiated by E(n < 2) as s "
    "terminated by E(k = s.k, n > s.n + 2) as e; "
    "context C select context.e.id as e, count(*) as c from E(k = context.s.k) output last when terminated",
    "an end of all": "create context C initiated by distinct(s.k) E(n < 2) as s terminated by E(f); "
    "context C select context.s.k as k, count(*) as c from E(context.s.k = k) output last when terminated",
    "an end that fails": "create context C initiated by E(n = 0) as s "
    "terminated by E(k = s.k, cast(id, int) > 0); "
    "context C select count(*) as c from E(k = context.s.k) output last when terminated",
    "periods that end": KEYED
    + "context C select context.key1 as k, count(*) as c from E output last every 30 msec "
    "and when terminated",
    "nested": "create context C context A partition by k from E, "
    "context B initiated by E(n = 0) terminated by E(n = 4); "
    "context C select context.A.key1 as k, count(*) as c from E output last when terminated",
}


def events(seed: int) -> list[dict[str, Any]]:
    """Fifty events; the same object may come twice."""
    random = Random(seed)
    made: list[dict[str, Any]] = []
    for number in range(50):
        made.append(
            {
                "id": f"e{number}",
                "k": random.choice(("A", "B", "C", None)),
                "n": random.randrange(5),
                "v": 1.0,
                "f": random.random() < 0.2,
            }
            if random.random() < 0.95 or not made
            else made[-1]
        )
    return made


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.long
def test_a_batch_gives_what_its_events_give_one_by_one(name: str, seed: int) -> None:
    alone, together = World(SCRIPTS[name]), World(SCRIPTS[name])
    expected: list[Emission] = []
    found: list[Emission] = []
    for step, first in enumerate(range(0, 50, 10), 1):
        rows = events(seed)[first : first + 10]
        for row in rows:
            expected += alone.engine.push("E", [row], 20 * step)
        found += together.engine.push("E", rows, 20 * step)
    assert by_rule(found) == by_rule(expected)
    assert found
    assert together.engine.partitions("C") == alone.engine.partitions("C")
    for rule in by_rule(found):
        assert together.engine.snapshot(rule) == alone.engine.snapshot(rule)


def by_rule(emissions: Sequence[Emission]) -> dict[str, list[Any]]:
    """What each rule gives out, in order; the order among rules is none."""
    found: dict[str, list[Any]] = {}
    for item in emissions:
        found.setdefault(item.rule, []).append(
            (item.at_ms, item.kind, item.inserted, item.removed, item.error)
        )
    return found


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.long
def test_a_partition_goes_on_where_a_snapshot_was_taken(name: str) -> None:
    straight, restarted = World(SCRIPTS[name]), World(SCRIPTS[name])
    for step, row in enumerate(events(9), 1):
        expected = straight.engine.push("E", [row], 10 * step)
        assert by_rule(restarted.engine.push("E", [row], 10 * step)) == by_rule(expected)
        world = World(SCRIPTS[name])
        world.engine.advance(10 * step)
        for rule in restarted.engine.queries:
            world.engine.restore(rule, restarted.engine.snapshot(rule))
        restarted = world


def test_the_end_of_one_that_only_the_context_hears_waits_for_no_event_of_it() -> None:
    world = World(
        "create context C partition by k from E terminated by T; "
        "context C select k, count(*) as c from E output last when terminated"
    )
    world.engine.push("E", [{"id": "a", "k": "A", "n": 1}, {"id": "b", "k": "B", "n": 1}], 10)
    (post,) = world.engine.push("T", [{"id": "x"}, {"id": "y"}], 20)
    assert post.inserted == [{"k": "A", "c": 1}, {"k": "B", "c": 1}]


def test_an_event_that_only_the_context_hears_gives_one_post_of_all_partitions() -> None:
    world = World(
        "create context C initiated by E(n = 1) as s terminated by T; "
        "context C select context.s.id as p, count(*) as c from E output snapshot when terminated"
    )
    world.engine.push("E", [{"id": "a", "n": 1}, {"id": "b", "n": 1}], 10)
    (post,) = world.engine.push("T", [{"id": "x"}], 20)
    assert post.inserted == [{"p": "a", "c": 2}, {"p": "b", "c": 1}]


def test_an_event_that_begins_an_inner_partition_and_belongs_to_another_gives_one_post() -> None:
    world = World(
        "create context C context Stay initiated by S as s terminated after 1 day, "
        "context Device partition by k from E; "
        "context C select context.Stay.s.id as stay, prev(1, id) as before from E#length(3)"
    )
    world.engine.push("S", [{"id": "first"}], 10)
    world.engine.push("E", [{"id": "a", "k": "A"}], 20)
    world.engine.push("S", [{"id": "second"}], 30)
    (post,) = world.engine.push("E", [{"id": "b", "k": "A"}], 40)
    assert post.inserted == [{"stay": "second", "before": None}, {"stay": "first", "before": "a"}]

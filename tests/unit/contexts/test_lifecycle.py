"""The life of partitions: what starts and ends them, what an event counts in, and what
they give out at the end."""

from __future__ import annotations

import json

import pytest

from sql import Catalog, Engine, run_script
from tests.unit.contexts.support import TYPES, World, rows


def test_a_partition_per_key_each_with_its_own_state() -> None:
    world = World(
        "create context C partition by k from E; "
        "context C select context.id as p, context.key1 as k, count(*) as c from E"
    )
    assert world.send("E", k="a") == [{"p": 0, "k": "a", "c": 1}]
    assert world.send("E", k=None) == [{"p": 1, "k": None, "c": 1}]
    assert world.send("E", k="a") == [{"p": 0, "k": "a", "c": 2}]


def test_an_event_that_ends_a_key_counts_nowhere() -> None:
    world = World(
        "create context C partition by k from E terminated by E(f); "
        "context C select k, count(*) as c from E output last when terminated"
    )
    assert world.send("E", k="a", f=True) == []  # it allocates, and does not end what it has just allocated
    assert world.send("E", k="b") == []
    assert world.send("E", k="a", f=True) == [{"k": "a", "c": 1}]
    assert world.engine.partitions("C") == [{"id": 1, "name": "C", "key1": "b"}]


def test_the_new_partition_sees_the_event_that_initiates_it_before_the_older_ones() -> None:
    world = World(
        "create context C initiated by E(n > 0) as s terminated after 10 sec; "
        "context C select context.s.id as s, count(*) as c from E"
    )
    world.send("E", id="a", n=1)
    assert world.send("E", id="b", n=1) == [{"s": "b", "c": 1}, {"s": "a", "c": 2}]
    assert world.send("E", id="c", n=0) == [{"s": "a", "c": 3}, {"s": "b", "c": 2}]


def test_what_is_due_at_the_end_of_a_partition_comes_before_the_end() -> None:
    world = World("create context C start @now end after 4 sec; context C select id from E#time_batch(4 sec)")
    world.send("E", id="a")
    assert world.to(4000) == [{"id": "a"}]


def test_a_higher_priority_sees_the_ending_event_in_the_old_partition() -> None:
    text = (
        "create context C start S end E(n = 9); {}context C select count(*) as c from E "
        "output last when terminated"
    )
    for priority, counted in (("", 0), ("@Priority(1) ", 1)):
        world = World(text.format(priority))
        world.send("S", id="s")
        assert world.send("E", n=9) == [{"c": counted}]


def test_a_correlated_end_ends_the_partitions_it_fits() -> None:
    world = World(
        "create context C initiated by S as s terminated by T(id = s.id, n > s.n) as t; "
        "context C select context.s.n as n, context.t.n as tn output when terminated"
    )
    for n in (1, 2, 5):
        world.send("S", id="x", n=n)
    world.send("S", id="y", n=0)
    assert world.send("T", id="x", n=3) == [{"n": 1, "tn": 3}, {"n": 2, "tn": 3}]
    assert [item["id"] for item in world.engine.partitions("C")] == [2, 3]
    assert world.send("T", id=None, n=3) == []


def test_an_interval_goes_on_for_silent_keys_and_keys_are_forgotten_inside_an_interval() -> None:
    keys_outside = World(
        "create context C context K partition by k from E, context I start @now end after 3 sec; "
        "context C select count(*) as c from E output last when terminated"
    )
    keys_outside.send("E", k="a")
    assert keys_outside.to(7000) == [{"c": 1}, {"c": 0}]
    keys_inside = World(
        "create context C context I start @now end after 3 sec, context K partition by k from E; "
        "context C select count(*) as c from E output last when terminated"
    )
    keys_inside.send("E", k="a")
    assert keys_inside.to(7000) == [{"c": 1}]


def test_a_statement_deployed_later_joins_and_one_removed_leaves_in_silence() -> None:
    world = World("create context C partition by k from E; @name('a') context C select count(*) as c from E")
    world.send("E", k="x")
    run_script(
        world.engine, "@name('b') context C select count(*) as d from E output last when terminated", 0
    )
    assert world.send("E", k="x") == [{"c": 2}]
    world.engine.remove("a")
    world.engine.remove("b")
    assert world.engine.partitions("C") == []
    run_script(world.engine, "@name('c') context C select context.id as p, count(*) as c from E", 0)
    assert world.send("E", k="y") == [{"p": 0, "c": 1}]


@pytest.mark.parametrize(("n", "partition"), [(-1, 1), (0, 0), (4, 1), (None, 0)])
def test_hashes_are_taken_without_sign(n: int | None, partition: int) -> None:
    world = World(
        "create context C coalesce by hash_code(n) from E granularity 3 preallocate; "
        "context C select context.id as p from E"
    )
    assert world.send("E", n=n) == [{"p": partition}]


def test_rows_inserted_at_the_end_are_seen_outside_and_not_inside() -> None:
    world = World(
        "create schema M (c long); create context C start S end T; "
        "context C insert into M select count(*) as c from E output last when terminated; "
        "context C select c as inside from M; select c as outside from M"
    )
    world.send("S", id="s")
    world.send("E", id="a")
    assert world.send("T", id="t") == [{"c": 1}, {"outside": 1}]


def test_too_many_partitions_are_refused_and_counted() -> None:
    world = World("create context C partition by k from E; @name('a') context C select count(*) as c from E")
    host = world.engine.contexts["C"]
    host.life.max_partitions = 2
    for k in "ab":
        world.send("E", k=k)
    of_context, emission = world.engine.push("E", [{"k": "c"}], 0)
    assert (of_context.kind, emission.kind, emission.rule) == ("error", "error", "a")
    assert "raise maxPartitions" in str(emission.error)
    assert host.counters()["partitions_refused"] == 1
    assert world.send("E", k="a") == [{"c": 2}]
    host.life.oldest_first = True
    assert world.send("E", k="c") == [{"c": 1}]
    assert [item["key1"] for item in world.engine.partitions("C")] == ["b", "c"]


def test_a_restart_between_any_two_events_changes_nothing() -> None:
    script = (
        "create context C context K partition by k from E, context I start @now end after 3 sec; "
        "@name('a') context C select context.id as p, context.K.key1 as k, count(*) as c from E "
        "output last when terminated"
    )
    world = World(script)
    out = []
    for number, (now, k) in enumerate([(500, "a"), (1000, "b"), (3600, "a"), (4100, "c"), (9000, "b")]):
        out.append(world.to(now))
        out.append(world.send("E", k=k, id=str(number)))
        states = json.loads(json.dumps({name: world.engine.snapshot(name) for name in world.engine.queries}))
        fresh = Engine(Catalog())
        run_script(fresh, TYPES + script, 0)
        for name, state in states.items():
            fresh.restore(name, state)
        assert fresh.partitions("C") == world.engine.partitions("C")
        world.engine = fresh
    found = [(row["p"], row["k"], row["c"]) for step in out for row in step]
    assert found == [(0, "a", 1), (1, "b", 1), (2, "a", 1), (3, "b", 0), (4, "c", 1)]
    assert rows(world.engine.advance(9000, "step")) == []


def test_a_variable_of_a_context_has_a_value_per_partition() -> None:
    world = World(
        "create context C partition by k from E; context C create variable int X = 10; "
        "context C on E(n > 5) set X = X + n; context C select k, X as x from E"
    )
    assert world.engine.push("E", [{"k": "a", "n": 6}], 0)[-1].inserted == [{"k": "a", "x": 16}]
    assert world.engine.push("E", [{"k": "b", "n": 1}], 0)[-1].inserted == [{"k": "b", "x": 10}]
    assert world.engine.push("E", [{"k": "a", "n": 7}], 0)[-1].inserted == [{"k": "a", "x": 23}]


def test_patterns_start_and_end_partitions() -> None:
    world = World(
        "create context C start pattern [a=E(n = 1) -> b=E(n = 2)] @inclusive as p "
        "end pattern [T(id = p.b.id) -> timer:interval(2 sec)]; "
        "context C select context.p.a.id as a, id, count(*) as c from E"
    )
    assert world.send("E", id="x", n=1) == []
    assert world.send("E", id="y", n=2) == [{"a": "x", "id": "x", "c": 1}, {"a": "x", "id": "y", "c": 2}]
    world.send("T", id="x")
    assert world.to(5000) == []
    assert world.send("E", id="z", n=1) == [{"a": "x", "id": "z", "c": 3}]
    world.send("T", id="y")
    assert world.to(7000) == []
    assert world.send("E", id="z", n=9) == []

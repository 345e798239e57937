"""The list of live partitions: order, bounds and saved state while many come and go."""

from __future__ import annotations

from random import Random

import pytest

from sql import Catalog, Engine, run_script
from sql.engine.context.context_member import ContextMember
from sql.errors import CorruptState
from tests.unit.contexts.support import TYPES, World

NESTED = (
    "create context C context K partition by k from E, "
    "context S initiated by E(n = 1) as s terminated by T(id = s.id); "
    "@name('r') context C select context.id as p, count(*) as c from E"
)


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.long
def test_partitions_stay_in_order_while_many_come_and_go(oldest_first: bool) -> None:
    random = Random(7)
    world = World(
        "create context C initiated by E(n = 1) as s terminated by E(n = 2, k = s.k); "
        "context C select count(*) as c from E output last when terminated"
    )
    life = world.engine.contexts["C"].life
    life.max_partitions, life.oldest_first = 100, oldest_first
    model: list[tuple[int, str]] = []
    number = 0
    for _ in range(3_000):
        k, n = f"k{random.randrange(150)}", random.choice((1, 1, 2))
        world.engine.push("E", [{"k": k, "n": n}], 0)
        if n == 2:
            model = [each for each in model if each[1] != k]
        elif len(model) < 100 or oldest_first:
            model = [*model[1 if len(model) == 100 else 0 :], (number, k)]
            number += 1
        assert [partition.id for partition in life.live] == [each for each, _ in model]
        assert len(life.live) == len(model)
        probe = random.randrange(number)
        found = life.live.get(probe)
        assert (None if found is None else found.id) == (probe if probe in dict(model) else None)


def test_the_oldest_of_all_levels_makes_room() -> None:
    world = World(NESTED)
    life = world.engine.contexts["C"].life
    life.max_partitions, life.oldest_first = 2, True
    for k, s in (("a", "x"), ("b", "y"), ("a", "z")):
        world.send("E", k=k, n=1, id=s)
    found = world.engine.partitions("C")
    assert [(each["id"], each["K"]["key1"], each["S"]["s"]["id"]) for each in found] == [
        (1, "b", "y"),
        (2, "a", "z"),
    ]


def test_state_saved_with_two_numbers_per_partition_is_restored() -> None:
    world = World(NESTED)
    for k in "ab":
        world.send("E", k=k, n=1, id=k)
    states = {name: world.engine.snapshot(name) for name in world.engine.queries}
    host = next(state for state in states.values() if "life" in state)
    host["version"] = 1
    # Version 1 counted all partitions, outer ones too, and the innermost by themselves.
    root = host["life"]["root"]
    host["life"]["serial"] = 4
    for serial, packed in zip((0, 2), root["partitions"], strict=True):
        packed[2:3] = [serial, -1]
        inner = packed[5]["partitions"][0]
        inner[2:3] = [serial + 1, inner[2]]
    fresh = Engine(Catalog())
    run_script(fresh, TYPES + NESTED, 0)
    for name, state in states.items():
        fresh.restore(name, state)
    assert fresh.partitions("C") == world.engine.partitions("C")
    (emission,) = fresh.push("E", [{"k": "c", "n": 1, "id": "c"}], 0)
    assert emission.inserted == [{"p": 2, "c": 1}]


def test_partitions_begin_without_what_was_declared_and_removed() -> None:
    world = World(
        "create context C partition by k from E; "
        "@name('v') context C create variable int x = 1; "
        "@name('w') context C create window W#keepall as (k string, n int); "
        "@name('c') context C select count(*) as c from E"
    )
    first = world.engine.push("E", [{"k": "a", "n": 1}], 0)
    for name in ("w", "v"):
        world.engine.remove(name)
    second = world.engine.push("E", [{"k": "b", "n": 1}], 1)
    for emissions in (first, second):
        assert [(each.rule, each.kind, each.inserted) for each in emissions] == [("c", "rows", [{"c": 1}])]


SIZED = (
    "create context C initiated by S as s terminated by T(id = s.id); "
    "context C select count(*) as c from E; "
    "context C select context.s.id as s, id from E#length(context.s.n)"
)


@pytest.mark.parametrize("size", [None, 0, -1])
def test_a_partition_in_which_a_statement_cannot_begin_is_none(size: int | None) -> None:
    world = World(SIZED)
    found = world.engine.push("S", [{"id": "bad", "n": size}, {"id": "good", "n": 1}], 0)
    assert [item.kind for item in found] == ["error"] * 3, "of the context and its statements"
    assert [each["s"]["id"] for each in world.engine.partitions("C")] == ["good"]
    assert world.engine.counters("context C")["partitions_started"] == 1
    assert world.send("E", id="e") == [{"c": 1}, {"s": "good", "id": "e"}]
    assert world.send("T", id="bad") == []


def test_what_was_refused_is_not_in_the_saved_state() -> None:
    world, again = World(SIZED), World(SIZED)
    world.engine.push("S", [{"id": "bad", "n": None}, {"id": "good", "n": 1}], 0)
    for name in world.engine.queries:
        again.engine.restore(name, world.engine.snapshot(name))
    assert [each["s"]["id"] for each in again.engine.partitions("C")] == ["good"]


def test_a_start_by_time_that_fails_is_followed_by_the_next() -> None:
    world = World(
        "create variable int size = 1; create context C start (*, *, *, *, *, */10) end after 2 sec; "
        "context C select context.startTime as t, id from E#length(size)"
    )
    world.engine.set_variable("size", 0)
    (of_context, of_statement) = world.engine.advance(10_000, "step")
    assert of_context.error == of_statement.error
    assert "at least 1, not 0" in str(of_context.error)
    world.engine.set_variable("size", 2)
    world.to(20_000)
    assert world.send("E", id="e") == [{"t": 20_000, "id": "e"}]


def test_a_start_by_a_pattern_that_fails_is_followed_by_the_next() -> None:
    world = World(
        "create context C start pattern [s=S -> T] end after 1 sec; "
        "context C select context.s.id as s, id from E#length(context.s.n)"
    )
    world.send("S", id="bad", n=0)
    assert [item.kind for item in world.engine.push("T", [{"id": "x"}], 0)] == ["error", "error"]
    for stream, n in (("S", 1), ("T", 0)):
        world.send(stream, id="good", n=n)
    assert world.send("E", id="e") == [{"s": "good", "id": "e"}]


def test_a_statement_that_takes_its_own_place_inserts_nothing_again() -> None:
    world = World(
        "create context C initiated by S as s terminated after 5 sec;"
        "context C insert into M select context.s.id as id; select id, count(*) as c from M"
    )
    engine = world.engine
    (member,) = (query for query in engine.queries.values() if isinstance(query, ContextMember))
    assert world.send("S", id="a") == [{"id": "a"}, {"id": "a", "c": 1}]
    engine.deploy(member.name, member.inner, 0, engine.snapshot(member.name))
    assert world.send("S", id="b") == [{"id": "b"}, {"id": "b", "c": 2}]


def test_a_row_without_from_enters_a_window_of_the_partition_once() -> None:
    world = World(
        "create context C start S end T; context C create window W#keepall(id int);"
        "@name('one') context C insert into W select 1 as id; @name('seen') context C select id from W"
    )
    engine = world.engine
    assert world.send("S") == [{"id": 1}] * 3  # of the insert, of the window, of what reads it
    member = engine.queries["one"]
    assert isinstance(member, ContextMember)
    engine.deploy("one", member.inner, 0, engine.snapshot("one"))
    assert world.send("E") == []
    assert engine.read("seen") == [{"id": 1}]


def test_a_statement_begins_again_with_the_values_that_its_state_has() -> None:
    script = (
        "create variable int size = 2; create context C partition by k from E; "
        "context C select k, id from E#length(size)"
    )
    world, again = World(script), World(script)
    world.send("E", k="a", id="e")
    (rule,) = (name for name in world.engine.queries if name != "context C")
    context, state = world.engine.snapshot("context C"), world.engine.snapshot(rule)
    again.engine.set_variable("size", 0)
    again.engine.restore("context C", context)
    again.engine.restore(rule, state)
    assert again.engine.read(rule) == [{"k": "a", "id": "e"}]
    for _, body in state["bodies"]:
        del body["began"]  # as an earlier version wrote it
    again = World(script)
    again.engine.set_variable("size", 0)
    again.engine.restore("context C", context)
    with pytest.raises(CorruptState, match="cannot begin again"):
        again.engine.restore(rule, state)


def test_a_statement_that_takes_its_own_place_counts_the_rows_of_a_window_once() -> None:
    world = World(
        "create context C partition by k from E; context C create window W#keepall as E;"
        "context C insert into W select * from E;"
        "@name('one') context C select w.id as id, prior(2, w.id) as p from W as w"
    )
    engine = world.engine
    world.send("E", id="e1", k="A")
    member = engine.queries["one"]
    assert isinstance(member, ContextMember)
    engine.deploy("one", member.inner, 0, engine.snapshot("one"))
    found = [row for row in world.send("E", id="e2", k="A") if "p" in row]
    assert found == [{"id": "e2", "p": None}]

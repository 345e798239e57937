"""Partitions while statements come and go, and their bound; `tests/scenarios/contexts` has the rest."""

from __future__ import annotations

from sql import run_script
from tests.unit.contexts.support import World


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

"""The memory of a rule, held against what the interpreter itself has allocated."""

from __future__ import annotations

import gc
import sys
import tracemalloc

import pytest

from edge.monitor.footprint import AGAIN_MS, OBJECTS_AT_ONCE, Memory, footprint
from sql import Catalog, Engine
from sql.algebra.event import Event
from sql.engine.script import run_script
from tests.support.streams import engine_of


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT dev, avg(temp) AS a, max(temp) AS b FROM m GROUP BY dev, TUMBLINGWINDOW(mi, 30)",
        "SELECT dev, collect(*) AS c FROM m GROUP BY dev, TUMBLINGWINDOW(mi, 30)",
        "SELECT avg(temp) AS a FROM m#length(20000)",
    ],
)
@pytest.mark.long
def test_it_is_near_what_was_allocated(sql: str) -> None:
    engine = engine_of("CREATE STREAM m () WITH (DATASOURCE='m', FORMAT='json')", sql)
    shared = engine.common
    engine.push("m", [{"dev": "first", "temp": 0.5}], 0)
    gc.collect()
    tracemalloc.start()
    try:
        before = footprint(engine.queries["r"], shared)
        for start in range(0, 20_000, 500):
            engine.push("m", [{"dev": f"d{n}", "temp": n + 0.5} for n in range(start, start + 500)], 0)
        gc.collect()
        allocated, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    grown = footprint(engine.queries["r"], shared) - before
    assert grown == pytest.approx(allocated, rel=0.2)
    assert grown > 500_000


def test_shared_things_count_for_nobody() -> None:
    shared = [bytes(100_000)]
    assert footprint({"own": bytes(1_000), "shared": shared}, [shared]) < 2_000


def test_a_look_walks_few_objects_and_every_rule_has_its_turn() -> None:
    engine = Engine(Catalog())
    run_script(engine, "create schema E(k string, n int); @name('long') select * from E#length(5000)", 0)
    memory = Memory(engine)
    while memory.look(0):
        pass
    before = memory.known["long"]
    engine.push("E", [{"k": f"k{n}", "n": n} for n in range(200)], 0)
    assert not memory.look(AGAIN_MS - 1) and memory.known["long"] == before, "it is not walked again so soon"
    looks = 1
    while memory.look(AGAIN_MS):
        looks += 1
    assert looks > 1, f"more than {OBJECTS_AT_ONCE} objects are walked in several looks"
    assert memory.known["long"] - before > 200 * 100
    engine.remove("long")
    while memory.look(2 * AGAIN_MS):
        pass
    assert "long" not in memory.known


@pytest.mark.long
def test_the_state_in_partitions_counts_once_at_the_context() -> None:
    engine = Engine(Catalog())
    rules = "".join(f"@name('r{n}') context C select k, n from E#length(50);" for n in range(3))
    run_script(engine, f"create schema E(k string, n int); create context C partition by k from E;{rules}", 0)
    for n in range(4_000):
        engine.push("E", [{"k": f"k{n % 40}", "n": n}], n)
    memory = Memory(engine)
    while memory.look(0):
        pass
    host = engine.contexts["C"]
    state = 3 * 40 * 50 * sys.getsizeof(Event({}, 0, 0))
    assert state < memory.of_context(host) < 20 * state, "three rules hold 50 events in each of 40 partitions"
    assert all(memory.known[f"r{n}"] < state / 10 for n in range(3))
    assert memory.of_context(host) == pytest.approx(footprint(host, engine.common), rel=0.2)


def test_what_serves_all_rules_is_none_of_theirs() -> None:
    engine = Engine(Catalog())
    run_script(
        engine,
        "create schema E(k string, n int); create table T(k string primary key, n int);"
        "create context C partition by k from E; @name('small') context C select count(*) as c from E;"
        "@name('large') select * from E#length(5000)",
        0,
    )
    for n in range(5000):
        engine.push("E", [{"k": "a", "n": n}], n)
    large = footprint(engine.queries["large"], engine.common)
    assert large > 500_000
    assert all(
        footprint(query, engine.common) < large / 5
        for name, query in engine.queries.items()
        if name != "large"
    )

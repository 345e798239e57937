"""The memory of a rule, held against what the interpreter itself has allocated."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from edge.monitor.footprint import AGAIN_MS, OBJECTS_AT_ONCE, RuleMemory, footprint
from sql import Catalog, Engine
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


def test_many_rules_are_looked_at_in_turns() -> None:
    rules: dict[str, list[object]] = {f"r{number}": [object() for _ in range(99)] for number in range(110)}
    assert OBJECTS_AT_ONCE == 50 * 100
    memory = RuleMemory()
    sizes = [len(memory.look(rules, (), 0)) for _ in range(3)]
    assert sizes == [50, 100, 110], "each of them is a hundred objects"
    before = memory.look(rules, (), 0)["r0"]
    rules["r0"].append(bytes(10_000))
    assert memory.look(rules, (), AGAIN_MS - 1)["r0"] == before, "it is not walked again so soon"
    found = [memory.look(rules, (), again * AGAIN_MS)["r0"] for again in (1, 2, 3)]
    assert max(found) - before > 10_000, "every rule has its turn within three questions"
    del rules["r0"]
    assert "r0" not in memory.look(rules, (), 4 * AGAIN_MS)


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

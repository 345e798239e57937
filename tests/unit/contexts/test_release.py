"""A partition that has ended leaves nothing for the garbage collector, which a gateway runs seldom: a context
whose keys come and go would else take more memory with each of them, for hours."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sql import Catalog, Engine, run_script

TYPES = "create schema m (dev string, n int, kind string);"
CONTEXTS = (
    "create context C partition by dev from m terminated by m(kind = 'stop');",
    "create context C initiated by m(kind = 'start') as s terminated after 2 sec;",
)
STATEMENTS = (
    "select sum(n) as s from m#length(2)",
    "select dev, count(*) as c from m#time_batch(1 sec) group by dev",
    "select * from pattern [every a=m(kind = 'start') -> b=m(kind = 'stop', dev = a.dev)]",
    "select * from pattern [every (a=m -> [2] b=m(n > 1) until m(kind = 'stop')) where timer:within(9 sec)]",
    "select * from m#length(3) match_recognize (measures a.n as an pattern (a b+) define a as a.n = 0)",
    "select dev, (select count(*) from m#time(2 sec)) as c from m(kind = 'start')",
    "select dev, (select max(n) from m#length(2) as o where o.n < m.n) as c from m",
    "select dev, sum(n) as s from m#time(3 sec) group by dev output last every 1 sec",
    "select a.n as x, b.n as y from m#length(1) as a, m#length(2) as b where a.dev = b.dev",
)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.long
def test_an_ended_partition_leaves_no_circles(statement: str, context: str) -> None:
    engine = Engine(Catalog())
    run_script(engine, f"{TYPES}{context}context C {statement};", 0)
    lives(engine, range(20))
    with uncollected() as garbage:
        lives(engine, range(20, 40))
    assert Counter(type(item).__name__ for item in garbage) == {}


def lives(engine: Engine, keys: range) -> None:
    """Of each key three events a second apart; the last one ends its partition where an event does."""
    for key in keys:
        for n, kind in enumerate(("start", "on", "stop")):
            now_ms = (3 * key + n) * 1000
            engine.advance(now_ms)
            engine.push("m", [{"dev": f"d{key}", "n": n, "kind": kind}], now_ms)


@contextmanager
def uncollected() -> Iterator[list[object]]:
    """What only the garbage collector would free of what has become unreachable in the block."""
    gc.collect()
    gc.disable()
    found: list[object] = []
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

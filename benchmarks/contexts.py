"""The benchmarks of contexts: what an event costs from payload to result, with so many partitions alive."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial

from benchmarks.measure import Bench, Result, Work, against_decoding, against_smallest
from benchmarks.patterns import pairs, payload
from benchmarks.rules import messages

KEYED = (
    "create context ByDev partition by dev from m",
    "context ByDev select context.key1 as dev, avg(temp) as a, count(*) as c from m "
    "output last every 100 events",
)
GROWING = (
    "create context ByKey partition by k from m",
    "context ByKey select context.key1 as k, count(*) as c from m output last every 100 events",
)
OVERLAPPING = (
    "create context Orders initiated m(n=1) as s terminated m(n=2, k=s.k)",
    "context Orders select context.s.k as k, count(*) as c from m(k=context.s.k) output last when terminated",
)
OPEN = (
    "create context Each initiated m(n=1) as s terminated m(n=2, k=s.k)",
    "context Each select context.s.k as k, count(*) as c, avg(hum) as h from m(k=context.s.k) "
    "output last when terminated",
)
SPAN = (
    "create context Ten start @now end after 10 sec",
    "context Ten select avg(temp) as a, count(*) as c, max(temp) as hi from m output last when terminated",
)


def many_alive() -> Result:
    """An event for one of 100,000 live partitions."""
    benches = {
        live: Bench(GROWING[1:], pairs(live // 2, 200_000), before=GROWING[:1]) for live in (1_000, 100_000)
    }
    return against_smallest("context_1e5", benches, 2.0, rounds=3)


def bytes_each() -> Result:
    """The memory of a partition with one running average, its key's text included, at 100,000."""
    live = 100_000
    rule = "context ByKey select avg(seq) as a from m"
    bench = Bench([rule], pairs(live // 2, 2 * live), before=GROWING[:1])
    return Result("context_bytes", allocated(bench.run) / live, "bytes", bar=600.0)


def allocated(work: Work) -> int:
    """How many bytes are allocated by some work, and kept."""
    gc.collect()
    tracemalloc.start()
    work()
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return grown


def orders(live: int, count: int) -> list[bytes]:
    """Each order starts, has eight steps and is done; so many are under way, each at another step."""
    gap = live // 10
    return [
        payload((number - step * gap) % (2 * live), kind(step), 10 * number + step)
        for number in range(count // 10)
        for step in range(10)
    ]


def kind(step: int) -> int:
    """What a step of an order says: 1 it starts, 2 it is done, 3 neither."""
    return {0: 1, 9: 2}.get(step, 3)


def single(name: str, rule: tuple[str, str], made: Callable[[], list[bytes]], bar: float) -> Result:
    """One context with one statement."""
    return against_decoding(name, rule[1:], made(), bar, rounds=5, before=rule[:1])


CASES: dict[str, Callable[[], Result]] = {
    "context_keyed": partial(single, "context_keyed", KEYED, partial(messages, 100), 5.0),
    "context_1e5": many_alive,
    "context_bytes": bytes_each,
    "context_overlapping": partial(
        single, "context_overlapping", OVERLAPPING, partial(orders, 1_000, 100_000), 6.0
    ),
    "context_open": partial(single, "context_open", OPEN, partial(pairs, 1, 100_000), 15.0),
    "context_10s": partial(single, "context_10s", SPAN, partial(messages, 100), 2.2),
}

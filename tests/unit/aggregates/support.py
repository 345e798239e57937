"""Events and runs for tests of accumulators."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sql.aggregates.base import Accumulator, EventView, Removal


@dataclass(frozen=True)
class Arrival:
    """An event: its place, its instant, its row."""

    seq: int
    time_ms: int = 0
    row: Any = None


def over(make: Callable[..., Accumulator], values: Sequence[Any], *constants: Any) -> Any:
    """The result over values that only come."""
    accumulator = make(Removal.NEVER, *constants)
    for seq, value in enumerate(values):
        accumulator.add(value, Arrival(seq))
    return accumulator.result()


def windowed(
    make: Callable[..., Accumulator], values: Sequence[Any], length: int, *constants: Any
) -> list[Any]:
    """The result after each value, over the last `length` of them; what leaves does so
    after the new one came."""
    accumulator = make(Removal.FIFO, *constants)
    results = []
    for seq, value in enumerate(values):
        accumulator.add(value, Arrival(seq))
        if seq >= length:
            accumulator.remove(values[seq - length], Arrival(seq - length))
        results.append(accumulator.result())
    return results


Live = list[tuple[Any, EventView]]


def steps(accumulator: Accumulator, values: Sequence[Any], removal: Removal, seed: int) -> Iterator[Live]:
    """Add and remove values by chance; yields what is in the accumulator after each step, oldest first."""
    chance = random.Random(seed)
    live: Live = []
    for seq, value in enumerate(values):
        event = Arrival(seq, seq * 10, {"v": value})
        accumulator.add(value, event)
        live.append((value, event))
        yield live
        while live and removal is not Removal.NEVER and chance.random() < 0.45:
            gone, event_gone = live.pop(0 if removal is Removal.FIFO else chance.randrange(len(live)))
            accumulator.remove(gone, event_gone)
            yield live
    while live and removal is not Removal.NEVER:
        accumulator.remove(*live.pop(0))
        yield live


def reborn(accumulator: Accumulator, fresh: Accumulator, live: Live) -> Accumulator:
    """`fresh` with the state of `accumulator`, taken through JSON text."""
    events = {event.seq: event for _, event in live} | {event.seq: event for event in accumulator.held()}
    fresh.restore(json.loads(json.dumps(accumulator.snapshot(), allow_nan=False)), events.__getitem__)
    return fresh


def same(a: Any, b: Any, relative: float = 1e-12) -> bool:
    """Equal values, where NaN is NaN, 1 is not 1.0 nor TRUE, and floats may differ in the last digits."""
    if a.__class__ is not b.__class__:
        return False
    if isinstance(a, float):
        return (a != a and b != b) or a == b or math.isclose(a, b, rel_tol=relative)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    return bool(a == b)

"""Drive rules with recorded events: time moves with the data, and timers fire between the events as they would have.

The cloud's backfill takes events of many streams one by one; `penstock replay` pushes those of its only stream many at
a time, with their instants (`Engine.push_instants`), which gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sql import Emission, Engine, Plan

Arrival = tuple[int, str, dict[str, Any]]
"""When an event arrived (ms), at which stream, and the event."""


def drive(engine: Engine, plans: Mapping[str, Plan], arrivals: Iterable[Arrival]) -> Iterator[Emission]:
    """Deploy the rules at the first arrival, push all, and close the windows that are open at the end."""
    now_ms: int | None = None
    for at_ms, stream, row in arrivals:
        if now_ms is None:
            now_ms = at_ms
            for name, plan in plans.items():
                engine.deploy(name, plan, now_ms)
        now_ms = max(now_ms, at_ms)  # an event that was recorded late arrives now, whatever time it bears
        yield from advance(engine, now_ms)
        yield from engine.push(stream, [row], now_ms)
    if now_ms is not None:
        yield from engine.flush(now_ms)


def advance(engine: Engine, to_ms: int) -> Iterator[Emission]:
    """Fire every timer due until `to_ms`, each at its own instant."""
    while (deadline_ms := engine.next_deadline_ms()) is not None and deadline_ms < to_ms:
        yield from engine.advance(deadline_ms)
        if engine.next_deadline_ms() == deadline_ms:
            break
    yield from engine.advance(to_ms)

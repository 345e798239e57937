"""Windows that hold events back and release them together."""

from __future__ import annotations

from typing import Any

from sql.algebra.gate.triggers import AfterCount, CountOrSince, DataBoundary, EveryTrigger, WhenTrue
from sql.algebra.windows.catalog import Start, WindowSpec, parameters, register_window
from sql.algebra.windows.facts import Stage
from sql.costs import Extra, Growth, WindowCost


def _flags(flags: frozenset[str], start: Start) -> dict[str, Any]:
    return {"force": "FORCE_UPDATE" in flags, "start_ms": start.now_ms if "START_EAGER" in flags else None}


register_window(
    WindowSpec(
        name="length_batch",
        role="batch",
        parameters=parameters("size:size"),
        make=lambda start, size: AfterCount(size),
        composition=(
            Stage("Gate", "count {n}"),
            Stage("Retain", "generation"),
        ),
        cost=WindowCost(Growth.AMORTISED),
        state="{n:2} events",
        example="E#length_batch(5)",
        summary="groups of n",
    ),
    WindowSpec(
        name="time_batch",
        role="batch",
        parameters=parameters("period:period reference:reference? flags:flags?"),
        make=lambda start, period, reference, flags: EveryTrigger(
            period, start.zone, reference, **_flags(flags, start)
        ),
        composition=(
            Stage("Gate", "every {d}", origin="first event | reference | start"),
            Stage("Retain", "generation"),
        ),
        state="the events of {d:2}",
        clock="processing",
        example='E#time_batch(10 sec, 5000L, "FORCE_UPDATE")',
        summary="what came in each d",
    ),
    WindowSpec(
        name="time_length_batch",
        role="batch",
        parameters=parameters("period:period size:size flags:flags?"),
        make=lambda start, period, size, flags: CountOrSince(
            period, start.zone, size, **_flags(flags, start)
        ),
        composition=(
            Stage("Gate", "first of: {d} since release, {n}"),
            Stage("Retain", "generation"),
        ),
        state="{n:2} events",
        clock="processing",
        example="E#time_length_batch(10 sec, 100)",
        summary="n events or what came in d, whichever is first",
    ),
    WindowSpec(
        name="ext_timed_batch",
        role="batch",
        parameters=parameters("timestamp:timestamp period:period reference:reference?"),
        make=lambda start, timestamp, period, reference: DataBoundary(
            timestamp.of, period, start.zone, reference, lasts=timestamp.lasts
        ),
        composition=(
            Stage("Gate", "data boundary {ts}, {d}"),
            Stage("Retain", "generation"),
        ),
        state="the events of {d:2}",
        clock="the events' own",
        example="E#ext_timed_batch(ts, 10 sec)",
        summary="what came in each d of the events' own time",
    ),
    WindowSpec(
        name="expr_batch",
        role="batch",
        parameters=parameters("predicate:predicate include:include?"),
        make=lambda start, predicate, include: WhenTrue(predicate, True if include is None else include),
        composition=(
            Stage("Gate", "when {predicate}"),
            Stage("Retain", "generation"),
        ),
        cost=WindowCost(besides=(Extra.PREDICATE,)),
        state="2 batches",
        example="E#expr_batch(newest_event.k != oldest_event.k, false)",
        summary="a batch when the predicate becomes true",
    ),
)

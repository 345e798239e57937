"""Stream queries: one net lot per activation, from the formulas of stream-queries.md sections 2 and 3.

The content of a window at an instant is a function of what has arrived. What a query posts is the difference
between two contents: an item that came and went in between was never there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sql.plan.clauses import LotPlan
from sql.plan.logical import Plan
from tests.reference.expressions import Place, Row, evaluate, holds
from tests.reference.members import period_ms
from tests.reference.rows import Event, Values, groups, key, output


class Activation(NamedTuple):
    """A step of the query: its instant, all that has arrived by then, and whether an item arrives in it."""

    at_ms: int
    arrived: list[Event]
    is_arrival: bool


def run(plan: Plan, steps: list[dict[str, Any]], created_ms: int = 0) -> list[tuple[int, list[Row]]]:
    """Every lot as (instant, rows), for a query over one stream."""
    lot = plan.sources[0].lot
    assert lot is not None and not plan.joins
    arrivals, now = [], created_ms
    for seq, step in enumerate(steps):
        now = step.get("advance", now)
        if "send" in step:
            arrivals.append(Event(now, seq, step["event"]))
    if plan.selector == "irstream":
        raise NotImplementedError("the twin of stream queries posts one of both streams")
    out: list[tuple[int, list[Row]]] = []
    before: list[Event] = []
    for activation in activations(lot, arrivals, created_ms, now):
        after = [event for event in content(lot, activation) if holds(plan.where, Place((event.row,)))]
        rows = rows_of(plan, before, after)
        out += [(activation.at_ms, rows)] if rows else []
        before = after
    return out


def activations(lot: LotPlan, arrivals: list[Event], created_ms: int, now: int) -> Iterator[Activation]:
    """When the query may run.

    `every p`: at the update points created + k * p; a point's lot holds the arrivals of its instant, so that
    it closes when the clock moves on. Otherwise at each instant something expires, and then with each item of
    that instant.
    """
    if lot.every_period is not None:
        for point in range(created_ms, now, period_ms(lot.every_period)):
            yield Activation(point, [event for event in arrivals if event.time_ms <= point], False)
        return
    lengths = [period_ms(window.length) for window in lot.windows if window.length is not None]
    expiries = {event.time_ms + length_ms for event in arrivals for length_ms in lengths}
    for at_ms in sorted({event.time_ms for event in arrivals} | expiries):
        if at_ms in expiries and at_ms <= now:
            yield Activation(at_ms, [event for event in arrivals if event.time_ms < at_ms], False)
        for index, event in enumerate(arrivals):
            if event.time_ms == at_ms:
                yield Activation(at_ms, arrivals[: index + 1], True)


def content(lot: LotPlan, activation: Activation) -> list[Event]:
    """What the window shows, in order of arrival."""
    shown = [
        event
        for part in groups(lot.partition_by, activation.arrived).values()
        for event in shown_of(lot, part, activation)
    ]
    return sorted(shown, key=lambda event: event.seq)


def shown_of(lot: LotPlan, part: list[Event], activation: Activation) -> list[Event]:
    """What is left of one partition's arrivals."""
    if not lot.windows:
        return activation.arrived[-1:] if activation.is_arrival and activation.arrived[-1] in part else []
    if lot.every_count is not None:
        every = evaluate(lot.every_count, Place())
        part = part[: len(part) // every * every]
    for window in lot.windows:
        if window.length is not None:
            end_ms = activation.at_ms - period_ms(window.length)
            part = [event for event in part if end_ms < event.time_ms]
        elif window.count is not None:
            part = part[-evaluate(window.count, Place()) :]
    if lot.unique:
        # Applied last: of equal keys only the newest counts, though the older takes its place.
        part = list({key(lot.unique, event): event for event in part}.values())
    return part


def rows_of(plan: Plan, before: list[Event], after: list[Event]) -> list[Row]:
    """The lot: plain rows of what entered or (rstream) left; aggregates once, if the content changed."""
    inserted = [event for event in after if event not in before]
    removed = [event for event in before if event not in after]
    if not inserted and not removed:
        return []
    if plan.row_kind == "plain":
        chosen = removed if plan.selector == "rstream" else inserted
        return output(plan, [Values(plan, [], event) for event in chosen])
    if plan.row_kind == "aggregate":
        return output(plan, [Values(plan, after, (inserted + removed)[0])])
    changed = groups(plan.group_by, inserted + removed)
    covered = groups(plan.group_by, after)
    return output(plan, [Values(plan, covered.get(name, []), part[0]) for name, part in changed.items()])

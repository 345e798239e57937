"""eKuiper's windows: which events a window shows, and when. From the table of ekuiper.md section 11 and
semantics.md.

A window function takes all events that passed FILTER, ordered by (time, arrival), and how far the clock has
come, and gives every sample: when, from where to where, and at which events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from sql.plan.bound import Bound
from sql.plan.clauses import GroupWindowPlan
from sql.plan.logical import Plan
from tests.reference.expressions import Place, Row, holds
from tests.reference.rows import Event, Values, groups, output


class Sample(NamedTuple):
    """A window seen at an instant. The window's bounds are the nominal ones."""

    at_ms: int
    start_ms: int
    end_ms: int
    members: list[Event]


YEAR_10000_MS = 253_402_300_800_000


@dataclass(frozen=True)
class Arrived:
    """What came in: the events in time, ordered; how far the clock has come (infinite after a flush); the
    late ones."""

    events: list[Event]
    clock_ms: float
    late: int
    start_ms: int


def arrived(plan: Plan, steps: list[dict[str, Any]]) -> Arrived:
    """Event time: the watermark is the highest time stamp less the tolerance; what is below it is late, and
    what no calendar knows is refused."""
    events: list[Event] = []
    now = late = 0
    watermark: float = -inf
    for seq, step in enumerate(steps):
        if "advance" in step:
            now = step["advance"]
        elif "flush" in step:
            watermark = inf
        elif plan.timestamp is None:
            events.append(Event(now, seq, step["event"]))
        elif step["event"][plan.timestamp] >= YEAR_10000_MS:
            continue
        elif step["event"][plan.timestamp] < watermark:
            late += 1
        else:
            events.append(Event(step["event"][plan.timestamp], seq, step["event"]))
            watermark = max(watermark, events[-1].time_ms - plan.options.late_tolerance_ms)
    clock = watermark if plan.timestamp is not None or watermark == inf else now
    start = next((step["advance"] for step in steps if "advance" in step), 0)
    return Arrived(sorted(events, key=lambda event: (event.time_ms, event.seq)), clock, late, start)


def run(plan: Plan, steps: list[dict[str, Any]]) -> tuple[list[tuple[int, list[Row]]], int]:
    """Every emission as (instant, rows), and the number of late events."""
    window = plan.window
    assert window is not None and not plan.analytics and plan.options.zone == "UTC"
    inputs = arrived(plan, steps)
    entered = [event for event in inputs.events if _true(window.filter, event)]
    out = []
    for members in groups(window.partition_by, entered).values():
        for sample in WINDOWS[window.kind](window, members, inputs.clock_ms):
            if sample.at_ms <= inputs.clock_ms:
                rows = rows_of(plan, sample)
                out += [(sample.at_ms, rows)] if rows else []
    return sorted(out, key=lambda emission: emission[0]), inputs.late


def rows_of(plan: Plan, sample: Sample) -> list[Row]:
    """WHERE, then GROUP BY, aggregates and the rest. An empty window gives nothing."""
    kept = [event for event in sample.members if _true(plan.where, event)]
    bounds = {"start": sample.start_ms, "end": sample.end_ms, "trigger": sample.at_ms}
    if plan.judges_windows or not (plan.aggregates or plan.group_by):
        return output(plan, [Values(plan, kept, event, bounds) for event in kept])
    # A plain column of a grouped row is that of the group's first row.
    return output(
        plan, [Values(plan, part, part[0], bounds) for part in groups(plan.group_by, kept).values()]
    )


def _true(condition: Bound | None, event: Event) -> bool:
    return holds(condition, Place((event.row,)))


def tumbling(window: GroupWindowPlan, events: list[Event], clock_ms: float) -> list[Sample]:
    """`[S, S + length)`, S on the grid, fires at its end."""
    return _grid(window.length_ms, window.length_ms, events)


def hopping(window: GroupWindowPlan, events: list[Event], clock_ms: float) -> list[Sample]:
    """`[E - length, E)`, E on the grid of hops, fires at E."""
    return _grid(window.length_ms, window.hop_ms, events)


def _grid(length_ms: int, hop_ms: int, events: list[Event]) -> list[Sample]:
    ends = {
        end
        for event in events
        for end in range(_next(event.time_ms, hop_ms), event.time_ms + length_ms + 1, hop_ms)
    }
    return [Sample(end, end - length_ms, end, _within(events, end - length_ms, end)) for end in sorted(ends)]


def _next(t_ms: int, length_ms: int) -> int:
    """The first multiple of a length after an instant: the grid does not depend on when the rule started."""
    return t_ms - t_ms % length_ms + length_ms


def _within(events: list[Event], start_ms: int, end_ms: int) -> list[Event]:
    return [event for event in events if start_ms <= event.time_ms < end_ms]


def sliding(window: GroupWindowPlan, events: list[Event], clock_ms: float) -> list[Sample]:
    """`(t - length, t]` at each triggering event, up to itself; delayed `(t - length, t + delay)`."""
    out = []
    for index, event in enumerate(events):
        if not _true(window.when, event):
            continue
        start, end = event.time_ms - window.length_ms, event.time_ms + window.delay_ms
        members = (
            _within(events, start + 1, end)
            if window.delay_ms
            else _within(events[: index + 1], start + 1, end + 1)
        )
        out.append(Sample(end, start, end, members))
    return out


def session(window: GroupWindowPlan, events: list[Event], clock_ms: float) -> list[Sample]:
    """From its first event to last + timeout, or to the first tick T of the grid of max
    with T - first >= max."""
    out, rest = [], events
    while rest:
        first = rest[0].time_ms
        tick = _next(first + window.length_ms - 1, window.length_ms)
        members, close = rest[:1], min(first + window.timeout_ms, tick)
        for event in rest[1:]:
            if event.time_ms >= close:
                break
            members, close = [*members, event], min(event.time_ms + window.timeout_ms, tick)
        out.append(Sample(close, first, close, members))
        rest = rest[len(members) :]
    return out


def count(window: GroupWindowPlan, events: list[Event], clock_ms: float) -> list[Sample]:
    """After each `interval`-th event, once `size` are there: the last `size`."""
    out = []
    for n in range(window.interval, len(events) + 1, window.interval):
        members = events[max(0, n - window.size) : n]
        if len(members) == window.size:
            out.append(Sample(members[-1].time_ms, members[0].time_ms, members[-1].time_ms, members))
    return out


def state(window: GroupWindowPlan, events: list[Event], clock_ms: float) -> list[Sample]:
    """From a beginning event to an emitting one (not tested on the first); or from one
    beginning to the next."""
    out: list[Sample] = []
    held: list[Event] = []
    for event in events:
        begins = _true(window.begin, event)
        if window.emit is None and begins and held:
            out.append(Sample(event.time_ms, held[0].time_ms, event.time_ms, held))
            held = []
        elif window.emit is not None and held and _true(window.emit, event):
            out.append(Sample(event.time_ms, held[0].time_ms, event.time_ms, [*held, event]))
            held = []
            continue
        if held or begins:
            held = [*held, event]
    return out


WINDOWS: dict[str, Callable[[GroupWindowPlan, list[Event], float], list[Sample]]] = {
    "tumbling": tumbling,
    "hopping": hopping,
    "sliding": sliding,
    "session": session,
    "count": count,
    "state": state,
}

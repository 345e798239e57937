"""Run a rule on recorded events, and record the events that enter and leave its windows, with their times.

The rule's own query runs; a tap before each window of a statement records the changes it emits, the tap of a
sampled rule the events that enter and leave, and the samples. The result is a `Timeline`, plain data that
`timeline_text` and `svg` draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from sql.algebra.event import Delta, Event
from sql.algebra.operator import Chain, Pass
from sql.algebra.sample.windows.group_entry import GROUP_ENTRIES
from sql.algebra.windows.catalog import WINDOWS
from sql.algebra.windows.parameters import period
from sql.binder.scope import META
from sql.catalog.streams import Catalog
from sql.compiler.program import Program
from sql.compiler.shared_code import Environment
from sql.emission import Emission
from sql.engine.event_time.event_time_query import EventTime
from sql.engine.sampled.sampled_code import SampledCode
from sql.engine.sampled.sampled_query import SampledQuery
from sql.engine.statement.running_statement import RunningStatement
from sql.engine.statement.statement_instances import instance_of
from sql.explain import words
from sql.explain.composition import of_plan
from sql.explain.timelines.sampled_tap import SampledTap
from sql.explain.timelines.searches import Searches
from sql.explain.timelines.timeline import Line, Post, Row, Sample, Stay, Timeline, label_of
from sql.plan.logical import Plan

EVENTS_MAX = 60
"""The most events that are drawn; a picture of more cannot be read."""

TAIL_STEPS_MAX = 500
"""The most timers fired after the last event, so that a picture ends."""

QUIET_STEPS_MAX = 2
"""The number of timers in a row without a change of a window after which the picture ends."""

Input = tuple[int, str, Row]
"""An arrival: instant in ms, stream, row."""


def record(
    plan: Plan,
    catalog: Catalog,
    events: Iterable[Input],
    *,
    start_ms: int | None = None,
    events_max: int = EVENTS_MAX,
) -> Timeline:
    """Run the plan on events in order of arrival. The rule starts at `start_ms`, by
    default with the first event.

    At most `events_max` events are taken; the number of further ones is recorded. ValueError if there are
    none.
    """
    if plan.relations or plan.acts is not None:
        raise ValueError(
            "rules that read or write tables have no timeline; penstock test and replay show what they do"
        )
    remaining = iter(events)
    taken = list(islice(remaining, events_max))
    if not taken:
        raise ValueError("there are no events to draw")
    begin = taken[0][0] if start_ms is None else min(start_ms, taken[0][0])
    recorder = _Recorder(plan, catalog, begin)
    for at_ms, stream, row in taken:
        recorder.arrive(at_ms, stream, row)
    return recorder.finish(sum(1 for _ in remaining))


def _query(
    plan: Plan, catalog: Catalog, start_ms: int, recorder: _Recorder
) -> RunningStatement | SampledQuery:
    """The rule's own query, observed: windows of a statement are called, so that taps can be put before
    them."""
    env = Environment("explain", catalog, start_ms)
    if plan.mode != "sample":
        return instance_of(Program(plan, env, "observed"), env)
    assert plan.window is not None
    tap = None if plan.window.is_each_event else SampledTap(plan.window, recorder)
    return SampledQuery(SampledCode(plan, env, tap=tap), env)


class _Recorder:
    """A recorder that drives one query on a virtual clock and fills the timeline."""

    def __init__(self, plan: Plan, catalog: Catalog, start_ms: int) -> None:
        self.plan = plan
        self.query = _query(plan, catalog, start_ms, self)
        env = Environment("explain", catalog, start_ms)
        self.outer = EventTime(self.query, env) if plan.timestamp is not None else None
        self.now_ms = start_ms
        self.rows: list[Row] = []
        """References that keep the rows alive: lines are found by the identity of the row."""
        self.by_row: dict[tuple[int, int], Line] = {}
        self.by_event: dict[int, Line] = {}
        self.searches: dict[int, Searches] = {}
        """The patterns among the sources, by their place."""
        self.events: list[Event] = []
        self.timeline = Timeline(
            words.slice_of(plan.text, _whole(plan)),
            _window_text(plan),
            _brackets(plan),
            start_ms,
            removes=plan.selector == "rstream",
        )
        self._tap()

    # --- taps -----------------------------------------------------------------------------------------------

    def _tap(self) -> None:
        query = self.query
        if isinstance(query, SampledQuery):
            self.timeline.has_window = query.plan.window is not None and not query.plan.window.is_each_event
            return
        self.searches = {index: Searches(matches) for index, matches in query.sources.matches.items()}
        self.timeline.has_window = any(not isinstance(window, Pass) for window in query.windows)
        for index, window in enumerate(query.windows):
            lot = self.plan.sources[index].lot
            late_ms = 1 if lot is not None and lot.every_period is not None else 0
            if isinstance(window, Pass):
                continue
            derived = any(spec.name in _derived_names() for spec in self.plan.sources[index].windows)
            if isinstance(window, Chain) and derived:
                first, *later = window.members
                window.members = (_Tap(first, index, 0, self), *later)  # type: ignore[arg-type]
            else:
                query.windows[index] = _Tap(window, index, late_ms, self)  # type: ignore[call-overload]

    def reached(self, index: int, event: Event) -> None:
        """Record that an event of a statement has passed the filter of source `index`."""
        row = event.row[index] if isinstance(event.row, tuple) else event.row
        self.came(index, row)
        line = self.by_row.get((index, id(row)))
        if line is not None:
            self.by_event[id(event)] = line
            self.events.append(event)

    def came(self, index: int, row: Row) -> None:
        """Record that a row has passed the filter of source `index`."""
        line = self.by_row.get((index, id(row)))
        if line is not None:
            line.reached = line.waiting = True

    def entered_row(self, index: int, row: Row, at_ms: int) -> None:
        """Record that a row has entered the window of source `index`."""
        _enter(self.by_row.get((index, id(row))), at_ms)

    def left_row(self, index: int, row: Row, at_ms: int) -> None:
        """Record that a row has left the window of source `index`."""
        _leave(self.by_row.get((index, id(row))), at_ms)

    def sampled(self, sample: Sample) -> None:
        """Record a sample of a window."""
        self.timeline.samples.append(sample)

    def entered(self, event: Event, at_ms: int) -> None:
        _enter(self.by_event.get(id(event)), at_ms)

    def left(self, event: Event, at_ms: int) -> None:
        _leave(self.by_event.get(id(event)), at_ms)

    # --- driving --------------------------------------------------------------------------------------------

    def arrive(self, at_ms: int, stream: str, row: Row) -> None:
        """Advance to the arrival of an event, firing due timers, then push the event."""
        self.now_ms = max(self.now_ms, at_ms)
        self._step_to(self.now_ms)
        row = dict(row)
        self.rows.append(row)
        lines = [
            self._line(index, row)
            for index, source in enumerate(self.plan.sources)
            if source.stream == stream
        ]
        for index, searches in self.searches.items():
            if stream in self.plan.sources[index].streams:
                lines.append(searches.line(self.plan, stream, row, self._instant(row)))
                self.timeline.lines.append(lines[-1])
        driver = self.outer or self.query
        for emission in driver.push(stream, [row], self.now_ms):
            self._take(emission)
            if emission.kind != "rows":
                for line in lines:
                    line.remark = "late" if emission.kind == "late" else f"error: {emission.error}"
        for searches in self.searches.values():
            searches.sample(self.now_ms, id(row))

    def _line(self, index: int, row: Row) -> Line:
        alias = f"{self.plan.sources[index].alias}: " if len(self.plan.sources) > 1 else ""
        arrival_ms = self._instant(row)
        shown = {name: value for name, value in row.items() if value != arrival_ms} or row
        line = Line(alias + label_of(shown, self._shown(index)), arrival_ms)
        if self.plan.sources[index].retained_rows is not None:
            line.remark = "kept in the table"
        self.by_row[index, id(row)] = line
        self.timeline.lines.append(line)
        return line

    def _instant(self, row: Row) -> int:
        """The position of the event on the axis: in event time its own time stamp, if that can be read."""
        value = row.get(self.plan.timestamp) if self.plan.timestamp is not None else None
        return value if isinstance(value, int) and not isinstance(value, bool) else self.now_ms

    def _shown(self, index: int) -> list[str] | None:
        columns = self.plan.columns(self.plan.sources[index].stream)
        return (
            None if columns is None else [name for name in columns if name not in (self.plan.timestamp, META)]
        )

    def _step_to(self, until_ms: int) -> None:
        driver = self.outer or self.query
        while (deadline := driver.next_deadline()) is not None and deadline <= until_ms:
            self._advance(driver.advance, deadline)

    def _advance(self, advance: Callable[[int], list[Emission]], instant: int) -> None:
        for emission in advance(instant):
            self._take(emission)
        for searches in self.searches.values():
            searches.sample(instant)

    def _take(self, emission: Emission) -> None:
        if emission.kind == "rows":
            self.timeline.posts.append(Post(emission.at_ms, emission.inserted, emission.removed))

    def finish(self, left_out: int) -> Timeline:
        """Advance until the windows are empty, and close the record."""
        if self.outer is not None:
            self._advance(self.outer.flush, self.now_ms)
        quiet = 0
        for _ in range(TAIL_STEPS_MAX):
            deadline = self.query.next_deadline()
            if deadline is None or quiet > QUIET_STEPS_MAX:
                break
            before = self._progress()
            self._advance(self.query.advance, deadline)
            quiet = 0 if self._progress() != before else quiet + 1
        return self._closed(left_out)

    def _progress(self) -> int:
        return sum(
            len(line.stays) + sum(stay.leave_ms is not None for stay in line.stays)
            for line in self.timeline.lines
        )

    def _closed(self, left_out: int) -> Timeline:
        timeline = self.timeline
        query = self.query.core if isinstance(self.query, SampledQuery) else self.query
        held = {id(event) for event in query.held()}
        waiting = {
            id(self.by_event[id(event)])
            for event in self.events
            if id(event) in held and id(event) in self.by_event
        }
        for line in timeline.lines:
            line.waiting = line.waiting and id(line) in waiting
            if not line.remark and not line.stays:
                line.remark = self._without_stay(line)
        instants = [line.arrival_ms for line in timeline.lines] + [post.at_ms for post in timeline.posts]
        instants += [stay.leave_ms or stay.entry_ms for line in timeline.lines for stay in line.stays]
        instants += [sample.end_ms for sample in timeline.samples]
        timeline.start_ms = min(timeline.start_ms, *instants)
        timeline.end_ms = max(instants)
        timeline.points_ms = _update_points(timeline, self.query)
        timeline.left_out = left_out
        return timeline

    def _without_stay(self, line: Line) -> str:
        if not self.timeline.has_window:
            return ""
        if not line.reached:
            return "filtered out"
        return "waiting" if line.waiting else "never in the window"


def _update_points(timeline: Timeline, query: RunningStatement | SampledQuery) -> list[int]:
    lot = query.plan.sources[0].lot
    if isinstance(query, SampledQuery) or lot is None or lot.every_period is None:
        return sorted({post.at_ms for post in timeline.posts})
    step = period(lot.every_period, query.program.functions).millis
    return list(range(timeline.start_ms, timeline.end_ms + 1, step))[:200]


def _enter(line: Line | None, at_ms: int) -> None:
    if line is not None:
        line.waiting = False
        line.stays.append(Stay(at_ms))


def _leave(line: Line | None, at_ms: int) -> None:
    if line is not None and line.stays and line.stays[-1].leave_ms is None:
        line.stays[-1].leave_ms = max(at_ms, line.stays[-1].entry_ms)


class _Tap:
    """A tap before a window: it passes everything on, and records the changes that the window emits."""

    def __init__(self, inner: Any, index: int, late_ms: int, recorder: _Recorder) -> None:
        self.inner = inner
        self.index = index
        self.late_ms = late_ms
        """The delay of a gate's timer behind its update point (see `sql.algebra.gate.gated_queue`)."""
        self.recorder = recorder

    def push(self, delta: Delta, now: int) -> list[Delta]:
        for event in delta.inserted:
            self.recorder.reached(self.index, event)
        return self._noted(self.inner.push(delta, now), now)

    def advance(self, now: int) -> list[Delta]:
        return self._noted(self.inner.advance(now), now - self.late_ms)

    def _noted(self, deltas: list[Delta], at_ms: int) -> list[Delta]:
        for delta in deltas:
            for event in delta.inserted:
                self.recorder.entered(event, at_ms)
            for event in delta.removed:
                self.recorder.left(event, at_ms)
        return deltas

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


# --- words --------------------------------------------------------------------------------------------------


def _window_text(plan: Plan) -> str:
    """The composition of the windows, on one line."""
    written = " × ".join("; ".join(part.stages) for part in of_plan(plan))
    if any(source.pattern is not None for source in plan.sources):
        return f"a pattern: each event is drawn while a search holds it{'; ' if written else ''}{written}"
    return written or "no window"


def _brackets(plan: Plan) -> tuple[str, str]:
    window = plan.window
    if window is None:
        return ("[", ")")
    brackets = GROUP_ENTRIES[window.kind].bounds(window)
    return brackets[0], brackets[1]


def _whole(plan: Plan) -> Any:
    from sql.errors import Span

    return Span(0, len(plan.text))


def _derived_names() -> Iterable[str]:
    return [name for name, window in WINDOWS.items() if window.role == "derived"]

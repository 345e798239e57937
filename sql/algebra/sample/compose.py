"""The parts of a sampled plan, and their choice: its window, its content, the conditions of each source.

window     leaves            groups                          rows      joined, or WHERE with hits
tumbling   at once           folded                          rows      events
session    at once           folded                          rows      events
state      at once           folded                          rows      events
count n    at once           folded                          rows      events
hopping    by panes          panes, running where unmerged   rows      events
count n k  one by one        running                         rows      events
sliding    one by one        running                         rows      events
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from sql.algebra.sample.content import Content, Entries, JoinedSample, SampleRows
from sql.algebra.sample.folding.folded import Folded, Judged
from sql.algebra.sample.folding.panes import Panes, is_merged
from sql.algebra.sample.instance import Tap
from sql.algebra.sample.running import RunningGroups
from sql.algebra.sample.shown_inline import inline_row
from sql.algebra.sample.windows.group_entry import GROUP_ENTRIES, leaves_at_once
from sql.algebra.sample.windows.sliding import Sliding
from sql.algebra.sample.windows.window import Setting, Window
from sql.calendar.zones import is_utc
from sql.codegen.functions import FunctionSet
from sql.codegen.hits import HitCounters, Hits
from sql.plan.bound import AggregateCall, Bound, Op, Read, Slot, conjuncts, sources_read
from sql.plan.clauses import GroupWindowPlan
from sql.plan.logical import Plan
from sql.types import Type

QUARTER_MS = 900_000
"""Zones are set back and forth at quarters of an hour, so ends that divide those lie on one even grid."""


@dataclass(slots=True)
class SampleParts:
    """The parts of a sampled plan."""

    plan: Plan
    functions: FunctionSet
    """The writer of the expressions in the text."""
    window: Window
    content: Content
    shown: Content | None
    """The content that one sample takes the rows into, where each is evaluated from the beginning."""
    entries: Entries
    filters: list[Bound | None]
    """FILTER, for each source of FROM."""
    met_where: Hits | None
    is_timed: bool
    tap: Tap | None = None

    @property
    def slots(self) -> dict[str, str]:
        """The slots of an instance of the window, with their first values as Python text."""
        return {**self.window.slots, **self.content.slots}

    @property
    def locals(self) -> dict[str, str]:
        """The locals of a loop over one instance: names, and what they stand for."""
        return {**self.window.locals, **self.content.locals}

    def per_event(self) -> Iterator[Bound]:
        """The expressions that are evaluated for each event."""
        plan = self.plan
        window = self.window.plan
        for condition in (*self.filters, plan.where, window.begin, window.emit, window.when):
            if condition is not None:
                yield condition
        yield from (*plan.group_by, *window.partition_by)
        for call in plan.aggregates:
            yield from call.args
            if call.filter is not None:
                yield call.filter


def is_grouped(plan: Plan) -> bool:
    """True if a sample shows groups or aggregates, and not the rows alone."""
    return bool(plan.aggregates or plan.group_by or plan.counts_groups)


def compose(
    plan: Plan,
    functions: FunctionSet,
    hits: HitCounters,
    zone: ZoneInfo,
    make_row: Callable[[dict[str, Any]], Any],
    *,
    is_timed: bool,
    tap: Tap | None = None,
) -> SampleParts:
    """The composition of a plan with a window in GROUP BY. With a `tap` events leave
    one by one where they can.

    `is_timed`: events come with an instant each.
    """
    window = plan.window
    assert window is not None
    entries = Entries(len(plan.analytics) if _shows_analytics(plan) else 0, make_row)
    is_fresh = bool(plan.joins) or "WHERE" in hits.by_clause or plan.judges_windows
    at_once = leaves_at_once(window)
    content = _content(plan, window, entries, zone, at_once=is_fresh or at_once, singly=tap is not None)
    shown = content if is_fresh else None
    if is_fresh:
        content = JoinedSample(Entries(len(plan.analytics), make_row), leaves=not at_once)
    content.tap = tap
    shows_empty = plan.options.emit_empty and not window.partition_by
    empty_max = plan.options.max_empty_windows if shows_empty else None
    setting = Setting(window, content, zone, empty_max, hits.by_clause.get("WHEN"), is_timed)
    made = GROUP_ENTRIES[window.kind].make(setting)
    if isinstance(made, Sliding) and tap is None:
        made.row = inline_row(plan, content, functions, is_timed=is_timed)
    return SampleParts(plan, functions, made, content, shown, entries, _filters(plan),
                       hits.by_clause.get("WHERE"), is_timed, tap)  # fmt: skip


def _shown(plan: Plan) -> Iterator[Bound]:
    """All parts of the expressions that are evaluated for what is shown."""
    shown = [*(item.value for item in plan.items), plan.having, *(order.value for order in plan.order_by)]
    shown += [part for numbering in plan.numberings for part in numbering.partition_by]
    shown += [order.value for numbering in plan.numberings for order in numbering.order_by]
    return (node for part in shown if part is not None for node in part.walk())


def _shows_analytics(plan: Plan) -> bool:
    return any(isinstance(node, Slot) and node.kind == "analytic" for node in _shown(plan))


def _content(
    plan: Plan, window: GroupWindowPlan, entries: Entries, zone: ZoneInfo, *, at_once: bool, singly: bool
) -> Content:
    if not is_grouped(plan):
        return SampleRows(entries, leaves=not at_once)
    empty = _empty_row(plan, entries) if plan.options.emit_empty and not plan.group_by else None
    calls, limit = plan.aggregates, plan.options.max_groups
    if plan.judges_windows:
        return Judged(calls, entries, limit)
    if at_once or (not singly and _has_panes(window, calls, zone)):
        kind = Folded if at_once else Panes
        return kind(calls, plan.group_by, entries, limit, counts=plan.options.emit_empty, shows_empty=empty)
    reads_rows = bool(entries.analytics) or any(isinstance(node, Read) for node in _shown(plan))
    return RunningGroups(plan, entries, empty, reads_rows=reads_rows)


def _has_panes(window: GroupWindowPlan, calls: tuple[AggregateCall, ...], zone: ZoneInfo) -> bool:
    """True if the events of a window leave by panes, whose aggregates make those of the window."""
    if GROUP_ENTRIES[window.kind].leaving(window) != "by panes":
        return False
    is_even = is_utc(zone) or QUARTER_MS % window.hop_ms == 0
    return is_even and all(map(is_merged, calls))


def _empty_row(plan: Plan, entries: Entries) -> Any:
    return tuple(None for _ in plan.sources) if plan.joins else entries.make_row({})


def _filters(plan: Plan) -> list[Bound | None]:
    """The conditions that keep events of each source out of the window: of a join those parts of
    FILTER that read it alone."""
    assert plan.window is not None
    if not plan.joins:
        return [plan.window.filter]
    out: list[Bound | None] = []
    for index in range(len(plan.sources)):
        parts = tuple(part for part in conjuncts(plan.window.filter) if sources_read(part) <= {index})
        out.append(Op("and", parts, type=Type.BOOLEAN, span=parts[0].span) if parts else None)
    return out

"""The text of `route`: the loop over the events of a stream that takes them to the partitions of a context.

An event that starts or ends no partition and belongs to one at most waits for its statements at once, without
a call. All others, `change` deals with: what starts, ends, is in several partitions, or cannot be evaluated.
Contexts of one level have such a loop where keys find the partitions: by key, or overlapping with statements
whose filters are correlated with the partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sql.catalog.streams import Catalog
from sql.codegen.functions import DATA_ERRORS
from sql.codegen.loop import LoopWriter
from sql.codegen.names import Names
from sql.codegen.reader import RowReader
from sql.codegen.source import Generated, SourceWriter
from sql.codegen.support import Warnings
from sql.functions.definition import Context
from sql.plan.bound import Bound
from sql.plan.context_plan import (
    ContextPlan,
    EndPlan,
    EventPointPlan,
    KeyedPlan,
    KeyedTypePlan,
    NowPlan,
    OverlappingPlan,
    PatternPointPlan,
)
from sql.plan.correlation import correlation_of
from sql.plan.logical import Plan
from sql.types import key_of

MOST_STATEMENTS = 8
"""A context with more statements on a stream has no loop."""

CHANGE = ("change(e)", "continue")
"""What is done for an event that may start or end partitions, or belong to several."""

Statements = Mapping[str, Plan]
"""The statements of a context that read the stream, by name, all of them in cells."""


def route_of(
    context: ContextPlan,
    stream: str,
    statements: Statements,
    catalog: Catalog,
    clock: Context,
    *,
    is_single: bool,
) -> Generated | None:
    """The loop for the events of a stream; None where the context has none. Its conditions read `clock`.
    `is_single`: the context has no other statement."""
    if len(context.levels) > 1 or not 0 < len(statements) <= MOST_STATEMENTS:
        return None
    kind = context.levels[0].kind
    text = RouteText(stream, catalog, clock)
    if isinstance(kind, KeyedPlan):
        listed = next((item for item in kind.types if item.stream == stream), None)
        if listed is None or context.idle_ms is not None or _hears_pattern(kind.end, stream):
            return None
        return text.keyed(listed, kind.end, is_single=is_single)
    if not isinstance(kind, OverlappingPlan) or _hears_pattern(kind.start, stream):
        return None
    correlations = [correlation_of(plan.sources[0].filter)[0] for plan in statements.values()]
    keys = [item.event for item in correlations if item is not None]
    if len(keys) < len(correlations) or _hears_pattern(kind.end, stream):
        return None
    if isinstance(kind.end, EventPointPlan) and kind.end.asks_each:
        return None
    return text.overlapping(kind, keys)


def _hears_pattern(point: EndPlan | NowPlan | None, stream: str) -> bool:
    return isinstance(point, PatternPointPlan) and stream in point.pattern.streams


class RouteText:
    """Writes the loop of one stream."""

    def __init__(self, stream: str, catalog: Catalog, clock: Context) -> None:
        self.stream = stream
        self.names = Names()
        self.names.bound |= {"DATA_ERRORS": DATA_ERRORS, "key_of": key_of}
        self.source = SourceWriter()
        reader = RowReader(self.names, catalog, "dict", {}, joined=False)
        self.loop = LoopWriter(self.source, reader, Warnings(), clock)

    def keyed(self, listed: KeyedTypePlan, end: EndPlan | None, *, is_single: bool) -> Generated:
        """A partition is found by the keys of its events."""
        source, loop = self.source, self.loop
        with source.block("def route(lane, rows):"):
            source.line("change = lane.change")
            source.line("find = lane.level.by_key.get")
            source.line("add_body, add_row = lane.waits[0]" if is_single else "reach = lane.reach")
            with source.block("for e in rows:"):
                with source.attempt(*CHANGE, reads_error=False):
                    if listed.filter is not None:
                        self._change_where(f"not ({loop.true(listed.filter)})")
                    loop.key(listed.keys, "key")
                    source.line("p = find(key)")
                    self._change_where("p is None")
                    if isinstance(end, EventPointPlan) and end.stream == self.stream:
                        source.line("partition = p.row")
                        self._write_end(end)
                if is_single:
                    source.line("add_body(p.bodies[0])")
                    source.line("add_row(e)")
                else:
                    source.line("reach(p, e)")
        return Generated(source, self.names.bound)

    def overlapping(self, kind: OverlappingPlan, keys: Sequence[Bound]) -> Generated:
        """The statements' own filters say which partition an event belongs to."""
        source, loop, start, end = self.source, self.loop, kind.start, kind.end
        with source.block("def route(lane, rows):"):
            source.line("change = lane.change")
            own_end = end if isinstance(end, EventPointPlan) and end.stream == self.stream else None
            if own_end is not None and own_end.correlation is not None:
                source.line("ending = lane.level.ends.by_key.found.get")
            for place in range(len(keys)):
                source.line(f"find_{place} = lane.found[{place}].get")
                source.line(f"add_body_{place}, add_row_{place} = lane.waits[{place}]")
            with source.block("for e in rows:"):
                with source.attempt(*CHANGE, reads_error=False):
                    if isinstance(start, EventPointPlan) and start.stream == self.stream:
                        self._change_if(loop, start.filter)
                    if own_end is not None:
                        self._write_found_end(own_end)
                    for place, key in enumerate(keys):
                        loop.key((key,), f"key_{place}")
                        source.line(f"q_{place} = find_{place}(key_{place})")
                        self._change_where(f"q_{place}.__class__ is dict")
                for place in range(len(keys)):
                    with source.block(f"if q_{place} is not None:"):
                        source.line(f"add_body_{place}(q_{place})")
                        source.line(f"add_row_{place}(e)")
        return Generated(source, self.names.bound)

    # --- ends -----------------------------------------------------------------------------------------------

    def _write_end(self, end: EventPointPlan) -> None:
        """The event may end the partition `p`."""
        if end.correlation is None:
            self._change_if(self.loop, end.filter)
            return
        event = self.loop.value(end.correlation.event)
        own = self.loop.value(end.correlation.partition)
        with self.source.block(f"if key_of({event}) == key_of({own}):"):
            self._change_if(self.loop.inner(), end.filter)

    def _write_found_end(self, end: EventPointPlan) -> None:
        """The event may end those that its key finds, or all."""
        source = self.source
        if end.correlation is None:
            self._change_if(self.loop, end.filter)
            return
        self.loop.key((end.correlation.event,), "key")
        source.line("p = ending(key)")
        with source.block("if p is not None:"):
            self._change_where("p.__class__ is dict")
            source.line("partition = p.row")
            self._change_if(self.loop.inner(), end.filter)

    # --- what is not plain ----------------------------------------------------------------------------------

    def _change_if(self, loop: LoopWriter, condition: Bound | None) -> None:
        if condition is None:
            self._write_change()
            return
        self._change_where(loop.true(condition))

    def _change_where(self, test: str) -> None:
        with self.source.block(f"if {test}:"):
            self._write_change()

    def _write_change(self) -> None:
        for line in CHANGE:
            self.source.line(line)

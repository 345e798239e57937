"""The compiled text of a statement: EPL statements and stream queries.

    push(q, rows, now)                the loop over arriving events;
                                      in event time `times` in the place of `now`
    push(m, cells, rows, now)         the same where each event has its cell:
                                      `m` serves all partitions of a context
    change(q, inserted, removed, …)   one update of the windows or the join: fold, then rows
    present(q, events)                the rows of the present content, compiled at first use

`q` is the running instance (`sql.engine.running.running_statement`): the text belongs to the plan
and serves all instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import sqrt
from typing import Any

from sql.aggregates.base import Removal
from sql.aggregates.exact import NAN
from sql.algebra.event import UNSEEN, Delta, Event
from sql.algebra.gate.gated import Gated
from sql.algebra.retain.policies import Policy
from sql.algebra.retain.predicate import BUILTIN_CODES
from sql.algebra.retain.values import ABSENT, ValueQueue
from sql.algebra.table.search import reads_subquery
from sql.catalog.streams import Catalog
from sql.codegen.expression_code import Code
from sql.codegen.expression_writer import ExpressionWriter
from sql.codegen.functions import DATA_ERRORS
from sql.codegen.loop import LoopWriter
from sql.codegen.names import Names
from sql.codegen.reader import RowReader
from sql.codegen.source import Generated, SourceWriter
from sql.codegen.support import Warnings
from sql.compiler.change import ChangeText
from sql.compiler.content_text import content_text
from sql.compiler.deferral import events_of
from sql.compiler.earlier import Earlier
from sql.compiler.enter import EnterText
from sql.compiler.feeding import FeedingText, feeds
from sql.compiler.fold import Fold, too_many_groups
from sql.compiler.joins.driven import DrivenText, driver_of
from sql.compiler.joins.passing_text import PassingText
from sql.compiler.locals import LOCALS
from sql.compiler.push import PushText
from sql.compiler.shared_code import Answer
from sql.compiler.show import Show
from sql.emission import Emission, Out, Update
from sql.functions.definition import Context
from sql.plan.bound import Slot, TableRead
from sql.plan.clauses import SourcePlan
from sql.plan.logical import Plan
from sql.rows import Shape
from sql.types import key_of


class StatementText:
    """Writes and compiles the functions of one statement for one kind of window."""

    def __init__(self, plan: Plan, catalog: Catalog, shape: Shape, context: Context, warnings: Warnings,
                 window: Any, removal: Removal, offsets: dict[str, int], answers: Sequence[Answer], *,
                 is_driven: bool, is_joined: bool, passes: bool = False, is_asked: bool = False,
                 in_cells: bool = False) -> None:  # fmt: skip
        """`answers`: the values of subqueries as functions of the event. `is_driven`: events go through a
        loop, else changes are handed over. `is_joined`: rows are tuples of the rows of several sources.
        `passes`: they are not kept. `is_asked`: a subquery, of which only the value is read.
        `in_cells`: each event comes with the cell of its partition."""
        self.plan = plan
        self.in_cells = in_cells
        self.is_driven = is_driven
        self.is_joined = is_joined
        self.catalog = catalog
        self.shape = shape
        self.context = context
        self.warnings = warnings
        self.offsets = offsets
        self.window: Policy | None = window if isinstance(window, Policy) else None
        """The window whose entering and leaving is written into the loop."""
        self.gate: Gated | None = window if isinstance(window, Gated) else None
        """The window that holds events back."""
        self.has_window = any(source.windows or source.lot or source.keeps_last for source in plan.sources)
        self.is_timed = takes_times(plan) and not in_cells
        self.names = Names()
        self.names.reserve(LOCALS)
        self.names.bound |= {
            "DATA_ERRORS": DATA_ERRORS, "Emission": Emission, "Event": Event, "Delta": Delta, "Out": Out,
            "Update": Update, "key_of": key_of, "too_many_groups": too_many_groups, "context": context,
            "ABSENT": ABSENT, "NAN": NAN, "NOTHING": Event(None, 0, -1), "UNSEEN": UNSEEN, "sqrt": sqrt,
            "partition": context.partition, "subqueries": answers,
        }  # fmt: skip
        self.keeps_values = _keeps_values(window)
        """True if windows keep what events contribute, in the place of events."""
        self.fold = Fold(plan, removal, keeps_values=self.keeps_values)
        self.names.reserve(self.fold.attributes)
        may_defer = is_driven and (self.window is not None or not self.has_window)
        self.show = Show(plan, self.make_loop, may_defer=may_defer, is_asked=is_asked, in_cells=in_cells)
        self.has_value = is_asked and may_defer
        """True if the text has a function `value`, and makes no rows."""
        place = driver_of(plan)
        self.driven = DrivenText(self, place) if is_driven and place is not None else None
        """The loop of a join that one stream drives."""
        self.passing = PassingText(self) if passes else None
        """The loops of a join whose rows are not kept."""
        self.earlier = Earlier(self)
        self.enter = EnterText(self)
        self.reads_beside = any(not self.earlier.is_inline(call) for call in plan.prevs)
        """True if rows need values that only the instance can find: earlier events."""
        self.makes_rows = self.enter.is_single and not (self.is_timed or in_cells)
        """True if the loop hands on rows, an emission each, of the instant that its events have in common."""
        self.in_locals = is_driven and not in_cells and self.enter.alone_changes_state
        """True if the state of the only group is in locals while the loop runs."""
        self.code = self._compile()

    def make_loop(
        self,
        source: SourceWriter,
        slots: dict[Any, Code],
        *,
        is_one: bool = False,
        rows: dict[int, str] | None = None,
        nullable: Sequence[int] = (),
    ) -> LoopWriter:
        """A writer of statements over the row `e`, joined if the statement is, unless it `is_one` source's;
        or over the `rows` of sources that stand in locals, of which those `nullable` may be NULL."""
        joined = self.is_joined and not is_one
        reader = RowReader(
            self.names, self.catalog, self.shape, slots, joined=joined, rows=rows, nullable=nullable
        )
        return LoopWriter(source, reader, ExpressionWriter(reader, self.names, self.warnings, self.context))

    def slots(self, owner: str, time: str, is_new: str, *, is_later: bool = False) -> dict[Any, Code]:
        """The code by which expressions read operators' values, where the event is `x` and its row `e`;
        `owner` stands before the names of its group's attributes.

        `is_later`: other events may have come since.
        """
        found = BUILTIN_CODES | self.fold.kept.codes(owner, "x", self.names.bind)
        found["istream", None] = Code(is_new, False, True, "boolean")
        found["event_time", None] = Code(time, False, False, "number")
        for place in range(len(self.plan.analytics)):
            found["analytic", place] = Code(f"x.extra[{place}]")
        for place, hit in enumerate(self.plan.hits):
            attribute = "count" if hit.name.endswith("count") else "time_ms"
            found["hit", place] = Code(
                f"q.hits.by_clause[{hit.clause!r}].{attribute}", False, False, "number"
            )
        for place, call in enumerate(self.plan.prevs):
            if self.earlier.is_inline(call) and not is_later:
                found["prev", place] = Code(self.earlier.text_of(call))
            else:
                found["prev", place] = Code(f"b[{self.offsets['prev'] + place}]")
        return found

    @property
    def has_change(self) -> bool:
        """True if updates come from operators that are called, or from lots of several rows."""
        if self.passing is not None:
            return False
        if self.plan.mode == "lots" or self.driven is not None or self.plan.into_table is not None:
            return True
        is_silent = self.window is not None and not self.window.has_timers
        return not (self.is_driven and (is_silent or not self.has_window))

    @property
    def needs_show(self) -> bool:
        """True if rows are made by a function of their own."""
        return self.passing is None and (self.has_change or not self.enter.is_single or self.enter.notes_left)

    def _compile(self) -> Generated:
        source = SourceWriter()
        self.fold.write_group_class(source, self.names.bind)
        if self.needs_show:
            self.write_show(source)
        change = ChangeText(self)
        if change.posts_unseen:
            change.write_prepare(source)
        if self.has_change:
            change.write(source)
        if self.keeps_values and self.plan.mode == "lots":
            change.write_values(source)
        if self.passing is not None:
            self.passing.write(source)
        elif self.driven is not None:
            self.driven.write(source)
        elif self.is_driven and self.plan.into_table is not None:
            FeedingText(self).write(source)
        elif self.is_driven:
            PushText(self).write(source)
        if self.has_value:
            self._write_value(source)
        return Generated(source, self.names.bound)

    def _write_value(self, source: SourceWriter) -> None:
        """`value`: the only column of a statement that shows one aggregated row."""
        with source.block("def value(q):"):
            source.line("whole = q.groups.whole")
            item = next(item for item in self.plan.items if not item.invisible)
            loop = self.make_loop(source, self.slots("whole.", "None", "True", is_later=True))
            source.line(f"return {loop.value(item.value)}", item.value.span)

    def write_show(self, source: SourceWriter) -> None:
        """`show` for rows of the step; only the values of events that it has changed are there."""
        slots = self.slots("g.", "x.time_ms", "is_new")
        self.show.write_function(source, slots, self.reads_beside)

    def write_show_later(self, source: SourceWriter) -> None:
        """`show` for events that came before."""
        slots = self.slots("g.", "x.time_ms", "is_new", is_later=True)
        self.show.write_function(source, slots, bool(self.plan.prevs))

    @property
    def loops(self) -> dict[str, str]:
        """The functions that take arriving events, by stream; none where changes are handed over."""
        if self.passing is not None:
            return self.passing.loops
        place = 0 if self.driven is None else self.driven.place
        return {self.plan.sources[place].stream: "push"} if self.is_driven else {}

    @cached_property
    def where_reads_beside(self) -> bool:
        """True if WHERE reads earlier events, so that it is evaluated when the window has changed."""
        where = self.plan.where
        return where is not None and any(isinstance(n, Slot) and n.kind == "prev" for n in where.walk())

    def write_counted(self, loop: LoopWriter, event: str, time: str, owner: str = "g.") -> None:
        """Write WHERE, values and group of the row `e`, also for an event that does not count."""
        source, where = loop.source, self.plan.where
        if where is None:
            self.fold.write_values(loop, event, owner)
            return
        if self.where_reads_beside:
            source.line("b = q.earlier.beside(x, True)")
        condition = loop.expressions.true(where)
        loop.reader.load(source)
        with source.block(f"if {condition}:", where.span):
            self.show.note(source, "WHERE", time)
            self.fold.write_values(loop, event, owner)
        with source.block("else:"):
            source.line(self.fold.member.uncounted)

    def write_start(self, source: SourceWriter) -> None:
        """The output limit counts from the first update; in cells it may count events as well."""
        output = self.plan.output
        if output is None:
            return
        if self.in_cells and output is not None:
            if output.every is not None:
                with source.block("if q.period is None:"):
                    source.line("m.start(q, now)")
            elif output.every_events is not None:
                source.line("q.counted += 1")
                with source.block(f"if q.counted >= {events_of(output)}:"):
                    source.line("m.reached(q, now)")
            return
        with source.block("if waits:"):
            source.line("waits = q.output.start(now)")

    def write_update(self, source: SourceWriter) -> None:
        kind = self.show.kind
        keys = "()"
        if kind == "group":
            keys = "tuple(g.key for g in changed)"
            source.line("q.groups.remember(changed)")
        elif kind == "group_event":
            # In the order of their first event; the newest that has come stands for a group.
            source.line("changed = {x.group: x for x in (*entered, *gone, *entered)}")
            keys = "tuple(g.key for g in changed)"
            source.line("q.groups.remember(changed)")
        empty = "not inserted and not removed" if self.plan.where is None else "False"
        with source.block(f"if number_in or number_out or {empty}:"):
            source.line(f"q.output.updates.append(Update(new, old, number_in, number_out, {keys}))")

    def write_cell(self, source: SourceWriter) -> None:
        """The state of the cell `q` as locals."""
        if self.fold.is_grouped:
            source.line("groups = q.folded")
            source.line("get = groups.get")
        else:
            source.line("whole = q.folded")

    def write_state(self, source: SourceWriter) -> None:
        """The instance's state as locals."""
        source.line("fail = q.fail")
        if self.fold.is_grouped:
            source.line("groups = q.groups.by_key")
            source.line("get = groups.get")
        else:
            source.line("whole = q.groups.whole")
        if self.earlier.depth:
            source.line("recent = q.earlier.recent")
        if self.earlier.keeps_left:
            source.line("older = q.earlier.older")
        if self.show.defers and self.plan.output is not None:
            source.line("waits = q.output.waits")
        if self.show.defers == "groups":
            source.line("touched = q.output.touched")

    @cached_property
    def reader(self) -> Generated:
        """The functions that show the content, compiled at first use."""
        return content_text(self)


def drives(plan: Plan) -> bool:
    """True if arriving events go through a compiled loop, into which a single window may be written.

    They do not where a step changes several things before rows are made, or where filters read relations, so
    that they are evaluated before any statement acts.
    """
    source = plan.sources[0]
    if any(waits_for_filters(source) for source in plan.sources):
        return False
    if len(plan.sources) != 1:
        return driver_of(plan) is not None
    if plan.into_table is not None:
        return feeds(plan)
    if source.relation is not None:
        return False
    if plan.mode == "lots":
        return not plan.relations and source.lot is not None and source.lot.is_simple
    return source.pattern is None and source.recognize is None


def _keeps_values(window: Any) -> bool:
    return isinstance(window, ValueQueue) or (isinstance(window, Gated) and window.keeps_values)


def waits_for_filters(source: SourcePlan) -> bool:
    """True if the filter of a stream reads relations, or rows of subqueries: it is evaluated when the event
    arrives, before any statement acts on it."""
    if source.filter is None or source.relation is not None:
        return False
    return reads_subquery([source.filter]) or any(
        isinstance(node, TableRead) for node in source.filter.walk()
    )


def takes_times(plan: Plan) -> bool:
    """True if the loop takes each event with its own instant: in event time, where all
    events are of one stream."""
    if plan.timestamp is None or plan.subqueries or plan.relations:
        return False
    return drives(plan)

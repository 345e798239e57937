"""The compiled text of a statement: EPL statements and stream queries.

    push(q, rows, now)                the loop over arriving events;
                                      in event time `times` in the place of `now`
    push(m, cells, rows, now)         the same where each event has its cell:
                                      `m` serves all partitions of a context
    change(q, inserted, removed, …)   one update of the windows or the join: fold, then rows

For reads, and for output limits that make their rows when due, compiled at first use:

    show(q, x, g, rows, is_new)       the row of an event and its group
    counted(q, events)                the events of the content that count, each with the key of its group

`q` is the running instance (`sql.engine.statement.running_statement`): the text belongs to the plan
and serves all instances.
"""

from __future__ import annotations

from functools import cached_property

from sql.algebra.accumulators import LocalGroups
from sql.codegen.functions import FunctionSet
from sql.codegen.source import Generated, SourceWriter
from sql.compiler.statement.change import ChangeText
from sql.compiler.statement.driving import passes_rows
from sql.compiler.statement.enter import EnterText
from sql.compiler.statement.join_text import JoinText
from sql.compiler.statement.push import PushText
from sql.compiler.statement.statement_frame import StatementFrame


class StatementText:
    """Writes and compiles the functions of one statement for one kind of window."""

    def __init__(self, frame: StatementFrame, functions: FunctionSet) -> None:
        self.frame = frame
        self.plan = plan = frame.plan
        self.fold, self.show, self.earlier = frame.fold, frame.show, frame.earlier
        self.keeps_values = frame.keeps_values
        self.is_driven = frame.is_driven
        self.has_value = frame.has_value
        is_passing = passes_rows(plan) and frame.use == "rule" and not frame.is_driven
        self.join = JoinText(frame) if frame.is_driven_join or is_passing else None
        """The loops of a join whose rows are not kept."""
        self.enter = EnterText(frame, has_change=self.has_change)
        self.code = self._compile()
        self.own_groups = {
            place: (functions.key(item.call.group_by or ()), item.make)
            for place, item in self.fold.kept.accumulated.items()
            if item.is_shared
        }
        """The aggregates with dimensions of their own: the key of an event, and what makes accumulators."""

    def shared_accumulators(self) -> dict[int, LocalGroups]:
        """The accumulators of the aggregates with dimensions of their own, for a new instance."""
        limit = self.plan.options.max_groups
        return {place: LocalGroups(key, make, limit) for place, (key, make) in self.own_groups.items()}

    @property
    def has_change(self) -> bool:
        """True if updates come from operators that are called, or from lots of several rows."""
        if self.plan.into_table is not None:
            return False
        if self.join is not None:
            return not self.join.makes_rows
        if self.plan.mode == "lots":
            return True
        window = self.frame.window
        return not self.frame.in_loop or (window is not None and window.has_timers)

    @property
    def needs_show(self) -> bool:
        """True if rows are made by a function of their own."""
        if self.join is not None:
            return not self.join.makes_rows
        return self.enter.by_step or self.enter.notes_left or (self.has_change and not self.show.defers)

    def _compile(self) -> Generated:
        source = SourceWriter()
        self.fold.write_group_class(source, self.frame.names.bind)
        if self.needs_show:
            self._write_show(source)
        change = ChangeText(self.frame, self.enter)
        if change.posts_unseen:
            change.write_prepare(source)
        if self.has_change:
            change.write(source)
        if self.keeps_values and self.plan.mode == "lots":
            change.write_values(source)
        if self.join is not None:
            self.join.write(source)
        elif self.is_driven:
            PushText(self.frame, self.enter).write(source)
        if self.has_value:
            self._write_value(source)
        return Generated(source, self.frame.names.bound)

    def _write_value(self, source: SourceWriter) -> None:
        """`value`: the only column of a statement that shows one aggregated row."""
        with source.block("def value(q):"):
            source.line("whole = q.groups.whole")
            item = next(item for item in self.plan.items if not item.invisible)
            loop = self.frame.make_loop(source, self.frame.slots("whole.", "None", "True", is_later=True))
            source.line(f"return {loop.value(item.value)}", item.value.span)

    def _write_show(self, source: SourceWriter) -> None:
        """`show` for rows of the step; only the values of events that it has changed are there."""
        slots = self.frame.slots("g.", "x.time_ms", "is_new")
        self.show.write_function(source, slots, self.frame.reads_beside)

    @property
    def loops(self) -> dict[str, str]:
        """The functions that take arriving events, by stream; none where changes are handed over."""
        if self.join is not None:
            return self.join.loops
        return {self.plan.sources[0].stream: "push"} if self.is_driven else {}

    @cached_property
    def reader(self) -> Generated:
        """The functions that show the content, compiled at first use."""
        frame, plan, source = self.frame, self.plan, SourceWriter()
        slots = frame.slots("g.", "x.time_ms", "is_new", is_later=True)
        self.show.write_function(source, slots, bool(plan.prevs))
        with source.block("def counted(q, events):"):
            source.line("found = []")
            with source.block("for x in events:"):
                source.line("e = x.row")
                loop = frame.make_loop(source, frame.slots("g.", "x.time_ms", "True", is_later=True))
                with source.attempt("continue", reads_error=False):
                    if frame.where_reads_beside:
                        source.line("b = q.earlier.beside(x, True)")
                    loop.skip_unless(plan.where)
                    if plan.group_by:
                        self.fold.write_keys(loop)
                    if plan.grouping_sets:
                        source.line("found += [(key, x) for key in keys]")
                    else:
                        source.line(f"found.append(({'key' if plan.group_by else '()'}, x))")
            source.line("return found")
        return Generated(source, frame.names.bound)

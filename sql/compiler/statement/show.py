"""Show: the rows of a change, by the kind of the statement.

    plain, event, group_event    a row for each event that came; old rows for those that left
    aggregate                    a row if anything counted or stopped counting;
                                 the old row is the previous one
    group                        a row for each group that changed; the old rows are the previous ones

`show(q, x, g, rows, is_new)` makes one row of the event `x` and its group `g`.
"""

from __future__ import annotations

from collections.abc import Callable

from sql.algebra.fold import each_owner
from sql.codegen.expression_code import Code
from sql.codegen.loop import LoopWriter
from sql.codegen.output_rows import criteria_text, write_row
from sql.codegen.source import SourceWriter
from sql.compiler.statement.deferral import Deferral
from sql.plan.logical import Plan

MakeLoop = Callable[..., LoopWriter]
"""Makes the writer of a loop body: takes the writer of lines and how slots are read."""


class Show:
    """Writes the rows of one statement."""

    def __init__(self, plan: Plan, make_loop: MakeLoop, defers: Deferral | None, *, is_joined: bool) -> None:
        """`defers`: the source of rows that are made only when an output is due; None: rows are made at once.
        `is_joined`: rows are tuples of the rows of several sources."""
        self.plan = plan
        self.is_joined = is_joined
        self.kind = plan.row_kind
        self.make_loop = make_loop
        self.defers = defers
        self.collects = self.defers is None and (plan.output is not None or _forces_updates(plan))
        """True if updates are handed on one by one: to an output limit, or to be posted
        even when they are empty."""
        self.makes_outs = self.collects or self.defers is not None
        """True if rows carry the key of their group."""
        self.has_old = plan.selector != "istream" or self.collects
        self.counts_groups = (
            self.collects and self.kind == "group" and plan.output is not None and plan.output.mode == "first"
        )
        """True if an update has the key of the group of each of its events."""
        self.is_ordered = plan.orders_rows
        self.is_direct = not self.makes_outs and not self.is_ordered
        """True if rows become an emission as they are."""

    # --- one row --------------------------------------------------------------------------------------------

    def write_function(self, source: SourceWriter, slots: dict[object, Code], reads_beside: bool) -> None:
        """`show`: one row of an event and its group; errors of old rows were reported when they were new."""
        plan = self.plan
        with source.block("def show(q, x, g, rows, is_new):"):
            loop = self._begin_row(source, slots)
            with source.block("try:"):
                if reads_beside:
                    source.line("b = q.earlier.beside(x, is_new)")
                if plan.having is not None:
                    with source.block(f"if not ({loop.true(plan.having)}):", plan.having.span):
                        source.line("return")
                    self.note(source, "HAVING", "x.time_ms")
                self._write_appended(loop)
                self.note(source, "SELECT", "x.time_ms")
            with source.block("except DATA_ERRORS as error:"), source.block("if is_new:"):
                source.line("q.fail(e, error)")
        source.line("")

    def _begin_row(self, source: SourceWriter, slots: dict[object, Code]) -> LoopWriter:
        """The row `e` of the event. No event may have caused a row of aggregates alone, that of an empty
        window for example: the columns that its ORDER BY reads are NULL then."""
        if self.kind != "aggregate":
            source.line("e = x.row")
            return self.make_loop(source, slots)
        if self.is_joined:
            source.line(f"e = x.row or {(None,) * len(self.plan.sources)}")
            return self.make_loop(source, slots)
        source.line("e = x.row")
        return self.make_loop(source, slots, rows={0: "e"}, nullable=(0,))

    def _write_appended(self, loop: LoopWriter) -> None:
        plan = self.plan
        if not (plan.order_by or self.makes_outs):
            write_row(loop, plan, "rows.append(", ")")
            return
        key = "g.key" if plan.group_by else "None"
        order = (
            criteria_text(loop, plan.order_by, nulls_lowest=plan.mode == "delta") if plan.order_by else "None"
        )
        write_row(loop, plan, "rows.append(Out(", f", {key}, {order}))")

    def note(self, source: SourceWriter, clause: str, time: str) -> None:
        """Count that a clause was met, if the statement reads the count."""
        if any(call.clause == clause for call in self.plan.hits):
            source.line(f"q.hits.by_clause[{clause!r}].note({time})")

    # --- a change -------------------------------------------------------------------------------------------

    def begin(self, source: SourceWriter) -> None:
        """Write what stands before the events of a change."""
        if self.defers:
            return
        if self.collects:
            source.line("new, old = [], []")
            source.line("number_in = number_out = 0")
        if self.counts_groups:
            source.line("keys_in, keys_out = [], []")
        if self.kind == "group":
            source.line("changed = {}")
        elif self.kind == "aggregate":
            source.line("touched = None")
            if self.has_old:
                source.line("before = []")
        elif self.has_old:
            source.line("gone = []")

    def before(self, source: SourceWriter, group: str, event: str) -> None:
        """Before an event enters or leaves a group, or one of each grouping set."""
        with each_owner(source, self.plan, f"{group}.") as owner:
            self._write_before(source, owner.removesuffix("."), event)

    def _write_before(self, source: SourceWriter, group: str, event: str) -> None:
        if self.defers:
            if self.defers == "groups":
                source.line(f"touched[{group}] = {event}")
        elif self.kind == "group":
            with source.block(f"if {group} not in changed:"):
                source.line(f"changed[{group}] = {event}")
                if self.has_old:
                    source.line(f"show(q, {event}, {group}, old, False)")
        elif self.kind == "aggregate":
            with source.block("if touched is None:"):
                source.line(f"touched = {event}")
                if self.has_old:
                    source.line(f"show(q, {event}, {group}, old, False)")

    def entered(self, source: SourceWriter) -> None:
        """After an event has entered the group `g`."""
        if self.collects:
            source.line("number_in += 1")
        self._count_group(source, "keys_in", "g")

    def left(self, source: SourceWriter) -> None:
        """After the event `y` has left the group `h`."""
        if not self.defers and self.kind not in ("group", "aggregate") and self.has_old:
            source.line("gone.append(y)")
        if self.collects:
            source.line("number_out += 1")
        self._count_group(source, "keys_out", "h")

    def _count_group(self, source: SourceWriter, counted: str, group: str) -> None:
        if self.counts_groups:
            with each_owner(source, self.plan, f"{group}.") as owner:
                source.line(f"{counted}.append({owner}key)")

    def finish(self, source: SourceWriter, entered: str) -> None:
        """The change is complete; `entered` is the text of the events that came, in order."""
        if self.defers:
            return
        if self.kind == "group":
            with source.block("for g, x in changed.items():"):
                source.line("show(q, x, g, new, True)")
        elif self.kind == "aggregate":
            with source.block("if touched is not None:"):
                source.line("show(q, touched, whole, new, True)")
        else:
            with source.block(f"for x in {entered}:"):
                source.line("show(q, x, x.group, new, True)")
            if self.has_old:
                with source.block("for y in gone:"):
                    source.line("show(q, y, y.group, old, False)")

    def emit(self, source: SourceWriter) -> None:
        """The rows of one step become an emission."""
        if self.defers:
            return
        if not self.is_direct:
            source.line("q.output.give(new, old, now)")
        elif self.plan.selector == "rstream":
            with source.block("if old:"):
                source.line("out.append(Emission(name, now, 'rows', old))")
        elif self.has_old:
            with source.block("if new or old:"):
                source.line("out.append(Emission(name, now, 'rows', new, old or ()))")
        else:
            with source.block("if new:"):
                source.line("out.append(Emission(name, now, 'rows', new))")


def _forces_updates(plan: Plan) -> bool:
    """True if a window posts at empty boundaries."""
    flags = [window.arguments.get("flags") or () for source in plan.sources for window in source.windows]
    return any("FORCE_UPDATE" in words or "START_EAGER" in words for words in flags)

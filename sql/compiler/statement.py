"""The compiled text of a statement: EPL statements and stream queries.

    push(q, rows, now)                the loop over arriving events; in event time `times` in the place of `now`
    change(q, inserted, removed, …)   one update of the windows or the join: fold, then rows
    present(q, events)                the rows of the present content, compiled when first asked for

`q` is the running instance (`sql.engine.running.statement`): the text belongs to the plan and serves all instances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.event import UNSEEN, Delta, Event
from sql.algebra.gate.gated import Gated
from sql.algebra.inline import Inline
from sql.algebra.retain.grouped import LinePerKey
from sql.algebra.retain.keyed import LatestPerKey
from sql.algebra.retain.policies import Policy
from sql.algebra.windows.catalog import lookup
from sql.catalog.streams import Catalog
from sql.codegen.expressions import Code, ExpressionWriter, Names
from sql.codegen.functions import DATA_ERRORS
from sql.codegen.loop import LoopWriter
from sql.codegen.reader import RowReader
from sql.codegen.rows import write_row
from sql.codegen.source import Generated, SourceWriter
from sql.codegen.support import Warnings
from sql.compiler.content import content_text
from sql.compiler.fold import Fold, too_many_groups
from sql.compiler.show import Show
from sql.emission import Emission, Out, Update
from sql.functions.registry import Context
from sql.plan.bound import Apply, Bound, Const, PrevCall, Read, Slot
from sql.plan.logical import Plan
from sql.rows import Shape
from sql.types import key_of

Answer = Callable[[Event], Any]
"""The value of a subquery for an event."""

_NAMES = (
    "a admits arrivals b before brief change changed deltas e edge end_ms enter entered entering error events "
    "evict fail found g get gone Group groups h held hide hold holders inserted is_new is_roomy key keys "
    "leaving left length_ms name new now number_in number_out old operator out part partition parts prepare "
    "present push q r recent removed rows seq show size stamp stamps subqueries times touched trigger unique "
    "visible waits whole window x y "
)
_PER_MEMBER = [
    f"{name}_{place}" for name in ("window", "unique", "size", "end_ms", "admits", "evict") for place in range(8)
]
LOCALS = frozenset((*_NAMES.split(), *_PER_MEMBER))
"""What the text calls its own names: a function or a constant of the rule gets another name."""

PREV_IN_LINE = ("prev", "prevtail", "prevcount", "prevwindow")


class StatementText:
    """Writes and compiles the functions of one statement for one kind of window."""

    def __init__(self, plan: Plan, catalog: Catalog, shape: Shape, context: Context, warnings: Warnings,
                 window: Any, removal: Removal, offsets: dict[str, int], answers: Sequence[Answer], *,
                 is_driven: bool, is_joined: bool) -> None:  # fmt: skip
        """`answers`: the values of subqueries as functions of the event. `is_driven`: events go through a loop,
        else changes are handed over. `is_joined`: rows are tuples of the rows of several sources."""
        self.plan = plan
        self.is_driven = is_driven
        self.is_joined = is_joined
        self.catalog = catalog
        self.shape = shape
        self.context = context
        self.warnings = warnings
        self.offsets = offsets
        self.window: Inline | None = window if isinstance(window, Inline) else None
        """The window whose entering and leaving is written into the loop."""
        self.gate: Gated | None = window if isinstance(window, Gated) else None
        """The window that holds events back."""
        self.has_window = any(source.windows or source.lot or source.keeps_last for source in plan.sources)
        self.is_timed = takes_times(plan)
        self.names = Names()
        self.names.reserve(LOCALS)
        self.names.bound |= {
            "DATA_ERRORS": DATA_ERRORS, "Emission": Emission, "Event": Event, "Delta": Delta, "Out": Out,
            "Update": Update, "key_of": key_of, "too_many_groups": too_many_groups, "context": context,
            "NOTHING": Event(None, 0, -1), "UNSEEN": UNSEEN, "partition": context.partition, "subqueries": answers,
        }  # fmt: skip
        self.fold = Fold(plan, removal)
        may_defer = is_driven and (self.window is not None or not self.has_window)
        self.show = Show(plan, self.make_loop, may_defer=may_defer)
        self.reads_beside = any(not self._is_inline_prev(call) for call in plan.prevs)
        """Whether rows need values that only the instance can find: earlier events."""
        self.code = self._compile()

    # --- writers ------------------------------------------------------------------------------------------------------

    def make_loop(self, source: SourceWriter, slots: dict[Any, Code]) -> LoopWriter:
        """A writer of statements over the row `e`."""
        reader = RowReader(self.names, self.catalog, self.shape, slots, joined=self.is_joined)
        return LoopWriter(source, reader, ExpressionWriter(reader, self.names, self.warnings, self.context))

    def slots(self, owner: str, time: str, is_new: str) -> dict[Any, Code]:
        """How expressions read what operators keep, where the event is `x`, its row `e` and its group `owner`."""
        found: dict[Any, Code] = self.fold.kept.codes(f"{owner}.", "x", self.names.bind)
        found["istream", None] = Code(is_new, False, True, "boolean")
        found["event_time", None] = Code(time, False, False, "number")
        for place in range(len(self.plan.analytics)):
            found["analytic", place] = Code(f"x.extra[{place}]")
        for place, hit in enumerate(self.plan.hits):
            attribute = "count" if hit.name.endswith("count") else "time_ms"
            found["hit", place] = Code(f"q.hits.by_clause[{hit.clause!r}].{attribute}", False, False, "number")
        for place, call in enumerate(self.plan.prevs):
            if self._is_inline_prev(call):
                found["prev", place] = Code(self._prev_text(call))
            else:
                found["prev", place] = Code(f"b[{self.offsets['prev'] + place}]")
        return found

    # --- earlier events -----------------------------------------------------------------------------------------------

    def _is_inline_prev(self, call: PrevCall) -> bool:
        """Whether a value of an earlier event is read where it stands: at a fixed place of a queue, for new rows."""
        if not self.is_driven or self.is_joined or self.show.has_old:
            return False
        if not isinstance(call.value, Read) or call.value.column is None:
            return False
        if not (call.index is None or isinstance(call.index, Const)):
            return False
        if isinstance(call.index, Const) and (call.index.value.__class__ is not int or call.index.value < 0):
            return False
        if call.name == "prior":
            return self.window is not None or not self.has_window
        return self.window is not None and self.window.is_queue

    def _prev_text(self, call: PrevCall) -> str:
        assert isinstance(call.value, Read)
        reader = RowReader(self.names, self.catalog, self.shape, {}, joined=False)
        place = call.index.value if isinstance(call.index, Const) else 0

        def column(row: str) -> str:
            assert isinstance(call.value, Read)
            return reader._column(row, str(call.value.column))

        if call.name == "prior":
            return f"({column(f'recent[-{place + 1}]')} if len(recent) > {place} else None)"
        if call.name == "prevcount":
            return "len(window)"
        if call.name == "prevwindow":
            return f"[{column('y.row')} for y in reversed(window)]"
        at = f"window[{place}]" if call.name == "prevtail" else f"window[-{place + 1}]"
        return f"({column(f'{at}.row')} if len(window) > {place} else None)"

    @cached_property
    def recent_rows(self) -> int:
        """How many earlier rows `prior` reads where it stands."""
        depths = [call.index.value for call in self.plan.prevs
                  if call.name == "prior" and self._is_inline_prev(call) and isinstance(call.index, Const)]  # fmt: skip
        return max(depths, default=-1) + 1

    # --- the module ---------------------------------------------------------------------------------------------------

    @property
    def has_change(self) -> bool:
        """Whether updates come from operators that are called, or from lots of several rows."""
        if self.plan.mode == "lots":
            return True
        is_silent = self.window is not None and not self.window.has_timers
        return not (self.is_driven and (is_silent or not self.has_window))

    @property
    def needs_show(self) -> bool:
        """Whether rows are made by a function of their own."""
        return self.has_change or not self._is_single or self._notes_left

    @property
    def _is_single(self) -> bool:
        """Whether an arriving event gives at most one row, which is an emission as it stands."""
        show = self.show
        if not show.is_direct or show.has_old or self.reads_beside or (self.has_window and self.window is None):
            return False
        return show.kind != "group" or not self._leaves_on_arrival or self._keeps_group

    @property
    def _leaves_on_arrival(self) -> bool:
        return self.window is not None and self.window.leaves_on_arrival

    @property
    def _keeps_group(self) -> bool:
        """Whether an event that leaves on an arrival counts in the group of the event that arrives."""
        return isinstance(self.window, LinePerKey | LatestPerKey) and self.window.nodes == self.plan.group_by

    @property
    def _notes_left(self) -> bool:
        """Whether the row may be that of an event that leaves, where the one that arrives does not count."""
        return self.show.kind == "group" and self._leaves_on_arrival

    @property
    def _skips_brief(self) -> bool:
        """Whether an event that enters and leaves in one step passes by the aggregates, which it leaves unchanged."""
        is_brief = isinstance(self.window, Policy) and self.window.expels_arrivals
        is_plain = not self.fold.is_grouped and not any(call.definition.ever for call in self.plan.aggregates)
        return is_brief and is_plain and self._is_single

    @property
    def _notes_touch(self) -> bool:
        """Whether the only row of a statement changes as well when an event leaves."""
        return self.show.kind == "aggregate" and self._leaves_on_arrival

    def _compile(self) -> Generated:
        source = SourceWriter()
        self.fold.write_group_class(source, self.names.bind)
        if self.needs_show:
            self.write_show(source)
        if self._posts_unseen:
            self._write_prepare(source)
        if self.has_change:
            self._write_change(source)
        if self.is_driven:
            self._write_push(source)
        return Generated(source, self.names.bound)

    def write_show(self, source: SourceWriter) -> None:
        self.show.write_function(source, self.slots("g", "x.time_ms", "is_new"), self.reads_beside)

    # --- where and values ---------------------------------------------------------------------------------------------

    @cached_property
    def where_reads_beside(self) -> bool:
        """Whether WHERE reads earlier events, so that it is evaluated when the window has changed."""
        where = self.plan.where
        return where is not None and any(isinstance(n, Slot) and n.kind == "prev" for n in where.walk())

    def _write_counted(self, loop: LoopWriter, event: str, time: str) -> None:
        """WHERE, values and group of the row `e`: `g` is None for an event that does not count."""
        source, where = loop.source, self.plan.where
        if where is None:
            self.fold.write_values(loop, event)
            return
        if self.where_reads_beside:
            source.line("b = q.beside(x, True)")
        condition = loop.expressions.true(where)
        loop.reader.load(source)
        with source.block(f"if {condition}:", where.span):
            self.show.note(source, "WHERE", time)
            self.fold.write_values(loop, event)
        with source.block("else:"):
            source.line("g = None")

    # --- change -------------------------------------------------------------------------------------------------------

    def _write_change(self, source: SourceWriter) -> None:
        show, fold = self.show, self.fold
        entered_rows = show.kind not in ("group", "aggregate")
        with source.block(f"def change(q, inserted, removed, now{'' if show.collects else ', new, old'}):"):
            self.write_state(source)
            if self.fold.can_reclaim:
                source.line("q.forget_idle(now)")
            if self._notes_prior:
                source.line("q.prior.note(inserted)")
            if show.collects:
                source.line("new, old = [], []")
                source.line("number_in = number_out = 0")
            show.begin(source)
            if entered_rows:
                source.line("entered = []")
            with source.block("for x in inserted:"):
                self._write_inserted(source, entered_rows)
            with source.block("for y in removed:"):
                source.line("h = y.group")
                if self._posts_unseen:
                    with source.block("if h is UNSEEN:"):
                        source.line("h = prepare(q, y)")
                with source.block("if h is not None:"):
                    show.before(source, "h", "y")
                    fold.leave(self.make_loop(source, {}))
                    show.left(source)
                    if show.collects:
                        source.line("number_out += 1")
            if show.collects and show.kind == "aggregate":
                with source.block("if not inserted and not removed:"):
                    show.before(source, "whole", "NOTHING")
            show.finish(source, "entered")
            if show.collects:
                self._write_update(source)
            elif show.kind == "aggregate":
                source.line("return touched is not None")
        source.line("")

    @property
    def _notes_prior(self) -> bool:
        """Whether each event has to remember those before it."""
        return any(call.name == "prior" and not self._is_inline_prev(call) for call in self.plan.prevs)

    @property
    def _posts_unseen(self) -> bool:
        """Whether a window takes out rows that never came in: a derived-value window its first one."""
        return any(_is_derived(window.name) for source in self.plan.sources for window in source.windows)

    def _write_prepare(self, source: SourceWriter) -> None:
        """`prepare`: the group of a row that leaves without having come, and what it contributed."""
        with source.block("def prepare(q, x):"):
            self.write_state(source)
            source.line("e = x.row")
            loop = self.make_loop(source, self.slots("g", "x.time_ms", "True"))
            with source.block("try:"):
                self._write_counted(loop, "x", "x.time_ms")
            with source.block("except DATA_ERRORS:"):
                source.line("g = None")
            source.line("x.group = g")
            with source.block("if g is not None:"):
                source.line(f"x.values = {self.fold.values}")
            source.line("return g")
        source.line("")

    def _write_inserted(self, source: SourceWriter, entered_rows: bool) -> None:
        show, fold = self.show, self.fold
        source.line("e = x.row")
        loop = self.make_loop(source, self.slots("g", "x.time_ms", "True"))
        with source.block("try:"):
            self._write_counted(loop, "x", "x.time_ms")
        with source.block("except DATA_ERRORS as error:"):
            source.line("fail(e, error)")
            source.line("g = None")
        source.line("x.group = g")
        with source.block("if g is not None:"):
            source.line(f"x.values = {fold.values}")
            show.before(source, "g", "x")
            fold.enter(loop)
            if entered_rows:
                source.line("entered.append(x)")
            if show.collects:
                source.line("number_in += 1")
            if show.defers:
                self._write_start(source)

    def _write_start(self, source: SourceWriter) -> None:
        """The output limit counts from the first update."""
        with source.block("if waits:"):
            source.line("waits = q.output.start(now)")

    def _write_update(self, source: SourceWriter) -> None:
        kind = self.show.kind
        keys = "()"
        if kind == "group":
            keys = "tuple(g.key for g in changed)"
            source.line("q.remember(changed)")
        elif kind == "group_event":
            source.line("changed = {x.group: x for x in (*entered, *gone)}")
            keys = "tuple(g.key for g in changed)"
            source.line("q.remember(changed)")
        empty = "not inserted and not removed" if self.plan.where is None else "False"
        with source.block(f"if number_in or number_out or {empty}:"):
            source.line(f"q.output.updates.append(Update(new, old, number_in, number_out, {keys}))")

    def write_state(self, source: SourceWriter) -> None:
        """The instance's state as locals."""
        source.line("fail = q.fail")
        if self.fold.is_grouped:
            source.line("groups = q.groups")
            source.line("get = groups.get")
        else:
            source.line("whole = q.whole")
        if self.recent_rows:
            source.line("recent = q.recent")
        if self.show.defers:
            source.line("waits = q.output.waits")
        if self.show.defers == "groups":
            source.line("touched = q.output.touched")

    # --- push ---------------------------------------------------------------------------------------------------------

    def _write_push(self, source: SourceWriter) -> None:
        arguments = "q, rows, times" if self.is_timed else "q, rows, now"
        with source.block(f"def push({arguments}):"):
            self.write_state(source)
            source.line("out = q.out")
            source.line("name = q.name")
            source.line("seq = q.seq")
            if self.has_window:
                source.line("is_roomy = q.budget.takes(q, len(rows))")
            if self.window is not None:
                self.window.write_load(source, "q.windows[0]")
            elif self.has_window:
                source.line("operator = q.windows[0]")
                if self.gate is not None:
                    self.gate.write_load(source)
            with source.block("for e, now in zip(rows, times):" if self.is_timed else "for e in rows:"):
                self._write_event(source)
            source.line("q.seq = seq")
        source.line("")

    def _write_event(self, source: SourceWriter) -> None:
        slots = self.slots("g" if self.fold.is_grouped else "whole", "now", "True")
        loop = self.make_loop(source, slots)
        if self.is_timed and self._reads_clock:
            source.line("context.now_ms = now")
        needs_event = self.window is not None and self.window.needs_event
        made_first = bool(self.plan.analytics or self.plan.subqueries or needs_event)
        if made_first or self.plan.sources[0].filter is not None or self.has_window:
            self._write_admitted(loop, made_first)
        if self.recent_rows:
            source.line("recent.append(e)")
        if self.has_window and self.window is None:
            self._write_called(source, made_first)
        else:
            self._write_inline(loop, made_first)

    def _write_admitted(self, loop: LoopWriter, made_first: bool) -> None:
        """Analytic functions see the event; the filter, the bound and the window's own values decide if it enters."""
        source = loop.source
        with source.block("try:"):
            if made_first:
                source.line("seq += 1")
                source.line("x = Event(e, now, seq)")
            if self.plan.subqueries:
                source.line(f"q.sources.subqueries.push({self.plan.sources[0].stream!r}, e, now)")
            if self.plan.analytics:
                source.line("q.analytic.see(x)")
            if self.plan.sources[0].filter is not None:
                loop.skip_unless(self.plan.sources[0].filter)
            if self.has_window:
                with source.block("if not is_roomy:"):
                    source.line("q.budget.admit(q)")
            if self.window is not None:
                self.window.write_prepare(loop)
        with source.block("except DATA_ERRORS as error:"):
            source.line("fail(e, error)")
            source.line("continue")

    def _write_called(self, source: SourceWriter, made_first: bool) -> None:
        """The window is called; each update it gives is a change."""
        if not made_first:
            source.line("seq += 1")
            source.line("x = Event(e, now, seq)")
        if self.gate is not None:
            self.gate.write_hold(source)
        source.line("q.seq = seq")
        with source.block("try:"):
            source.line("deltas = operator.push(Delta((x,)), now)")
        with source.block("except DATA_ERRORS as error:"):
            source.line("fail(e, error)")
            source.line("continue")
        with source.block("if deltas:"):
            if self.show.collects:
                with source.block("for inserted, removed in deltas:"):
                    source.line("change(q, inserted, removed, now)")
                source.line("q.output.end_step(now)")
            else:
                source.line("new, old = [], []")
                with source.block("for inserted, removed in deltas:"):
                    source.line("change(q, inserted, removed, now, new, old)")
                self.show.emit(source)
            if self.gate is not None:
                self.gate.write_load(source)
        source.line("seq = q.seq")

    # --- inline -------------------------------------------------------------------------------------------------------

    def _write_inline(self, loop: LoopWriter, made_first: bool) -> None:
        """The event enters and leaves in the loop itself."""
        source = loop.source
        self._write_begun(source)
        if self._counts_nothing:
            self._write_held(loop, made_first)
            return
        self._write_prepared(loop)
        self._write_made(source, made_first)
        if self._notes_prior:
            source.line("q.prior.note((x,))")
        self._write_entered(loop)
        if self._is_single and self._notes_touch:
            source.line("touched = g is not None")
        if self._is_single and self._notes_left:
            source.line("h = None")
        if self.window is not None:
            with source.block("if not brief:") if self._skips_brief else nullcontext():
                self.window.write_enter(source, lambda: self._write_left(source))
        if self._is_single:
            self._write_single(loop)
        else:
            self._write_finished(source)

    @property
    def _counts_nothing(self) -> bool:
        """Whether each event gives a row and no aggregate, group or old row depends on it."""
        fold = self.fold
        is_plain = not (fold.kept.parts or fold.is_grouped or fold.counts) and self.plan.where is None
        return is_plain and self._is_single and not self.has_change and not self._notes_touch

    def _write_held(self, loop: LoopWriter, made_first: bool) -> None:
        """The event is in the window, and its row leaves."""
        source = loop.source
        if self.window is not None and not made_first:
            source.line("seq += 1")
            source.line("x = Event(e, now, seq)")
        if self._notes_prior:
            source.line("q.prior.note((x,))")
        if self.window is not None:
            self.window.write_enter(source, lambda: source.line("pass"))
        self._write_row(loop)

    def _write_begun(self, source: SourceWriter) -> None:
        """Before the event changes anything."""
        if self.fold.can_reclaim:
            source.line("q.forget_idle(now)")
        if not self._is_single and not self.show.defers:
            source.line("new, old = [], []")
            self.show.begin(source)
            if self.show.collects:
                source.line("number_in = number_out = 0")

    def _write_entered(self, loop: LoopWriter) -> None:
        """The event counts in its group."""
        source, show = loop.source, self.show
        if self._skips_brief:
            source.line("brief = left and left[0] is x")
        with source.block("if g is not None and not brief:" if self._skips_brief else "if g is not None:"):
            if not self._is_single:
                show.before(source, "g", "x")
            self.fold.enter(loop)
            if show.collects:
                source.line("number_in += 1")
            if show.defers:
                self._write_start(source)

    def _write_finished(self, source: SourceWriter) -> None:
        """The rows of the event, as an emission or an update."""
        show = self.show
        show.finish(source, "() if g is None else (x,)")
        if not show.collects:
            show.emit(source)
            return
        source.line("inserted, removed = (x,), ()")
        if show.kind == "group_event":
            source.line("entered = () if g is None else (x,)")
        self._write_update(source)
        source.line("q.output.end_step(now)")

    def _write_prepared(self, loop: LoopWriter) -> None:
        source = loop.source
        event = "Event(e, now, seq)"
        with source.block("try:"):
            self._write_counted(loop, event, "now")
        with source.block("except DATA_ERRORS as error:"):
            source.line("fail(e, error)")
            source.line("g = None")

    def _write_made(self, source: SourceWriter, made_first: bool) -> None:
        """The event as an object, where somebody holds it."""
        if not (self.window is not None or self.fold.needs_event or not self._is_single or self.reads_beside):
            return
        values = self.fold.values if self.window is not None else "None"
        if made_first:
            source.line("x.group = g")
            if values != "None":
                with source.block("if g is not None:"):
                    source.line(f"x.values = {values}")
            return
        source.line("seq += 1")
        if values == "None":
            source.line("x = Event(e, now, seq, None, g)")
        else:
            text = f"Event(e, now, seq, None, g, {values})"
            source.line(f"x = {text} if g is not None else Event(e, now, seq)")

    def _write_left(self, source: SourceWriter) -> None:
        """The event `y` leaves."""
        loop = self.make_loop(source, {})
        source.line("h = y.group")
        with source.block("if h is not None:"):
            if not self._is_single:
                self.show.before(source, "h", "y")
            self.fold.leave(loop)
            if self._is_single:
                if self._notes_touch:
                    source.line("touched = True")
            else:
                self.show.left(source)
            if self.show.collects:
                source.line("number_out += 1")

    def _write_single(self, loop: LoopWriter) -> None:
        """The only row of the event, as an emission."""
        with loop.source.block("if touched:" if self._notes_touch else "if g is not None:"):
            self._write_row(loop)
        if self._notes_left:
            with loop.source.block("elif h is not None:"):
                loop.source.line("new = []")
                loop.source.line("show(q, y, h, new, True)")
                self.show.emit(loop.source)

    def _write_row(self, loop: LoopWriter) -> None:
        source, plan, show = loop.source, self.plan, self.show
        with source.block("try:"):
            if plan.having is not None:
                loop.skip_unless(plan.having)
                show.note(source, "HAVING", "now")
            write_row(loop, plan, "out.append(Emission(name, now, 'rows', [", "]))")
            show.note(source, "SELECT", "now")
        with source.block("except DATA_ERRORS as error:"):
            source.line("fail(e, error)")

    # --- reading ------------------------------------------------------------------------------------------------------

    @cached_property
    def _reads_clock(self) -> bool:
        return any(
            isinstance(node, Apply) and node.function.context for part in self._expressions() for node in part.walk()
        )

    def _expressions(self) -> Iterator[Bound]:
        plan = self.plan
        yield from (item.value for item in plan.items)
        yield from plan.group_by
        yield from (arg for call in plan.aggregates for arg in call.args)
        yield from (node for node in (plan.sources[0].filter, plan.where, plan.having) if node is not None)
        yield from (criterion.value for criterion in plan.order_by)

    @cached_property
    def reader(self) -> Generated:
        """The functions that show the content, compiled when first asked for."""
        return content_text(self)


def drives(plan: Plan) -> bool:
    """Whether arriving events go through a compiled loop, into which a single window may be written.

    They do not where a step changes several things before rows are made, or where filters read relations, so that they
    are evaluated before any statement acts.
    """
    source = plan.sources[0]
    if len(plan.sources) != 1 or plan.relations or plan.into_table is not None:
        return False
    if plan.mode == "lots":
        return source.lot is not None and source.lot.is_simple
    if plan.subqueries and source.filter is not None:
        return False
    return source.pattern is None and source.recognize is None


def takes_times(plan: Plan) -> bool:
    """Whether the loop takes each event with its own instant: in event time, where all events are of one stream."""
    return plan.timestamp is not None and drives(plan) and not plan.subqueries


def _is_derived(name: str) -> bool:
    spec = lookup(name)
    return spec is not None and spec.role == "derived"

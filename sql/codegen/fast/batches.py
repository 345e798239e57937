"""EPL batch windows: events are held, and folded when the batch is released.

hold(rows, held)    the source's filter; without one the rows are held as they come
fold(rows, …)       WHERE, key and arguments of a whole batch: numbers into lists per group, as windows do
look(looks, …)      HAVING, ORDER BY keys and SELECT over the rows and the values of their groups
look_back(…)        the same for what leaves, where irstream or rstream ask for it

When a batch is released is decided by the window's own `Trigger`. What it holds is folded at once, so a batch of plain
values needs no accumulators, and nothing has to be taken out again. A batch with anything else in it (an expression
that fails, text among an aggregate's arguments, too many groups) is left to `Changes`, with the one before it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat
from sys import maxsize
from typing import Any, NamedTuple

from sql.codegen.expressions import Code, Names
from sql.codegen.fast.folding import FoldingQuery
from sql.codegen.fast.groups import GroupTable
from sql.codegen.fast.query import runs
from sql.codegen.fast.source import SourceWriter
from sql.codegen.functions import DATA_ERRORS, EventFunction
from sql.runtime.build import WindowBuilder
from sql.runtime.changes import Changes
from sql.runtime.emission import Emission
from sql.runtime.query import in_order
from sql.runtime.state import pack_row
from sql.types import key_of
from sql.windows.combine import Meet
from sql.windows.event import Delta, Event
from sql.windows.gate import Trigger
from sql.windows.triggers import AfterCount, CountOrSince

Look = tuple[Any, Sequence[Any]]
"""An event, and the values of the aggregates beside it."""
Values = Mapping[Hashable, Sequence[Any]]
"""The aggregates of each group."""

_ARRIVAL = Event(None, 0, 0)
_NOTHING: OrderedDict[Event, None] = OrderedDict()


class Generation:
    """What one release brought in.

    rows    all its events
    passed  those WHERE let through
    keys    their groups, where rows of single events show them
    firsts  each group's first event
    values  each group's aggregates; () is the key where there are no groups
    """

    __slots__ = ("events", "firsts", "is_folded", "keys", "passed", "rows", "values")

    def __init__(self, rows: list[Any], passed: list[Any], keys: list[Any], table: GroupTable | None) -> None:
        self.rows = rows
        self.passed = passed
        self.keys = keys
        groups = {} if table is None else table.groups
        self.is_folded = table is not None
        """False: it holds what cannot be folded here."""
        self.firsts = {key: group[0] for key, group in groups.items() if key != ()}
        self.values = {} if table is None else {key: table.results(group) for key, group in groups.items()}
        self.events: list[Event] = []
        """The rows as the operators know them, while they do the work."""


class Rows(NamedTuple):
    """The rows of a release before ORDER BY and LIMIT, and how many events it brought in."""

    new: list[Any]
    old: list[Any]
    entered: int


class BatchQuery(FoldingQuery):
    """length_batch, time_batch and time_length_batch."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        plan = self.plan
        own = (self.catalog, self.context, self.warnings, self.shape, self.new_event)
        window = WindowBuilder(plan.sources[0], plan.options, *own).build(self.now_ms)
        assert isinstance(window, Meet) and window.batch is not None
        self.window = window
        self.trigger: Trigger = window.batch.trigger
        self.size = self.trigger.size if isinstance(self.trigger, AfterCount | CountOrSince) else maxsize
        self.has_clock = not isinstance(self.trigger, AfterCount)
        self.nothing = self.new_table().results_of_none()
        self.forming: list[Any] = []
        self.generation = Generation([], [], [], self.new_table())
        self.carried = 0
        """How many groups began before the generation: of each the operators keep the first event beside it."""
        self.changes: Changes | None = None
        """The operators' groups, while the generation holds what cannot be folded here."""

    # --- code ---------------------------------------------------------------------------------------------------------

    def _write(self, writer: SourceWriter, names: Names) -> None:
        names.bind(key_of, "key_of")
        self._write_hold(writer)
        self._write_fold(writer)
        self.write_look(writer, names, {("istream", None): Code("True", False, True, "boolean")})
        if self.shows_old:
            self.write_look(writer, names, {("istream", None): Code("False", False, True, "boolean")}, "look_back")

    @property
    def shows_old(self) -> bool:
        """Whether rows of the remove stream are given out: what has left, or what groups were before."""
        return self.plan.selector != "istream"

    def _write_hold(self, writer: SourceWriter) -> None:
        condition = self.plan.sources[0].filter
        if condition is None:
            return
        loop = self.loop_writer(writer, {})
        with writer.block("def hold(rows, held):"), writer.block("for e in rows:"):
            with writer.block("try:"):
                loop.skip_unless(condition)
                writer.line("held.append(e)")
            with writer.block("except DATA_ERRORS as error:"):
                writer.line("fail(e, error)")
        writer.line("")

    def _write_fold(self, writer: SourceWriter) -> None:
        """The loop that only batches with WHERE, groups or aggregates need."""
        plan = self.plan
        if plan.where is None and plan.row_kind == "plain":
            return
        loop = self.loop_writer(writer, {})
        with writer.block("def fold(rows, table, passed, keys):"):
            self.write_names(writer)
            with writer.block("for e in rows:"):
                if plan.where is not None:
                    loop.skip_unless(plan.where)
                    writer.line("passed.append(e)")
                if plan.row_kind != "plain":
                    self.write_event(loop, self.new_table())
                if plan.row_kind == "group_event":
                    writer.line("keys.append(key)")
        writer.line("")

    # --- events -------------------------------------------------------------------------------------------------------

    def enter(self, rows: Sequence[Any], times: Sequence[int] | None) -> None:
        first, count = 0, len(rows)
        while first < count:
            if times is not None:
                self.step_to(times[first])
                self.now_ms = max(self.now_ms, times[first])
            last = self._run(times, first, count)
            self._hold(
                rows if last - first == count else rows[first:last], None if times is None else times[first:last]
            )
            first = last
            if len(self.forming) >= self.size:
                if times is not None:
                    self.now_ms = max(self.now_ms, times[last - 1])
                self._release()

    def _run(self, times: Sequence[int] | None, first: int, count: int) -> int:
        """Where the run of events ends that can be held without looking up."""
        last = min(count, first + self.size - len(self.forming), first + max(1, self.budget.room))
        if times is None or not self.has_clock:
            return last
        due_ms = self.trigger.deadline()
        return min(last, runs(times, first, times[first] + 1 if due_ms is None else due_ms))

    def _hold(self, rows: Sequence[Any], times: Sequence[int] | None) -> None:
        """Events of one run come into the forming batch, where the filter lets them."""
        before = len(self.forming)
        if self.budget.room <= 0:
            self._hold_counted(rows)
        else:
            if self.plan.sources[0].filter is None:
                self.forming.extend(rows)
            else:
                self.code["hold"](rows, self.forming)
            self.budget.room -= len(self.forming) - before
        if self.has_clock and len(self.forming) > before:
            self.trigger.on_event(_ARRIVAL, _NOTHING, self.now_ms)

    @cached_property
    def passes(self) -> EventFunction | None:
        """The source's filter for a single event."""
        condition = self.plan.sources[0].filter
        return None if condition is None else self.functions.true(condition)

    def _hold_counted(self, rows: Sequence[Any]) -> None:
        """Events that may be more than the query retains at most."""
        for row in rows:
            try:
                if self.passes is None or self.passes(Event(row, self.now_ms, 0)):
                    self.budget.admit(self)
                    self._admit(row)
                    self.forming.append(row)
            except DATA_ERRORS as error:
                self.on_error(Event(row, self.now_ms, 0), error)
        self.tell_errors()

    def _admit(self, row: Any) -> None:
        """An event is about to enter the forming batch; an error keeps it out."""

    # --- releases -----------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        return self.trigger.deadline()

    def step_to(self, until_ms: int) -> None:
        while (due_ms := self.trigger.deadline()) is not None and due_ms <= until_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.advance_to(due_ms)

    def advance_to(self, now_ms: int) -> None:
        due_ms = self.trigger.deadline()
        if due_ms is not None and due_ms <= now_ms:
            self._release(by_clock=True)

    def _release(self, *, by_clock: bool = False) -> None:
        """What is held enters, and what the release before brought in leaves."""
        self.context.now_ms = self.now_ms
        new, old = self._folded(self.forming), self.generation
        self.forming, self.generation = [], new
        self.trigger.released(_NOTHING, self.now_ms)
        if not new.rows:
            self.trigger.rest()
        if new.rows or old.rows or self.trigger.force:
            # A release at a grid point of a FORCE_UPDATE window is given out whatever it holds.
            self._post(new, old, always=by_clock and self.trigger.force and self.plan.having is None)
        if not self.shows_old:
            new.keys, new.values = [], {}

    def _folded(self, rows: list[Any]) -> Generation:
        plan, table = self.plan, self.new_table()
        passed: list[Any] = rows if plan.where is None else []
        keys: list[Any] = []
        if "fold" in self.code.functions:
            try:
                self.code["fold"](rows, table, passed, keys)
            except DATA_ERRORS:
                return Generation(rows, passed, keys, None)
        return Generation(rows, passed, keys, None if table.has_text else table)

    def _post(self, new: Generation, old: Generation, *, always: bool) -> None:
        """The emission of one release, and its errors."""
        found = self._rows(new, old) if self._fits(new, old) else self._rows_by_operators(new, old)
        if found is not None:
            if self.plan.selector == "rstream":
                # One that has only seen inserts has nothing to say, not even that.
                always = always and not found.entered
                found = Rows(found.old, [], 0)
            rows = self.in_order(found.new) if found.new else []
            removed = self.in_order(found.old) if found.old else ()
            if rows or removed or always:
                self.counts["rows_out"] += len(rows)
                self.out.append(Emission(self.name, self.now_ms, "rows", rows, removed))
        self.tell_errors()

    def _rows(self, new: Generation, old: Generation) -> Rows | None:
        """The rows of a release; None where WHERE lets nothing of it through."""
        if self.plan.where is not None and not new.passed and not old.passed:
            return None
        self.carried = len(new.firsts.keys() & old.firsts.keys())
        bad: list[tuple[Any, BaseException]] = []
        rows = self.code["look"](self._looks(new, old, new), 0, 0, 0, bad)
        # What cannot be evaluated as it leaves is not told.
        left = self.code["look_back"](self._looks(new, old, old), 0, 0, 0, []) if self.shows_old else []
        self.errors += [self.failure(row, error, self.now_ms) for row, error in bad]
        self.counts["errors"] += len(bad)
        return Rows(rows, left, len(new.passed))

    def _looks(self, new: Generation, old: Generation, shown: Generation) -> Iterable[Look]:
        """Each row to be, new or old, and the aggregates' values beside it, as the statement's kind of rows wants them.

        Groups are shown as they are in `shown`, new or old; its events beside the values there are now.
        """
        kind = self.plan.row_kind
        if kind == "group":
            return self._looks_at_groups(new, old, shown.values)
        if kind == "aggregate":
            return self._looks_at_whole(new, old, shown.values)
        return self._looks_at_events(shown, new.values)

    def _looks_at_groups(self, new: Generation, old: Generation, values: Values) -> Iterable[Look]:
        """Each group that something entered or left, by the first event of these."""
        firsts = {**new.firsts, **{key: row for key, row in old.firsts.items() if key not in new.firsts}}
        return ((row, values.get(key, self.nothing)) for key, row in firsts.items())

    def _looks_at_whole(self, new: Generation, old: Generation, values: Values) -> Iterable[Look]:
        return ((next(chain(new.passed, old.passed), None), values.get((), self.nothing)),)

    def _looks_at_events(self, shown: Generation, values: Values) -> Iterable[Look]:
        kind = self.plan.row_kind
        if kind == "group_event":
            return zip(shown.passed, (values.get(key, self.nothing) for key in shown.keys), strict=True)
        beside = () if kind == "plain" else values.get((), self.nothing)
        return zip(shown.passed, repeat(beside), strict=False)

    # --- what cannot be folded here -----------------------------------------------------------------------------------

    def _fits(self, new: Generation, old: Generation) -> bool:
        """Whether the rows of a release can be made here."""
        if not new.is_folded or self.changes is not None:
            return False
        # What leaves counts until what enters is there.
        return len(new.firsts.keys() | old.firsts.keys()) <= self.plan.options.max_groups

    def _rows_by_operators(self, new: Generation, old: Generation) -> Rows | None:
        """The rows of a release as the operators make them; None where it is no update."""
        changes = self.changes
        if changes is None:
            old.events = self._events(old.rows)
            changes = self._primed(old.events)
        new.events = self._events(new.rows)
        update = changes.update(Delta(new.events, old.events))
        self.carried = len({event.seq for event in changes.held()} - {event.seq for event in new.events})
        self.changes = None if new.is_folded and not changes.refused else changes
        if update is None:
            return None
        if not self.plan.order_by:
            return Rows([out.row for out in update.new], [out.row for out in update.old], update.inserted)
        return Rows(update.new, update.old, update.inserted)

    def _events(self, rows: Iterable[Any]) -> list[Event]:
        return [self.new_event(row, self.now_ms) for row in rows]

    def _primed(self, events: Iterable[Event]) -> Changes:
        """The operators' groups with these events in them, which have been reported where they could not be taken."""
        muted = Changes(self.plan, self.functions, self.window, (), lambda event, error: None)
        muted.update(Delta(tuple(events)))
        muted.on_error = self.on_error
        return muted

    # --- looking ------------------------------------------------------------------------------------------------------

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        generation = self._events(self.generation.rows)
        changes = self.changes or self._primed(generation)
        with self.reading():
            return in_order(changes.present(self._events(self.forming)), self.plan, (None, 0))

    # --- state --------------------------------------------------------------------------------------------------------

    def retained(self) -> int:
        """As on the operators."""
        return len(self.forming) + len(self.generation.rows) + self.carried

    def _state(self) -> Any:
        refused = () if self.changes is None else self.changes.refused
        return {
            "held": [pack_row(row) for row in self.forming],
            "generation": [pack_row(row) for row in self.generation.rows],
            "carried": self.carried,
            "refused": [place for place, event in enumerate(self.generation.events) if event in refused],
            "trigger": self.trigger.snapshot(),
        }

    def _put_back(self, state: Any, store: Any) -> None:
        self.forming = [self.row_of(packed) for packed in state["held"]]
        self.generation = generation = self._folded([self.row_of(packed) for packed in state["generation"]])
        self.carried = state["carried"]
        self.trigger.restore(state["trigger"])
        if not generation.is_folded or state["refused"]:
            generation.events = events = self._events(generation.rows)
            refused = {events[place] for place in state["refused"]}
            self.changes = self._primed(event for event in events if event not in refused)
            self.changes.refused = refused
        if not self.shows_old:
            generation.keys, generation.values = [], {}

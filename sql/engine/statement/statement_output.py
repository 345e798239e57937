"""The rows of the present content, and the output of a statement: from the rows of a step to emissions, with
the output limit, order and LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sql.algebra.event import NOTHING, Event
from sql.algebra.output.limit_builder import LimitBuilder
from sql.algebra.output.limited_output import LimitedOutput
from sql.algebra.output.output_triggers import WhenExpression
from sql.algebra.output.row_order import Spreads, in_order, row_limit
from sql.codegen.functions import FunctionSet
from sql.emission import Emission, Out, Update, joined, shown
from sql.engine.statement.into import TableFold
from sql.engine.statement.statement_core import StatementCore
from sql.engine.statement.statement_sources import Sources
from sql.plan.context_plan import reads_partition_alone
from sql.plan.logical import Plan


class ContentReader:
    """Makes rows of what one running statement holds."""

    def __init__(self, statement: StatementCore, sources: Sources, into: TableFold | None) -> None:
        self.statement = statement
        self.sources = sources
        self.into = into
        self.count: Callable[[], None] | None = None
        """Counts the present rows, where they are looked up and never come as events."""

    def present_rows(self) -> list[Any]:
        """The rows of the present content, as `show` makes them."""
        if self.count is not None:
            self.count()
        try:
            with self.statement.earlier.queue_noted():
                return self._shown()
        finally:
            if self.count is not None:
                self.statement.groups.reset()

    def _shown(self) -> list[Any]:
        statement = self.statement
        reader, kind = statement.program.text.reader, statement.plan.row_kind
        rows: list[Any] = []
        if kind == "aggregate":
            whole = statement.groups.whole if self.into is None else self.into.group_at((), NOTHING)
            reader["show"](statement, NOTHING, whole, rows, True)
        elif kind == "group" and statement.plan.keeps_groups:
            for group in statement.groups.by_key.values():
                reader["show"](statement, group.first, group, rows, True)
        else:
            counted = reader["counted"](statement, list(self.sources.content()))
            if kind == "group":  # the oldest event of each, groups in the order of their newest events
                counted = reversed(dict(reversed(counted)).items())
            for key, event in counted:
                reader["show"](statement, event, self._group(key, event), rows, True)
        return rows

    def _group(self, key: object, event: Event) -> Any:
        """The group of a key, also where it is a row of a table."""
        return self.statement.groups.of(key, event) if self.into is None else self.into.group_at(key, event)

    def current(self, key: object) -> list[Out]:
        """The present row of a group, also of one that has become empty; none where HAVING drops it."""
        statement = self.statement
        event = statement.groups.representatives[key]
        rows: list[Out] = []
        statement.program.text.reader["show"](statement, event, self._group(key, event), rows, True)
        return rows


def _ends(plan: Plan, functions: FunctionSet) -> dict[str, Callable[..., Any]]:
    """The columns that show what ends the partition, and nothing of the event. Rows that were made before get
    them at the end, but for `all` and `last` of single events with aggregates."""
    context, output = plan.context, plan.output
    if context is None or output is None or output.terminated is None:
        return {}
    is_of_groups = output.mode == "last" and plan.row_kind == "group"
    if plan.aggregates and output.mode != "default" and not is_of_groups:
        return {}
    return {
        item.name: functions.value(item.value)
        for item in plan.items
        if item.name is not None and context.names_end(item.value) and reads_partition_alone(item.value)
    }


def _ticks(plan: Plan, rows: tuple[list[Any], list[Any]]) -> bool:
    """True if an output that is due in a partition is emitted even without rows. Elsewhere each is."""
    assert plan.output is not None
    mode, kind = plan.output.mode, plan.row_kind
    if mode == "snapshot" or plan.selector == "rstream":
        return True
    if mode == "last":
        return _is_kept_back(plan, rows) or (kind == "plain" and any(rows))
    return kind == "plain"


def _is_kept_back(plan: Plan, rows: tuple[list[Any], list[Any]]) -> bool:
    """True if HAVING keeps back what `last` of only aggregates shows each time."""
    assert plan.output is not None
    return plan.output.mode == "last" and plan.row_kind == "aggregate" and not any(rows)


class Output:
    """The output of one running statement."""

    def __init__(self, statement: StatementCore, content: ContentReader) -> None:
        self.statement = statement
        plan, functions = statement.plan, statement.program.functions
        self.plan = plan
        self.show = statement.program.text.show
        self.updates: list[Update] = []
        """The updates of the present step, where they are handed on one by one."""
        self.spreads = Spreads(plan.spreads) if plan.spreads else None
        self.row_limit = row_limit(plan, functions)
        self.touched: dict[Any, Any] = {}
        """Groups that have changed since the last output, each with an event, where rows are made then."""
        self.waits = self.show.defers is not None and plan.output is not None
        """True if nothing has come since the start, from which the output limit counts."""
        self.ends = _ends(plan, functions)
        self.limit: LimitedOutput | None = None
        if plan.output is not None:
            zone = statement.context.zone
            builder = LimitBuilder(
                plan,
                functions,
                statement.catalog,
                statement.now_ms,
                zone,
                content.present_rows,
                content.current,
                partial(statement.report, None),
                self._touched_rows if self.show.defers == "groups" else None,
            )
            self.limit = builder.build(plan.output)

    def _touched_rows(self) -> list[Out]:
        """The rows of the groups that have changed since it was called last, where these are made then."""
        rows: list[Out] = []
        show = self.statement.program.text.reader["show"]
        for group, event in self.touched.items():
            show(self.statement, event, group, rows, True)
        self.touched.clear()
        return rows

    def start(self, now_ms: int) -> bool:
        """The first update of all has come; whether another one is still waited for."""
        assert self.limit is not None
        self.limit.condition.on_update(Update([], [], 1), now_ms)
        self.waits = False
        return False

    # --- steps ----------------------------------------------------------------------------------------------

    def end_step(
        self, now_ms: int, new: Sequence[Any] = (), old: Sequence[Any] = (), *, is_timer: bool = False
    ) -> None:
        """All updates of a step are known: its rows leave, or go to the output limit."""
        if not self.show.collects:
            if new or old:
                self.give(list(new), list(old), now_ms)
            return
        updates, self.updates = self.updates, []
        if not updates:
            return
        if self.limit is None:
            self._post_updates(updates, now_ms, is_timer=is_timer)
            return
        out = self.statement.out
        before = len(out)
        for rows, is_ticked in self.limit.update(updates, now_ms):
            self.give(*rows, now_ms, is_ticked=is_ticked)
        if len(out) > before + 1:
            out[before:] = joined(out[before:])
        if self.limit.samples:
            for window in self.statement.windows:
                window.end_step()

    def _post_updates(self, updates: list[Update], now_ms: int, *, is_timer: bool) -> None:
        """The updates of windows that post at empty boundaries: a release by the clock is
        posted whatever it holds.

        Events that HAVING keeps back are no empty boundary.
        """
        new = [row for update in updates for row in update.new]
        old = [row for update in updates for row in update.old]
        # rstream emits nothing for an update that only inserts.
        is_silent = any(self._is_silent(update) for update in updates)
        self.give(new, old, now_ms, is_ticked=is_timer and not is_silent)

    def _is_silent(self, update: Update) -> bool:
        if self.plan.having is not None and (update.inserted or update.removed):
            return True
        return self.plan.selector == "rstream" and update.inserted > 0

    def tick(self, now_ms: int) -> None:
        """The output limit is due."""
        assert self.limit is not None
        is_alone = self.statement.env.partition is None
        for rows in self.limit.advance(now_ms):
            self.give(*rows, now_ms, is_ticked=is_alone or _ticks(self.plan, rows))

    def tick_after(self, new: list[Any], old: list[Any], now_ms: int) -> None:
        """The output limit is due, behind the rows of the updates before it."""
        self.end_step(now_ms, new, old, is_timer=True)
        new.clear()
        old.clear()
        self.tick(now_ms)

    def reached(self, now_ms: int) -> None:
        """Emit: as many events have come as the output limit counts."""
        assert self.limit is not None
        for rows in self.limit.fire(now_ms):
            self.give(*rows, now_ms, is_ticked=self.limit.forces)

    def terminate(self, now_ms: int) -> None:
        """The context partition ends: the output of `when terminated`."""
        if self.limit is None:
            return
        for window in self.statement.windows:
            window.end_step()
        ends_empty = self.limit.given.ends_empty or self.plan.selector == "rstream"
        for new, old in self.limit.terminate(now_ms):
            is_ticked = ends_empty or _is_kept_back(self.plan, (new, old))
            self.give(self._named(new), self._named(old), now_ms, is_ticked=is_ticked)

    def _named(self, rows: list[Any]) -> list[Any]:
        """Rows with what ends the partition, which was not known when they were made."""
        ends = {name: value(NOTHING, None, None) for name, value in self.ends.items()} if rows else {}
        if not ends:
            return rows
        return [
            row._replace(row={**row.row, **ends}) if isinstance(row, Out) else {**row, **ends} for row in rows
        ]

    # --- emissions ------------------------------------------------------------------------------------------

    def give(self, new: list[Any], old: list[Any], now_ms: int, *, is_ticked: bool = False) -> None:
        """The emission of one output; `is_ticked`: emitted even without rows."""
        new, old = shown(self.plan.selector, new, old)
        if not new and not old and not is_ticked:
            return
        inserted = self.ordered(new)
        removed = self.ordered(old) if old else ()
        if not inserted and not removed and (self.spreads is not None or not is_ticked):
            return  # unnest made no row of them, or OFFSET skipped them all
        self.statement.out.append(Emission(self.statement.name, now_ms, "rows", inserted, removed))

    def ordered(self, rows: list[Any]) -> list[dict[str, Any]]:
        """Rows in the order of ORDER BY, cut by LIMIT."""
        if not (self.show.is_ordered or self.show.makes_outs):
            return rows
        return in_order(rows, self.plan, self.row_limit, self.spreads)

    # --- time and state -------------------------------------------------------------------------------------

    @property
    def is_pending(self) -> bool:
        """True if a condition holds whose output is due at the next advance of time."""
        return self.limit is not None and self.limit.condition.pending

    def next_deadline(self) -> int | None:
        return None if self.limit is None else self.limit.next_deadline()

    def flush(self, now_ms: int) -> list[Emission]:
        return []

    def advance(self, now_ms: int) -> None:
        """Time has come to `now_ms`, and all that was due has been done."""

    def variable_changed(self, name: str) -> None:
        """A variable has a new value, on which the condition may depend."""
        if self.limit is not None and isinstance(self.limit.condition, WhenExpression):
            self.limit.condition.variable_changed(name)

    def snapshot(self) -> dict[str, Any]:
        return {
            "spreads": None if self.spreads is None else self.spreads.snapshot(),
            "limit": None if self.limit is None else self.limit.snapshot(),
            "waits": self.waits,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        if self.spreads is not None:
            self.spreads.restore(snapshot["spreads"])
        if self.limit is not None:
            self.limit.restore(snapshot["limit"])
        self.waits = snapshot["waits"]

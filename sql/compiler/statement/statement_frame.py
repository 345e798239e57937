"""The frame of a statement's text: the names, the groups, the rows and the values of earlier events that its
functions share, and the statements that stand in several of them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cached_property
from math import sqrt
from typing import Any

from sql.aggregates.base import Removal
from sql.aggregates.structures.exact import NAN
from sql.algebra.event import UNSEEN, Delta, Event
from sql.algebra.fold import Fold
from sql.algebra.gate.gate import Gated
from sql.algebra.operator import Operator
from sql.algebra.retain.by_key import LatestPerKey
from sql.algebra.retain.grouped import QueuePerKey
from sql.algebra.retain.policies import Policy
from sql.algebra.retain.predicate import BUILTIN_CODES
from sql.algebra.retain.queues import Queue
from sql.algebra.retain.values import ABSENT
from sql.codegen.expression_code import Code
from sql.codegen.functions import DATA_ERRORS
from sql.codegen.loop import LoopWriter
from sql.codegen.names import Names
from sql.codegen.reader import RowReader
from sql.codegen.source import SourceWriter
from sql.compiler.shared_code import Answer, SharedCode
from sql.compiler.statement.deferral import Deferral, deferral, events_of
from sql.compiler.statement.driving import (
    EVALUATING,
    Use,
    driver_of,
    drives,
    found_in,
    hands_on,
    takes_times,
)
from sql.compiler.statement.earlier import Earlier
from sql.compiler.statement.row_fold import RowFold
from sql.compiler.statement.show import Show
from sql.emission import Emission, Out, Update
from sql.errors import over_max_groups
from sql.plan.bound import PrevCall, Slot, slot_kinds
from sql.plan.logical import Plan
from sql.plan.walk import slots_of
from sql.types import key_of


class StatementFrame:
    """The parts that the functions of one statement share."""

    def __init__(
        self, plan: Plan, around: SharedCode, answers: Sequence[Answer], use: Use, window: Operator | None
    ) -> None:
        """`answers`: the values of subqueries as functions of the event. `window`: that of the only
        stream."""
        self.plan = plan
        self.shape = around.env.shape
        self.catalog, self.context, self.warnings = around.catalog, around.context, around.warnings
        self.use = use
        self.is_driven = drives(plan) and use not in EVALUATING
        """True if events go through a loop; else changes are handed over, or rows that a search has found."""
        self.in_cells = use == "cells"
        self.is_timed = takes_times(plan) and self.is_driven and not self.in_cells
        """True if the loop takes each event with its own instant."""
        self.is_joined = plan.reads_tuples or use == "correlated"
        """True if rows are tuples of the rows of several sources."""
        self.is_driven_join = self.is_driven and driver_of(plan) is not None
        """True if one stream drives a join, and its events look their partners up."""
        is_found = self.is_driven_join or use in EVALUATING
        self.where = None if is_found and not plan.hits else plan.where
        """WHERE, unless the search for the rows has evaluated it."""
        self.kept = self._kept()
        """The sources whose rows are handed over as their relations keep them: the text alone reads them."""
        unknown = Removal.NEVER if use == "correlated" else Removal.ANY
        removal = unknown if window is None else window.departure
        written = None if use == "observed" else window
        self.gate: Gated | None = written if isinstance(written, Gated) else None
        """The window that holds events back."""
        self.has_window = any(source.windows or source.lot or source.keeps_last for source in plan.sources)
        policy = written if isinstance(written, Policy) else None
        self.keeps_values = isinstance(written, Queue | Gated) and written.keeps_values
        """True if windows keep what events contribute, in the place of events."""
        self.fold = self._fold(removal)
        self.names = self._names(answers)
        self._settle(policy, is_called=(self.has_window and policy is None) or self.where_reads_beside)
        if self.in_loop and self._folds_too_early():
            self._settle(policy, is_called=True)
        self.counts_beside = self.where_reads_beside or bool(
            self._folded_prevs and not self.earlier.is_inline
        )
        """True if WHERE or an aggregate needs values that only the instance can find."""

    def _settle(self, policy: Policy | None, *, is_called: bool) -> None:
        """The place where events enter and leave; `is_called`: outside the loop."""
        self.in_loop = self.is_driven and not is_called
        """True if events enter and leave in the loop itself; else it hands changes over to `change`."""
        self.window = policy if self.in_loop else None
        """The window whose entering and leaving is written into the loop."""
        self.has_value = self.in_loop and self.use == "value"
        """True if the text has a function `value`, and makes no rows."""
        self.show = Show(self.plan, self.make_loop, self._deferral(), is_joined=self.is_joined)
        is_single = self.in_loop and self._is_single()
        self.earlier = Earlier(self.plan.prevs, self.shape, self.window, in_place=is_single)
        self.reads_beside = bool(self.plan.prevs) and not self.earlier.is_inline
        """True if rows need values that only the instance can find: earlier events."""
        self.in_place = is_single and not self.reads_beside
        """True if an arriving event gives at most one row, which is made where the event stands, as an
        emission."""

    def _folds_too_early(self) -> bool:
        """True if an aggregate reads earlier events that the loop does not know before the window changes."""
        found = self._folded_prevs
        return bool(found) and (not self.earlier.is_inline or any(call.name != "prior" for call in found))

    def _deferral(self) -> Deferral | None:
        """The source of rows that are made at instants of the output only; None: rows are made at once."""
        if self.has_value:
            return "content"
        return deferral(self.plan, in_cells=self.in_cells) if self.in_loop else None

    def _fold(self, removal: Removal) -> Fold:
        """The fold of the events that count: into groups, or into the rows of a table."""
        plan = self.plan
        if self.is_driven and plan.into_table is not None and not plan.joins:
            places = self.catalog.relations[plan.into_table.table].places
            return RowFold(plan, [places[column] for column in plan.into_table.columns])
        return Fold(plan, removal, keeps_values=self.keeps_values)

    def _kept(self) -> frozenset[int]:
        if self.is_driven_join and self.use != "observed":
            return hands_on(self.plan)
        return found_in(self.plan) if self.use in EVALUATING else frozenset()

    def _names(self, answers: Sequence[Answer]) -> Names:
        """The globals of the text."""
        names = Names()
        names.bound |= {
            "DATA_ERRORS": DATA_ERRORS, "Emission": Emission, "Event": Event, "Delta": Delta, "Out": Out,
            "Update": Update, "key_of": key_of, "over_max_groups": over_max_groups, "context": self.context,
            "ABSENT": ABSENT, "NAN": NAN, "NOTHING": Event(None, 0, -1), "UNSEEN": UNSEEN, "sqrt": sqrt,
            "partition": self.context.partition, "subqueries": answers,
        }  # fmt: skip
        return names

    def _is_single(self) -> bool:
        """True if an arriving event changes one row at most, and only new rows are shown."""
        window = self.window
        if not self.show.is_direct or self.show.has_old or self.plan.grouping_sets:
            return False
        if self.show.kind != "group" or window is None or not window.leaves_on_arrival:
            return True
        # What leaves counts in the group of the event that arrives.
        return isinstance(window, QueuePerKey | LatestPerKey) and window.nodes == self.plan.group_by

    def make_loop(
        self,
        source: SourceWriter,
        slots: dict[Any, Code],
        *,
        rows: dict[int, str] | None = None,
        nullable: Sequence[int] = (),
        kept: Container[int] = (),
    ) -> LoopWriter:
        """A writer of statements over the row `e`, joined if the statement is; or over the `rows` of sources
        that stand in locals, of which those `nullable` may be NULL, and those `kept` are rows of
        relations."""
        settings = self.names, self.catalog, self.shape, slots
        kept = self.kept if rows is None else kept
        reader = RowReader(*settings, joined=self.is_joined, rows=rows, nullable=nullable, kept=kept)
        return LoopWriter(source, reader, self.warnings, self.context)

    def slots(self, owner: str, time: str, is_new: str, *, is_later: bool = False) -> dict[Any, Code]:
        """The code by which expressions read operators' values, where the event is `x` and its row `e`;
        `owner` stands before the names of its group's attributes.

        `is_later`: other events may have come since.
        """
        found = BUILTIN_CODES | self.fold.kept.codes(owner, self.names.bind)
        found["istream", None] = Code(is_new, False, True, "boolean")
        found["event_time", None] = Code(time, False, False, "number")
        for slot in slots_of(self.plan) if self.plan.grouping_sets else ():
            if slot.kind == "grouping":
                found["grouping", slot.key] = Code(f"{slot.key}[{owner}key[0]]", False, False, "number")
        for place in range(len(self.plan.analytics)):
            found["analytic", place] = Code(f"x.extra[{place}]")
        for place, hit in enumerate(self.plan.hits):
            text = f"q.hits.by_clause[{hit.clause!r}].{hit.attribute}"
            found["hit", place] = Code(text, False, False, "number")
        for place, call in enumerate(self.plan.prevs):
            if self.earlier.is_inline and not is_later:
                found["prev", place] = Code(self.earlier.text_of(call))
            else:
                found["prev", place] = Code(f"b[{len(self.plan.aggregates) + place}]")
        return found

    @cached_property
    def where_reads_beside(self) -> bool:
        return "prev" in slot_kinds(self.plan.where)

    @cached_property
    def _folded_prevs(self) -> list[PrevCall]:
        """The calls by which aggregates read earlier events."""
        calls = self.plan.aggregates
        parts = [part for call in calls for part in (*call.args, call.filter, *(call.group_by or ()))]
        nodes = (node for part in parts if part is not None for node in part.walk())
        return [self.plan.prevs[n.key] for n in nodes if isinstance(n, Slot) and n.kind == "prev"]

    def write_counted(self, loop: LoopWriter, event: str, time: str, owner: str = "g.") -> None:
        """Write WHERE, values and group of the row `e`, also for an event that does not count."""
        source, where = loop.source, self.where
        if self.counts_beside:
            source.line("b = q.earlier.beside(x, True)")
        if where is None:
            self.fold.write_values(loop, event, owner)
            return
        with source.block(f"if {loop.true(where)}:", where.span):
            self.show.note(source, "WHERE", time)
            self.fold.write_values(loop, event, owner)
        with source.block("else:"):
            source.line(self.fold.member.uncounted)

    def write_start(self, source: SourceWriter) -> None:
        """The output limit counts from the first update; in cells it may count events as well."""
        output = self.plan.output
        if output is None:
            return
        if self.in_cells:
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
        """The update of a step, with the keys of the groups that it has changed."""
        keys = "()"
        if self.show.kind == "group_event":
            source.line("changed = {x.group: x for x in (*entered, *gone)}")
            keys = "tuple(g.key for g in changed)"
            # The newest event that has come stands for a group: one that leaves shows nothing more.
            source.line("q.groups.remember({x.group: x for x in entered})")
        elif self.show.kind == "group":
            keys = "tuple(g.key for g in changed)"
            source.line("q.groups.remember(changed)")
        counted = ", keys_in, keys_out" if self.show.counts_groups else ""
        empty = "not inserted and not removed" if self.plan.where is None else "False"
        with source.block(f"if number_in or number_out or {empty}:"):
            source.line(f"q.output.updates.append(Update(new, old, number_in, number_out, {keys}{counted}))")

    def write_cell(self, source: SourceWriter) -> None:
        """The state of the cell `q` as locals."""
        self.fold.write_state(source, "q.folded", "q.folded")

    def write_state(self, source: SourceWriter) -> None:
        """The instance's state as locals."""
        source.line("fail = q.fail")
        self.fold.write_state(source)
        if self.earlier.depth:
            source.line("recent = q.earlier.recent")
        if self.earlier.keeps_left:
            source.line("older = q.earlier.older")
        if self.show.defers and self.plan.output is not None:
            source.line("waits = q.output.waits")
        if self.show.defers == "groups":
            source.line("touched = q.output.touched")

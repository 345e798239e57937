"""The text of a trigger: what an event does to a relation, collected before any of it is done.

    work(rows, relation, forward, changed, events, now)     does it for each event, and calls `changed`
                                                            the rows that came and those that were
                                                            there before

In the text `r0` is the event, `r1` the row of the relation as the actions before have left it,
`r2` as it was. Where an event does no more to rows that are there than to change one under its key, `y0` is
that row, looked up for all events at once; None where there was none then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from sql.algebra.event import Event
from sql.algebra.table.index import keys_of
from sql.algebra.table.row import columns_text
from sql.algebra.table.search import Search, loop_over
from sql.algebra.table.searched import Relation
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.loop import LoopWriter
from sql.codegen.output_rows import write_items
from sql.codegen.source import SourceWriter
from sql.emission import Row
from sql.plan.bound import Bound, conjuncts, reads_subquery
from sql.plan.logical import ActionPlan, BranchPlan, TriggerPlan
from sql.rows import field_name


class Changed:
    """The changes of a relation by several events, as one emission.

    came    the rows that came, also by an update
    before  those that were there before, in their place or at all
    fail    called with an event that could not be processed, while the error is handled
    """

    def __init__(self, fail: Callable[[Any, BaseException], None]) -> None:
        self.came: list[Row] = []
        self.before: list[Row] = []
        self.fail = fail

    def post(self, came: Sequence[Row], before: Sequence[Row]) -> None:
        """The change of one event. Where that is one row for another, the text adds them itself."""
        self.came += came
        self.before += before


Work = Callable[[Changed, Sequence[Any], int], None]
"""Takes the changes to report, the events and their instant."""

Forward = Callable[[str, Row], None]
"""Takes a row for another stream."""

COLLECTED = {"update": "written", "insert": "written", "delete": "removed"}
"""The names under which the text collects the changes of actions to the relation, in the order in which they
happen."""

CHANGES = tuple(dict.fromkeys(COLLECTED.values()))


class ActingText:
    """Writes the function of one trigger."""

    def __init__(self, plan: TriggerPlan, relation: Relation, functions: FunctionSet) -> None:
        """`relation`: one of those that the function is made for."""
        self.plan = plan
        self.functions = functions
        self.source = SourceWriter()
        self.needs_event = reads_subquery(_expressions(plan))
        self.nullable: tuple[int, ...] = ()
        """The sources that have no row where the text stands."""
        self.columns = relation.columns
        self.table_keys = frozenset(relation.declaration.keys) if relation.kind == "table" else None
        parts = tuple(conjuncts(plan.where))
        self.search = Search(parts, 1, {0}, relation)
        self.ahead = self._column_ahead()
        """The column of an event by which its row is looked up ahead, if it is."""
        self.work = self._compiled(parts)

    def over(self, relation: Relation, forward: Forward) -> Work:
        """The function for one relation."""
        rows = in_order(self.search, relation)
        if self.ahead is None:
            return partial(self.work, rows, relation, forward)
        return partial(self.work, rows, self.search.ahead(relation, self.columns), relation, forward)

    def _column_ahead(self) -> str | None:
        """The column of an event that is the key of its row, where no event removes a row that a later one
        has found: rows that are there change in place only."""
        is_whole = self.functions.reader.shape == "dict" and not self.needs_event
        matched = [branch for branch in self.plan.branches if branch.matched]
        if not (is_whole and matched and all(map(self._rewrites, matched))):
            return None
        return self.search.column_of(0)

    def _compiled(self, parts: Sequence[Bound]) -> Callable[..., None]:
        """The function, which takes the relation as arguments."""
        source = self.source
        find = "" if self.ahead is None else "find, "
        with source.block(f"def work(rows, {find}relation, forward, changed, events, now):"):
            source.line("came, before, post = changed.came, changed.before, changed.post")
            if any(map(self._rewrites, self.plan.branches)):
                source.line(f"stamp = {None if self.needs_event else 'relation.next_stamp()'}")
            with source.block(self._events()), source.attempt("changed.fail(r0, error)"):
                self._write_event(parts)
        helpers = {"Event": Event, "DATA_ERRORS": DATA_ERRORS, "keys_of": keys_of, "repeat": repeat}
        work: Callable[..., None] = self.functions.generate(source, **helpers)["work"]
        return work

    def _events(self) -> str:
        """The head of the loop over the events. A row that is found ahead may be gone when its event has its
        turn where the relation is bounded: then nothing is looked up ahead."""
        if self.ahead is None:
            return "for r0 in events:"
        found = f"repeat(None) if stamp is None else find(keys_of(events, {self.ahead!r}))"
        return f"for r0, y0 in zip(events, {found}):"

    def _write_event(self, parts: Sequence[Bound]) -> None:
        """The actions for one event, `r0`."""
        source, search = self.source, self.search
        matched = [branch for branch in self.plan.branches if branch.matched]
        others = [branch for branch in self.plan.branches if not branch.matched]
        collects = bool(self._collected(matched))
        if collects:
            self._write_lists()
        if others:
            source.line("is_matched = False")
        if matched or parts:
            self._write_matched(search, [part for part in parts if part not in search.settled], matched)
        elif any(branch.matched is False for branch in others):
            source.line("is_matched = len(relation) > 0")
        if others:
            with source.block("if not is_matched:"):
                if not collects:
                    self._write_lists()
                source.line("r1 = r2 = None")
                self.nullable = (1, 2)
                self._write_branches(others)
                if not collects:
                    self._write_done()
        if collects:
            self._write_done()

    def _write_lists(self) -> None:
        """The lists in which the changes of an event are collected."""
        for name in self._collected(self.plan.branches):
            self.source.line(f"{name} = []")

    def _collected(self, branches: Iterable[BranchPlan]) -> list[str]:
        """The lists that the text of branches fills."""
        actions = [action for each in branches if not self._rewrites(each) for action in each.actions]
        found = {COLLECTED[action.kind] for action in actions if action.into is None}
        forwards = ["forwards"] if any(action.into is not None for action in actions) else []
        return [name for name in CHANGES if name in found] + forwards

    def _write_done(self) -> None:
        """Write the collected changes, all or nothing; rows for other streams follow."""
        source = self.source
        collected = self._collected(self.plan.branches)
        mine = [name for name in CHANGES if name in collected]
        given = ", ".join(name if name in mine else "()" for name in CHANGES)
        if mine:
            with source.block(f"if {' or '.join(mine)}:"):
                if self.plan.shows == "rows":
                    source.line(f"relation.write({given}, now)")
                    source.line("post([y.row for y in removed], ())")
                else:
                    source.line(f"post(*relation.write({given}, now))")
        if "forwards" in collected:
            with source.block("for stream, row in forwards:"):
                source.line("forward(stream, row)")

    def _loop(self) -> LoopWriter:
        """A writer of the next expression: the row may be another one than before."""
        if self.needs_event:
            self.source.line("x = Event((r0, r1, r2), now, 0)")
        rows = {place: f"r{place}" for place in range(3)}
        return loop_over(self.functions, self.source, rows, nullable=self.nullable)

    def _write_matched(self, search: Search, rest: list[Bound], branches: list[BranchPlan]) -> None:
        source = self.source
        source.line("r1 = r2 = None")
        with search.each(self._loop(), "rows", "y", hint="" if self.ahead is None else "y0"):
            source.line(f"r1 = r2 = {columns_text('y', self.columns)}")
            self._loop().test(rest)
            if any(not branch.matched for branch in self.plan.branches):
                source.line("is_matched = True")
            self._write_branches(branches)

    def _write_branches(self, branches: Sequence[BranchPlan]) -> None:
        """The first branch whose condition holds."""
        if not branches:
            return
        branch, source = branches[0], self.source
        if branch.condition is None:
            self._write_actions(branch)
            return
        with source.block(f"if {self._loop().true(branch.condition)}:", branch.condition.span):
            self._write_actions(branch)
        if len(branches) > 1:
            with source.block("else:"):
                self._write_branches(branches[1:])

    def _write_actions(self, branch: BranchPlan) -> None:
        """The actions on one row, one after the other: each reads what those before it wrote."""
        source = self.source
        if self._rewrites(branch):
            action = branch.actions[0]
            self._write_values(action)
            with source.block("if stamp is None:"):
                source.line("relation.rewrite(y, r1, now)")
            with source.block("else:"):
                for column, _ in action.assignments:
                    source.line(f"y.{field_name(column)} = r1[{column!r}]")
                source.line("y.stamp = stamp")
            source.line("came.append(r1)")
            source.line("before.append(r2)")
            return
        kinds = {action.kind for action in branch.actions}
        is_sure = _is_sure(branch)
        if not is_sure and "delete" in kinds:
            source.line("is_gone = False")
        if not is_sure and "update" in kinds:
            source.line("place = None")
        for action in branch.actions:
            if action.where is None:
                self._write_action(action, is_sure=is_sure)
                continue
            with source.block(f"if {self._loop().true(action.where)}:", action.where.span):
                self._write_action(action, is_sure=is_sure)
        if not is_sure and "delete" in kinds:
            with source.block("if is_gone:"):
                source.line("removed.append(y)")
                if "update" in kinds:
                    with source.block("if place is not None:"):
                        source.line("del written[place]")

    def _write_action(self, action: ActionPlan, *, is_sure: bool) -> None:
        """`is_sure`: it is all that happens to the row. Else a row that several actions update is written
        once, and one that goes is not written."""
        source = self.source
        if action.kind == "delete":
            source.line("removed.append(y)" if is_sure else "is_gone = True")
        elif action.kind == "insert":
            before, after = ("written.append((None, ", "))")
            if action.into is not None:
                before, after = f"forwards.append(({action.into!r}, ", "))"
            write_items(self._loop(), action.items, [None, None, None], before, after)
        else:
            self._write_values(action)
            if is_sure:
                source.line("written.append((y, r1))")
                return
            with source.block("if place is None:"):
                source.line("place = len(written)")
                source.line("written.append((y, r1))")
            with source.block("else:"):
                source.line("written[place] = y, r1")

    def _write_values(self, action: ActionPlan) -> None:
        """The row of an update."""
        source = self.source
        source.line("r1 = r1.copy()")
        for column, value in action.assignments:
            source.line(f"r1[{column!r}] = {self._loop().value(value)}", value.span)

    def _rewrites(self, branch: BranchPlan) -> bool:
        """True if nothing else happens to the relation than that one row of a table changes under its key."""
        if self.table_keys is None or not self.search.is_single or not _is_sure(branch):
            return False
        (action,) = branch.actions
        return action.kind == "update" and self.table_keys.isdisjoint(name for name, _ in action.assignments)


def _is_sure(branch: BranchPlan) -> bool:
    """True if the branch does one thing only, under no condition of its own."""
    return len(branch.actions) == 1 and branch.actions[0].where is None


def in_order(search: Search, relation: Relation) -> Callable[..., Iterable[Event]]:
    """The function that finds the rows, in order of arrival: updated rows enter the data windows in this
    order, which may not depend on an index, nor on the order of a data window."""
    find = search.opened(relation)
    if search.bounds is None and (search.columns or relation.kind == "table"):
        return find
    return lambda *sought: sorted(find(*sought), key=_number)


def _number(row: Event) -> int:
    return row.seq


def _expressions(plan: TriggerPlan) -> list[Bound]:
    found = [plan.where, *(branch.condition for branch in plan.branches)]
    for action in (action for branch in plan.branches for action in branch.actions):
        found += [
            action.where,
            *(item.value for item in action.items),
            *(value for _, value in action.assignments),
        ]
    return [node for node in found if node is not None]

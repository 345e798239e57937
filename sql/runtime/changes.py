"""Rows from changes: each partial update of the windows becomes new and old rows (EPL, epl.md sections 1.1 and 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sql.aggregates.base import Removal
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.plan.bound import Read
from sql.plan.logical import Plan
from sql.runtime.emission import Out, Update
from sql.runtime.groups import AggregateSet, Group
from sql.runtime.prevs import PrevReader, PriorMemory
from sql.windows.combine import Reclaim
from sql.windows.event import Delta, Event
from sql.windows.operator import FindEvent, Operator

OnError = Callable[[Event, BaseException], None]


class Changes:
    """Folds deltas into groups and makes the rows of the statement's kind."""

    def __init__(self, plan: Plan, functions: FunctionSet, window: Operator, windows: Sequence[Operator],
                 on_error: OnError, *, removal: Removal | None = None) -> None:  # fmt: skip
        """`removal`: how events leave, where the window does not say."""
        self.plan = plan
        self.kind = plan.row_kind
        self.on_error = on_error
        self.where = functions.true(plan.where) if plan.where is not None else None
        self.having = functions.true(plan.having) if plan.having is not None else None
        self.key = functions.key(plan.group_by)
        self.keys_fail = any(not isinstance(node, Read) for node in plan.group_by)
        self.project = functions.row(plan.items, plan.side_columns)
        self.order = functions.criteria(plan.order_by, nulls_lowest=plan.mode == "delta") if plan.order_by else None
        removal = removal or (Removal.ANY if plan.joins else window.departure)
        self.never_removes = removal is Removal.NEVER
        self.aggregates = AggregateSet(plan.aggregates, functions, removal)
        self.prevs = PrevReader(plan, functions, windows) if plan.prevs else None
        self.prior = PriorMemory(plan)
        self.wants_old = plan.selector != "istream" or plan.output is not None
        self.groups: dict[Any, Group] = {}
        self.whole = Group((), self.aggregates.fresh(), Event(None, 0, -1))
        self.representatives: dict[Any, Event] = {}
        self.hits = functions.reader.hits.by_clause
        self.refused: set[Event] = set()
        """Events in the window that no aggregate could take in."""
        hint = plan.sources[0].reclaim_ms if plan.keeps_groups else None
        self.reclaim = Reclaim(*hint) if hint else None

    # --- one update ---------------------------------------------------------------------------------------------------

    def update(self, delta: Delta) -> Update | None:
        """The rows of one partial update; None where WHERE lets nothing of it through."""
        self.prior.note(delta.inserted)
        inserted, removed = delta
        if self.reclaim is not None and inserted:
            self._forget_idle(inserted[0].time_ms)
        if self.where is not None:
            inserted = self._passing(inserted, True)
            removed = self._passing(removed, False)
            if not inserted and not removed:
                return None
        if self.keys_fail:
            inserted = self._with_key(inserted, True)
            removed = self._with_key(removed, False)
            if not inserted and not removed and (delta.inserted or delta.removed):
                return None
        if self.kind != "plain":
            return _MAKERS[self.kind](self, inserted, removed)
        new = self._rows(inserted, True)
        old = self._rows(removed, False) if self.wants_old else []
        return Update(new, old, len(inserted), len(removed))

    def _passing(self, events: Sequence[Event], is_new: bool) -> list[Event]:
        """The events that pass WHERE. One that cannot be evaluated is an error as it comes, not again as it leaves."""
        assert self.where is not None
        out = []
        for event in events:
            try:
                if self.where(event, self._beside(event, True), True):
                    out.append(event)
                    self._hit("WHERE", event)
            except DATA_ERRORS as error:
                if is_new:
                    self.on_error(event, error)
        return out

    def _with_key(self, events: Sequence[Event], is_new: bool) -> list[Event]:
        """The events that have a group. One whose key cannot be evaluated is an error as it comes, and in no row."""
        out = []
        for event in events:
            try:
                self.key(event)
                out.append(event)
            except DATA_ERRORS as error:
                if is_new:
                    self.on_error(event, error)
        return out

    def _hit(self, clause: str, event: Event) -> None:
        """The clause was met, in case somebody counts."""
        if clause in self.hits:
            self.hits[clause].note(event.time_ms)

    def _beside(self, event: Event, is_new: bool) -> list[Any] | None:
        """Values of prev calls, where the aggregates' would stand."""
        if self.prevs is None:
            return None
        return [*[None] * len(self.plan.aggregates), *self.prevs.read(event, is_new)]

    def _rows(self, events: Iterable[Event], is_new: bool, group_of: Callable[[Event], Group | None] | None = None
              ) -> list[Out]:  # fmt: skip
        out = []
        for event in events:
            group = None if group_of is None else group_of(event)
            row = self._row(event, group, is_new)
            if row is not None:
                out.append(row)
        return out

    def _row(self, event: Event, group: Group | None, is_new: bool) -> Out | None:
        """The row for an event, with its group's values; None where HAVING drops it or it cannot be evaluated."""
        values = [] if group is None else group.results(event)
        beside = self._beside(event, is_new)
        if beside is not None:
            values = [*values, *beside[len(self.plan.aggregates) :]]
        try:
            if self.having is not None:
                if not self.having(event, values, is_new):
                    return None
                self._hit("HAVING", event)
            order = None if self.order is None else self.order(event, values, is_new)
            key = None if group is None or not self.plan.group_by else group.key
            out = Out(self.project(event, values, is_new), key, order)
            self._hit("SELECT", event)
            return out
        except DATA_ERRORS as error:
            if is_new:
                self.on_error(event, error)
            return None

    # --- folding ------------------------------------------------------------------------------------------------------

    def _fold(self, inserted: Iterable[Event], removed: Iterable[Event]) -> tuple[list[Event], list[Event]]:
        """Inserts first, then removes (epl.md 1.1); those that took part.

        An event that cannot be folded in is an error: it is in no row, and nothing is taken out when it leaves.
        """
        folded, taken = [], []
        for event in inserted:
            try:
                self._add(self.aggregates.values_of(event), event)
                folded.append(event)
            except DATA_ERRORS as error:
                if not self.never_removes:
                    self.refused.add(event)
                self.on_error(event, error)
                self._drop_if_empty(event)
        for event in removed:
            if event in self.refused:
                self.refused.discard(event)
                continue
            group = self.groups[self.key(event)] if self.plan.group_by else self.whole
            group.remove(self.aggregates.values_of(event), event)
            self._drop_if_empty(event)
            taken.append(event)
        return folded, taken

    def _add(self, values: list[Any], event: Event) -> None:
        self._group(event).add(values, event)

    def _group(self, event: Event) -> Group:
        if not self.plan.group_by:
            return self.whole
        key = self.key(event)
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) >= self.plan.options.max_groups:
                from sql.errors import DataError

                raise DataError(f"more than {self.plan.options.max_groups} groups; raise maxGroups or group coarser")
            group = self.groups[key] = Group(key, self.aggregates.fresh(), event)
        if self.reclaim is not None:
            self.reclaim.touch(key, event.time_ms)
        return group

    def _forget_idle(self, now_ms: int) -> None:
        """Groups without a window that no event has touched for long begin anew; nothing has left, so no row tells."""
        assert self.reclaim is not None
        for key in self.reclaim.aged(now_ms):
            self.groups.pop(key, None)
            self.representatives.pop(key, None)

    def _drop_if_empty(self, event: Event) -> None:
        if not self.plan.group_by or self.aggregates.kept_for_ever:
            return
        key = self.key(event)
        group = self.groups.get(key)
        if group is not None and group.count == 0:
            del self.groups[key]

    # --- the kinds of statements --------------------------------------------------------------------------------------

    def _aggregate_rows(self, inserted: Sequence[Event], removed: Sequence[Event]) -> Update | None:
        """Only aggregates: one row per update, the old row is the previous value."""
        at = (*inserted, *removed, self.whole.first)[0]
        old = [self._row(at, self.whole, False)] if self.wants_old else []
        folded, taken = self._fold(inserted, removed)
        if len(folded) + len(taken) == 0 < len(inserted) + len(removed):
            return None
        new = [self._row(at, self.whole, True)]
        return Update([r for r in new if r], [r for r in old if r], len(folded), len(taken))

    def _event_rows(self, inserted: Sequence[Event], removed: Sequence[Event]) -> Update:
        """Columns and aggregates: one row per event; old rows carry the current values."""
        inserted, removed = self._fold(inserted, removed)
        new = self._rows(inserted, True, lambda event: self.whole)
        old = self._rows(removed, False, lambda event: self.whole) if self.wants_old else []
        return Update(new, old, len(inserted), len(removed))

    def _group_rows(self, inserted: Sequence[Event], removed: Sequence[Event]) -> Update | None:
        """Only keys and aggregates: one row per changed group, the old row is its previous value."""
        changed: dict[Any, Event] = {}
        for event in (*inserted, *removed):
            changed.setdefault(self.key(event), event)
        before = {
            key: self._row(event, self._at(key, event), False) if self.wants_old else None
            for key, event in changed.items()
        }
        folded, taken = self._fold(inserted, removed)
        if len(folded) + len(taken) < len(inserted) + len(removed):
            touched = {self.key(event) for event in (*folded, *taken)}
            changed = {key: event for key, event in changed.items() if key in touched}
            if not changed:
                return None
        old = [row for key in changed if (row := before[key])]
        new = [row for key, event in changed.items() if (row := self._row(event, self._at(key, event), True))]
        self._remember(changed)
        return Update(new, old, len(folded), len(taken), tuple(changed))

    def _at(self, key: Any, event: Event) -> Group:
        """The group of a key, or an empty one in its place."""
        return self.groups.get(key) or Group(key, self.aggregates.fresh(), event)

    def _group_event_rows(self, inserted: Sequence[Event], removed: Sequence[Event]) -> Update:
        """Other columns and groups: one row per event with its group's current values."""
        inserted, removed = self._fold(inserted, removed)

        def group_of(event: Event) -> Group:
            return self._at(self.key(event), event)

        new = self._rows(inserted, True, group_of)
        old = self._rows(removed, False, group_of) if self.wants_old else []
        keys = {self.key(event): event for event in (*inserted, *removed)}
        self._remember(keys)
        return Update(new, old, len(inserted), len(removed), tuple(keys))

    def _remember(self, changed: dict[Any, Event]) -> None:
        """`output all` shows every group ever seen, so each keeps an event to read its columns from."""
        if self.plan.output is not None and self.plan.output.mode == "all":
            self.representatives.update(changed)

    def current(self, key: Any) -> list[Out]:
        """The present row of a group, also of one that has become empty; none where HAVING drops it."""
        event = self.representatives[key]
        row = self._row(event, self._at(key, event), True)
        return [] if row is None else [row]

    # --- anew ---------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget what was folded: the next rows are aggregated anew."""
        if self.plan.aggregates:
            self.groups.clear()
            self.whole = Group((), self.aggregates.fresh(), Event(None, 0, -1))
        self.refused.clear()

    def anew(self, events: Sequence[Event]) -> list[Out]:
        """The rows of events that are all there are, after `reset`: aggregates over none of them give one row."""
        events = events if self.where is None else self._passing(events, True)
        events = self._with_key(events, True) if self.keys_fail else events
        if self.kind == "plain":
            return self._rows(events, True)
        if not events and self.kind != "aggregate":
            return []
        update = _MAKERS[self.kind](self, events, ())
        return [] if update is None else update.new

    # --- looking ------------------------------------------------------------------------------------------------------

    def present(self, content: Iterable[Event]) -> list[Out]:
        """The rows of the present content: what a read, a subquery or a snapshot sees."""
        if self.kind == "aggregate":
            return [row for row in [self._row(self.whole.first, self.whole, True)] if row]
        events = list(content) if self.where is None else self._passing(list(content), False)
        events = self._with_key(events, False) if self.keys_fail else events
        if self.kind == "plain":
            return self._rows(events, True)
        if self.kind == "event":
            return self._rows(events, True, lambda event: self.whole)
        if self.kind == "group_event":
            return self._rows(events, True, lambda event: self._at(self.key(event), event))
        if not self.plan.sources[0].keeps:
            return [row for group in self.groups.values() if (row := self._row(group.first, group, True))]
        shown = {self.key(event): event for event in reversed(events)}
        rows = (self._row(event, self._at(key, event), True) for key, event in reversed(shown.items()))
        return [row for row in rows if row]

    # --- state --------------------------------------------------------------------------------------------------------

    def held(self) -> Iterable[Event]:
        """Events the groups refer to beside the windows' content."""
        yield from self.prior.recent
        yield from self.refused
        yield from self.representatives.values()
        for group in (self.whole, *self.groups.values()):
            yield from group.held()

    def snapshot(self) -> Any:
        def part(group: Group) -> Any:
            return [group.first.seq, group.count, [item.snapshot() for item in group.accumulators]]

        recent = [event.seq for event in self.prior.recent]
        return {
            "whole": part(self.whole),
            "groups": [part(group) for group in self.groups.values()],
            "prior": recent,
            "refused": [event.seq for event in self.refused],
            "representatives": [event.seq for event in self.representatives.values()],
            "reclaim": None if self.reclaim is None else self.reclaim.snapshot(list(self.groups)),
        }

    def restore(self, state: Any, find: FindEvent) -> None:
        _, count, parts = state["whole"]
        self.whole.count = count
        _put_back(self.whole, parts, find)
        for seq, count, parts in state["groups"]:
            first = find(seq)
            group = Group(self.key(first), self.aggregates.fresh(), first)
            group.count = count
            _put_back(group, parts, find)
            self.groups[group.key] = group
        self.prior.recent.extend(find(seq) for seq in state["prior"])
        self.refused = {find(seq) for seq in state["refused"]}
        self.representatives = {self.key(event): event for event in map(find, state["representatives"])}
        if self.reclaim is not None and (marks := state.get("reclaim")) is not None:
            self.reclaim.restore(marks, list(self.groups))


def _put_back(group: Group, parts: list[Any], find: FindEvent) -> None:
    for accumulator, part in zip(group.accumulators, parts, strict=True):
        accumulator.restore(part, find)


_MAKERS: dict[str, Callable[[Changes, Sequence[Event], Sequence[Event]], Update | None]] = {
    "aggregate": Changes._aggregate_rows,
    "event": Changes._event_rows,
    "group": Changes._group_rows,
    "group_event": Changes._group_event_rows,
}

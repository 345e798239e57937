"""EPL statements: which rows the changes of the windows give (epl.md 1.1 and 5.2); aggregates
are computed per row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sql.plan.bound import Bound, Slot
from sql.plan.logical import Plan
from tests.reference.aggregates import AGGREGATES
from tests.reference.batches import BATCHES
from tests.reference.expressions import Place, Row, evaluate, holds
from tests.reference.members import Delta
from tests.reference.rows import Event, Values, aggregate, key, output
from tests.reference.windows import relation_of

NOT_BY_ARRIVAL = {"groupwin", "sort", "rank", "time_order", "timetolive"}
"""Windows whose own order `prev` counts in, or that are several."""


@dataclass(frozen=True)
class Post:
    """What the listener of a statement gets at one instant."""

    at_ms: int
    insert: list[Row]
    remove: list[Row]


class Statement:
    """A plan without output limit over one stream, driven step by step."""

    def __init__(self, plan: Plan, start_ms: int = 0) -> None:
        if plan.output or plan.joins or plan.subqueries or plan.analytics:
            raise NotImplementedError(
                "the reference evaluator has no output limits, joins, subqueries, analytics"
            )
        if any(source.pattern or source.recognize for source in plan.sources):
            raise NotImplementedError("patterns have a twin of their own")
        if any(call.definition.name not in AGGREGATES for call in plan.aggregates):
            raise NotImplementedError("the reference evaluator has not every aggregate")
        self.plan = plan
        self.source = plan.sources[0]
        windows = {window.name for window in self.source.windows}
        if any(call.name != "prior" for call in plan.prevs) and (windows & NOT_BY_ARRIVAL or not windows):
            raise NotImplementedError(
                "the reference evaluator has prev only where a window is in order of arrival"
            )
        self.relation = relation_of(self.source, start_ms)
        self.now = start_ms
        self.covered: list[Event] = []
        self.entered: list[Event] = []
        self.ever: list[Event] = []
        self.seen: list[Event] = []
        self.seq = 0

    # --- steps ----------------------------------------------------------------------------------------------

    def send(self, row: Row) -> list[Post]:
        """An event arrives now."""
        self.seq += 1
        event = Event(self.now, self.seq, row)
        if not holds(self.source.filter, Place((row,))):
            return []
        return self._posts(self.relation.insert(event, self.now))

    def advance(self, now: int, catch_up: str = "step") -> list[Post]:
        """The clock moves on: through every due instant, or (`once`) everything due once, at `now`."""
        out: list[Post] = []
        while (due := self.relation.due_ms()) is not None and due <= now:
            self.now = due if catch_up == "step" else now
            out += self._posts(self.relation.advance(self.now))
            if catch_up != "step":
                break
        self.now = now
        return out

    def content(self) -> list[Event]:
        """The events the windows hold now."""
        return self.relation.content()

    # --- rows -----------------------------------------------------------------------------------------------

    def _posts(self, deltas: list[Delta]) -> list[Post]:
        """All partial updates of a step in one post, rows in order."""
        new: list[Values] = []
        old: list[Values] = []
        forced = False
        # FORCE_UPDATE posts at empty boundaries too, but no update whose rows HAVING keeps back; to rstream
        # an update with new events only is no post at all.
        for delta in deltas:
            self.entered += delta.inserted
            self.seen = self._seen(delta)
            inserted = [event for event in delta.inserted if self._passes(event)]
            removed = [event for event in delta.removed if self._passes(event)]
            if self.plan.where is not None and not inserted and not removed:
                continue
            rows = self._update(inserted, removed)
            new += rows[0]
            old += rows[1]
            only_new = self.plan.selector == "rstream" and bool(delta.inserted)
            kept_back = self.plan.having is not None and bool(delta.inserted or delta.removed)
            forced = forced or (delta.forced and not kept_back and not only_new)
        inserts, removes = output(self.plan, new), output(self.plan, old)
        match self.plan.selector:
            case "istream":
                removes = []
            case "rstream":
                inserts, removes = removes, []
        return [Post(self.now, inserts, removes)] if inserts or removes or forced else []

    def _passes(self, event: Event) -> bool:
        return holds(self.plan.where, Place((event.row,), self._values(event, []).__call__))

    def _seen(self, delta: Delta) -> list[Event]:
        """What `prev` counts in, oldest first: the content of the window, or the batch just posted."""
        if any(window.name in BATCHES for window in self.source.windows):
            return delta.inserted
        return self.relation.content()

    def _values(
        self,
        event: Event | None,
        covered: list[Event],
        inserted: bool = True,
        ever: list[Event] | None = None,
        chosen: int = 0,
    ) -> Values:
        ever = self.ever if ever is None else ever
        past = self.entered, self.seen, ever
        return WithPast(self.plan, list(covered), event, None, inserted, chosen, *past)

    def _update(self, inserted: list[Event], removed: list[Event]) -> tuple[list[Values], list[Values]]:
        """The new and old rows of one partial update. Inserts are taken in first, then removes."""
        before = self.covered
        after = [event for event in [*before, *inserted] if event not in removed]
        self.covered = after
        was, self.ever = self.ever, self.ever + inserted
        kind, by = self.plan.row_kind, self.plan.group_by
        if kind == "aggregate":
            return [self._values(None, after)], [self._values(None, before, False, was)]
        if kind in ("plain", "event"):
            return (
                [self._values(event, after) for event in inserted],
                [self._values(event, after, False) for event in removed],
            )
        if kind == "group_event":
            return (
                [self._values(event, like(by, after, event)) for event in inserted],
                [self._values(event, like(by, after, event), False) for event in removed],
            )
        new: list[Values] = []
        old: list[Values] = []
        for chosen, keys in enumerate(sets_of(self.plan)):
            for event in first_of_each(keys, [*inserted, *removed]):
                new.append(self._values(event, like(keys, after, event), chosen=chosen))
                old.append(self._values(event, like(keys, before, event), False, was, chosen))
        return new, old


def sets_of(plan: Plan) -> list[tuple[Bound, ...]]:
    """The keys of each grouping set; of a statement without any its keys."""
    sets = plan.grouping_sets or (range(len(plan.group_by)),)
    return [tuple(plan.group_by[place] for place in chosen) for chosen in sets]


def first_of_each(keys: tuple[Bound, ...], events: list[Event]) -> list[Event]:
    """The first event of each group."""
    found: dict[Any, Event] = {}
    for event in events:
        found.setdefault(key(keys, event), event)
    return list(found.values())


def like(keys: tuple[Bound, ...], events: list[Event], event: Event) -> list[Event]:
    """The events of the same group."""
    return [other for other in events if key(keys, other) == key(keys, event)]


@dataclass(frozen=True)
class WithPast(Values):
    """Values that know what was before.

    entered   all that entered the windows: `prior` counts back in it, whatever has left since
    seen      what `prev` and its kin count in, oldest first; they are NULL on remove rows
    ever      all that entered and passed WHERE: what the aggregates of all time cover
    """

    entered: list[Event] = field(default_factory=list)
    seen: list[Event] = field(default_factory=list)
    ever: list[Event] = field(default_factory=list)

    def __call__(self, slot: Slot) -> Any:
        if slot.kind == "aggregate" and self.plan.aggregates[slot.key].definition.ever:
            return aggregate(self.plan.aggregates[slot.key], self._ever(), self.event)
        if slot.kind != "prev":
            return super().__call__(slot)
        call = self.plan.prevs[slot.key]
        assert self.event is not None
        if call.name == "prior":
            return self._at(
                call.value, self.entered, self.entered.index(self.event) - evaluate(call.index, Place())
            )
        if not self.inserted or self.event not in self.seen:
            return None
        match call.name:
            case "prevcount":
                return len(self.seen)
            case "prevwindow":
                return [evaluate(call.value, Place((other.row,))) for other in reversed(self.seen)]
        number = evaluate(call.index, Place((self.event.row,)))
        if number is None:
            return None
        if not isinstance(number, int) or isinstance(number, bool):
            raise NotImplementedError("the reference evaluator has no rows that fail")
        if number < 0:
            return None
        own = self.seen.index(self.event)
        return self._at(call.value, self.seen, number if call.name == "prevtail" else own - number)

    def _ever(self) -> list[Event]:
        by_group = self.plan.row_kind in ("group", "group_event") and self.event is not None
        keys = sets_of(self.plan)[self.chosen]
        return like(keys, self.ever, self.event) if by_group and self.event else self.ever

    @staticmethod
    def _at(node: Any, events: list[Event], place: int) -> Any:
        return evaluate(node, Place((events[place].row,))) if 0 <= place < len(events) else None

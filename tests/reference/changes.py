"""EPL statements: which rows the changes of the windows give (epl.md 1.1 and 5.2); aggregates are computed per row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sql.plan.bound import Slot
from sql.plan.plan import Plan
from tests.reference.expressions import Place, Row, evaluate, holds
from tests.reference.rows import Event, Values, key, output
from tests.reference.windows import Delta, once, relation_of


@dataclass(frozen=True)
class Post:
    """What the listener of a statement gets at one instant."""

    at_ms: int
    insert: list[Row]
    remove: list[Row]


class Statement:
    """A plan without output limit over one stream, driven step by step."""

    def __init__(self, plan: Plan, start_ms: int = 0) -> None:
        ever = any(call.definition.ever for call in plan.aggregates)
        other_prevs = any(call.name != "prior" for call in plan.prevs)
        if plan.output or plan.joins or plan.subqueries or plan.analytics or ever or other_prevs:
            raise NotImplementedError(
                "the reference evaluator has no output limits, joins, subqueries, analytics, prev"
            )
        self.plan = plan
        self.source = plan.sources[0]
        self.relation = relation_of(self.source, start_ms)
        self.now = start_ms
        self.covered: list[Event] = []
        self.entered: list[Event] = []
        self.seq = 0

    # --- steps --------------------------------------------------------------------------------------------------------

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

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _posts(self, deltas: list[Delta]) -> list[Post]:
        """All partial updates of a step in one post, rows in order."""
        new: list[Values] = []
        old: list[Values] = []
        forced = False
        # FORCE_UPDATE posts at empty boundaries too, if HAVING does not ask for rows; to rstream an update with
        # new events only is no post at all.
        for delta in deltas:
            self.entered += delta.inserted
            inserted = [event for event in delta.inserted if self._passes(event)]
            removed = [event for event in delta.removed if self._passes(event)]
            if self.plan.where is not None and not inserted and not removed:
                continue
            rows = self._update(inserted, removed)
            new += rows[0]
            old += rows[1]
            only_new = self.plan.selector == "rstream" and bool(delta.inserted)
            forced = forced or (delta.forced and self.plan.having is None and not only_new)
        inserts, removes = output(self.plan, new), output(self.plan, old)
        match self.plan.selector:
            case "istream":
                removes = []
            case "rstream":
                inserts, removes = removes, []
        return [Post(self.now, inserts, removes)] if inserts or removes or forced else []

    def _passes(self, event: Event) -> bool:
        return holds(self.plan.where, Place((event.row,), self._values(event, []).__call__))

    def _values(self, event: Event | None, covered: list[Event], inserted: bool = True) -> Values:
        return WithPriors(self.plan, list(covered), event, None, inserted, self.entered)

    def _update(self, inserted: list[Event], removed: list[Event]) -> tuple[list[Values], list[Values]]:
        """The new and old rows of one partial update. Inserts are taken in first, then removes."""
        before = self.covered
        after = [event for event in [*before, *inserted] if event not in removed]
        self.covered = after
        kind, by = self.plan.row_kind, self.plan.group_by
        if kind == "aggregate":
            return [self._values(None, after)], [self._values(None, before, False)]
        if kind in ("plain", "event"):
            return ([self._values(event, after) for event in inserted],
                    [self._values(event, after, False) for event in removed])  # fmt: skip
        if kind == "group_event":
            return ([self._values(event, like(self.plan, after, event)) for event in inserted],
                    [self._values(event, like(self.plan, after, event), False) for event in removed])  # fmt: skip
        changed = {key(by, event): event for event in reversed([*inserted, *removed])}
        firsts = once(event for event in [*inserted, *removed] if changed[key(by, event)] is event)
        return ([self._values(event, like(self.plan, after, event)) for event in firsts],
                [self._values(event, like(self.plan, before, event), False) for event in firsts])  # fmt: skip


def like(plan: Plan, events: list[Event], event: Event) -> list[Event]:
    """The events of the same group."""
    return [other for other in events if key(plan.group_by, other) == key(plan.group_by, event)]


@dataclass(frozen=True)
class WithPriors(Values):
    """Values that know what entered before: `prior` counts back in order of arrival, whatever has left since."""

    entered: list[Event] = ()  # type: ignore[assignment]

    def __call__(self, slot: Slot) -> Any:
        if slot.kind != "prev":
            return super().__call__(slot)
        call = self.plan.prevs[slot.key]
        assert call.name == "prior" and self.event is not None and call.value is not None
        place = self.entered.index(self.event) - evaluate(call.index, Place())
        return evaluate(call.value, Place((self.entered[place].row,))) if place >= 0 else None

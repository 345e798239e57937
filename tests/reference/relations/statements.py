"""Statements that read relations: their sources, their subqueries, the rows of selects and joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sql.plan.bound import Slot
from sql.plan.clauses import SourcePlan
from sql.plan.declared import WindowDeclaration
from sql.plan.logical import Plan, SplitPlan, SubqueryPlan, TriggerPlan
from tests.reference.expressions import Place, Row, holds
from tests.reference.members import Delta
from tests.reference.relations.joins import Rows, Sides, product
from tests.reference.rows import Event
from tests.reference.windows import Current, Relation, earliest, relation_of

if TYPE_CHECKING:
    from tests.reference.relations.world import World

NOTHING = Delta([], [])


class Source:
    """What one source of a statement holds: the content of its windows,
    of a named window as it was told of it, or of a table as it is."""

    def __init__(self, plan: SourcePlan, world: World, *, of_subquery: bool = False) -> None:
        """`of_subquery`: without a window it keeps all events, which the subquery aggregates."""
        self.plan, self.world = plan, world
        names = [window.name for window in plan.windows]
        if "groupwin" in names and any("time" in name for name in names):
            raise NotImplementedError("the twin of relations takes what leaves at one instant as one change")
        self.relation: Relation = Current() if plan.relation else relation_of(plan, world.now)
        self.is_brief = plan.relation is None and not plan.windows and not of_subquery
        self.told: list[Event] = []

    def content(self) -> list[Event]:
        if self.plan.relation is None:
            return self.told
        rows = self.told if self.plan.relation == "window" else self.world.stores[self.plan.stream].content()
        return [event for event in rows if holds(self.plan.filter, Place((event.row,)))]

    def arrives(self, stream: str, row: Row) -> Delta:
        """An event arrives; what it changes here."""
        if self.plan.relation is not None or stream != self.plan.stream:
            return NOTHING
        if not holds(self.plan.filter, Place((row,))):
            return NOTHING
        return self.changes(
            self.relation.insert(Event(self.world.now, self.world.number(), row), self.world.now)
        )

    def is_told(self, relation: str, delta: Delta) -> Delta:
        """A named window has changed."""
        if self.plan.relation != "window" or relation != self.plan.stream:
            return NOTHING
        passing = [[e for e in side if holds(self.plan.filter, Place((e.row,)))] for side in delta[:2]]
        return self.changes([Delta(passing[0], passing[1])])

    def changes(self, deltas: Iterable[Delta]) -> Delta:
        inserted, removed = [], []
        for delta in deltas:
            inserted += delta.inserted
            removed += delta.removed
        self.told = [event for event in [*self.told, *inserted] if event not in removed and not self.is_brief]
        return Delta(inserted, removed)


class Asking:
    """The subqueries of a statement."""

    def __init__(self, parts: Sequence[SubqueryPlan], world: World) -> None:
        self.parts = [(part, Source(part.plan.sources[0], world, of_subquery=True)) for part in parts]

    def value(self, slot: Slot, around: Place) -> Any:
        part, source = self.parts[slot.key]
        rows = Rows(part.plan, self.value, around.rows if part.correlated else ())
        found = rows.whole(rows.passing([(event,) for event in source.content()]))
        match part.kind:
            case "exists":
                return bool(found)
            case "list":
                return [next(iter(row.values())) for row in found]
            case "rows":
                return found
            case "row":
                return found[0] if len(found) == 1 else None
        return next(iter(found[0].values())) if len(found) == 1 else None


class Statement:
    """A statement that runs: it hears of events and of changes, and posts."""

    def __init__(self, name: str, plan: Plan, world: World) -> None:
        self.name, self.plan, self.world = name, plan, world
        acts = plan.acts
        parts = acts.subqueries if isinstance(acts, TriggerPlan | SplitPlan) else plan.subqueries
        self.asking = Asking(parts, world)
        self.sources = [Source(source, world) for source in plan.sources]

    @property
    def all_sources(self) -> list[Source]:
        """Those of its subqueries first: they know an event before the statement is evaluated for it."""
        return [*(source for _, source in self.asking.parts), *self.sources]

    def event(self, stream: str, row: Row) -> None:
        for _, source in self.asking.parts:
            source.arrives(stream, row)
        self.changed([source.arrives(stream, row) for source in self.sources])

    def entered(self, relation: str, row: Row) -> None:
        """A row was inserted into a relation: an event of patterns alone."""

    def told(self, changes: dict[str, Delta]) -> None:
        """Its subqueries first know its sources and what changed before them; the rest follows."""
        own = [relation for relation in changes if any(s.plan.stream == relation for s in self.sources)]
        before = list(changes)[: list(changes).index(own[0])] if own else list(changes)
        self._asked_of(changes, [*before, *own])
        self.changed([source.is_told(source.plan.stream, changes.get(source.plan.stream, NOTHING))
                      for source in self.sources])  # fmt: skip
        self._asked_of(changes, [relation for relation in changes if relation not in (*before, *own)])

    def _asked_of(self, changes: dict[str, Delta], relations: Iterable[str]) -> None:
        for relation in relations:
            for _, source in self.asking.parts:
                source.is_told(relation, changes[relation])

    def due_ms(self) -> int | None:
        return earliest(source.relation.due_ms() for source in self.all_sources)

    def advance(self, now: int) -> None:
        for _, source in self.asking.parts:
            source.changes(source.relation.advance(now))
        self.changed([source.changes(source.relation.advance(now)) for source in self.sources])

    def changed(self, deltas: list[Delta]) -> None:
        """Its sources have changed."""
        raise NotImplementedError


class Query(Statement):
    """A select: of one source, or a join."""

    def __init__(self, name: str, plan: Plan, world: World) -> None:
        super().__init__(name, plan, world)
        self.rows = Rows(plan, self.asking.value)
        self.before: list[Sides] = []
        """The rows that count: those of the content that WHERE lets through."""
        self.shown: dict[Sides, list[Row]] = {}
        """The row of each event when it came; without subqueries it leaves as it came."""
        self.drivers = [place for place, source in enumerate(self.sources)
                        if source.plan.unidirectional or (plan.joins and source.is_brief)]  # fmt: skip

    def changed(self, deltas: list[Delta]) -> None:
        if not any(delta.inserted or delta.removed for delta in deltas):
            return
        if self.drivers:
            for place in self.drivers:
                for event in deltas[place].inserted:
                    self._driven(place, event)
        elif self.plan.joins:
            after = self.rows.passing(
                product(self.plan.joins, [s.content() for s in self.sources], self.asking.value)
            )
            came = [sides for sides in after if sides not in self.before]
            self._show(came, [sides for sides in self.before if sides not in after], after)
        else:
            came = self.rows.passing([(event,) for event in deltas[0].inserted])
            known = [*self.before, *came]
            left = [sides for event in deltas[0].removed for sides in known if sides[0] is event]
            self._show(came, left, [sides for sides in known if sides not in left])

    def _driven(self, place: int, event: Event) -> None:
        """One event finds its partners; nothing of it is kept."""
        contents = [[event] if i == place else source.content() for i, source in enumerate(self.sources)]
        found = [
            sides for sides in product(self.plan.joins, contents, self.asking.value) if sides[place] is event
        ]
        found = self.rows.passing(found)
        self.world.post(self.name, self.plan, self.rows.whole(found) if found else [], [])

    def _show(self, came: list[Sides], left: list[Sides], after: list[Sides]) -> None:
        before, self.before = self.before, after
        if not came and not left:
            return
        new: list[Row] = []
        old: list[Row] = []
        if self.plan.row_kind == "aggregate":
            nothing: Sides = (None,) * len(self.sources)
            new, old = self.rows.made([nothing], after), self.rows.made([nothing], before)
        elif self.plan.row_kind == "group":
            changed = self.rows.firsts([*came, *left])
            new, old = self.rows.made(changed, after), self.rows.made(changed, before)
        else:
            for sides in came:
                self.shown[sides] = self.rows.made([sides], after)
                new += self.shown[sides]
            leaves_as_it_came = self.plan.row_kind == "plain" and not self.plan.subqueries
            for sides in left:
                shown = self.shown.pop(sides)
                old += shown if leaves_as_it_came else self.rows.made([sides], after)
        self.world.post(self.name, self.plan, new, old)


class Listening(Statement):
    """`create window`: its own posts."""

    def told(self, changes: dict[str, Delta]) -> None:
        assert isinstance(self.plan.acts, WindowDeclaration)
        delta = changes.get(self.plan.acts.name, NOTHING)
        self.world.post(self.name, self.plan, *([event.row for event in side] for side in delta[:2]))

    def event(self, stream: str, row: Row) -> None:
        """It hears of its window only."""

    def advance(self, now: int) -> None:
        """Time is the window's own affair."""

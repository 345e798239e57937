"""Outer joins: a chain of steps, each joins what is joined before it with one more source.

A step keeps both sides with their indexes and, for each row, how many partners it has. The row beside NULL is
there as long as that is zero, so it is taken back when a partner comes and restored when the last one goes.
What a step puts out is the net change of its content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sql.algebra.event import Delta, Event
from sql.algebra.join.inner import Sides
from sql.algebra.join.store import Pulled, Rows, Store
from sql.algebra.table.lookup import Name
from sql.algebra.table.search import Finder
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.errors import Fail
from sql.plan.clauses import JoinPlan

Net = dict[Sides, int]
"""For each joined row the number of times it came less the number of times it left."""


def joined_event(sides: Sides, width: int, number: int = -1) -> Event:
    """A joined row to evaluate conditions with; sources not joined yet are NULL."""
    rows = [None if side is None else side.row for side in sides]
    return Event(tuple(rows + [None] * (width - len(rows))), 0, number)


class JoinedBefore:
    """The joined rows of the first sources of a chain, where all of these are only looked up: they are joined
    whenever they are asked for."""

    of_relation = False

    def __init__(self, sources: Sequence[Pulled], width: int, rows: Callable[[], list[Sides]]) -> None:
        """`sources`: those joined before; `rows` joins what they hold now."""
        self.sources = sources
        self.width = width
        self.rows = rows
        self.found: dict[Event, Sides] = {}

    def content(self) -> Iterable[Event]:
        rows = enumerate(self.rows())
        self.found = {joined_event(sides, self.width, number): sides for number, sides in rows}
        return self.found

    def by_key(self, equal: tuple[Name, ...]) -> None:
        return None

    def by_range(self, equal: tuple[Name, ...], ordered: Name) -> None:
        return None

    def sides(self, found: Event) -> Sides:
        """The events of the query that make a row of the newest content."""
        pairs = zip(self.sources, self.found[found], strict=True)
        return tuple([None if event is None else source.own(event) for source, event in pairs])


class StepCode:
    """The functions of one step, made once for all instances of a join: rows joined before, and source
    `place`."""

    def __init__(self, join: JoinPlan, place: int, stores: Sequence[Store], functions: FunctionSet) -> None:
        """`stores`: those of one instance."""
        self.place = place
        self.width = len(stores)
        self.keeps_left, self.keeps_right = join.keeps_left, join.keeps_right
        self.shape = functions.reader.shape
        self.holds = None if join.on is None else functions.true(join.on)
        before = frozenset(range(place))
        self.to_right = Finder(
            join.on, place, before, stores[place], functions, nullable=before, reports=True
        )
        looked_up = _looked_up(place, stores, list)
        left = Rows(self.shape) if looked_up is None else looked_up
        sought = 0 if isinstance(left, Pulled) else before
        self.to_left = Finder(join.on, sought, {place}, left, functions, nullable=before, reports=True)


class Step:
    """One step of an outer join: the rows joined before, joined with source `place`."""

    def __init__(
        self, code: StepCode, stores: Sequence[Store], fail: Fail, before: Callable[[], list[Sides]]
    ) -> None:
        """`fail` takes joined rows whose condition cannot be evaluated, which are no pairs. `before` joins
        the present rows of the sources before."""
        self.fail = fail
        self.reports = True
        """False while pairs are evaluated again, whose errors were reported when their rows came."""
        self.place, self.width = code.place, code.width
        self.left = Rows(code.shape)
        self.right = stores[code.place]
        self.looked_up = _looked_up(code.place, stores, before)
        """The sources before, where their rows are only looked up and this step joins them."""
        self.number = 0
        """The number of the newest row of the left side: rows of equal values are in order of arrival."""
        self.lefts: dict[Sides, Event] = {}
        self.sides: dict[Event, Sides] = {}
        self.matches: dict[Event, int] = {}
        """The number of partners of each row of either side."""
        self.holds = code.holds
        self.to_right = code.to_right.over(self.right, self._failed)
        self.to_left = code.to_left.over(self.looked_up or self.left, self._failed)
        self.keeps_left, self.keeps_right = code.keeps_left, code.keeps_right
        self.nothing: Sides = (None,) * self.place
        self.shown: dict[Sides | Event, list[Sides]] = {}
        """The rows shown for a row of either side joined with looked-up rows, which may be others when it
        leaves."""

    def _pairs(self, left: Event, right: Event) -> bool:
        if self.holds is None:
            return True
        rows = (*left.row[: self.place], right.row, *left.row[self.place + 1 :])
        try:
            return bool(self.holds(Event(rows, 0, -1)))
        except DATA_ERRORS as error:
            self._failed(rows, error)
            return False

    def _failed(self, rows: Any, error: BaseException) -> None:
        if self.reports:
            self.fail(tuple(rows), error)

    def change(self, left: Net, inserted: Iterable[Event], removed: Iterable[Event]) -> Net:
        """The net change of the content when both sides have changed."""
        net: Net = {}
        gone = [sides for sides, count in left.items() if count < 0]
        self.reports = False
        for sides in gone:
            self._left_leaves(sides, net)
        for event in removed:
            self._right_leaves(event, net)
        self.reports = True
        for sides, count in left.items():
            if count > 0:
                self._left_enters(sides, net)
        for event in inserted:
            self._right_enters(event, net)
        return {sides: count for sides, count in net.items() if count}

    def restore(self, lefts: Iterable[Sides], rights: Iterable[Event], shown: Iterable[Sides]) -> None:
        """Put both sides of a snapshot back, each in order of arrival, and what was shown of them. Errors of
        conditions were reported when the rows came; rows that are looked up may be others by now."""
        self.reports = False
        if isinstance(self.right, Pulled):
            for sides in lefts:
                self._add_left(sides)
                self.shown[sides] = []
            for sides in shown:
                self.shown[sides[:-1]].append(sides)
        elif self.looked_up is not None:
            assert isinstance(self.right, Rows)
            for event in rights:
                self.right.add(event)
                self.shown[event] = []
            for sides in shown:
                if (right := sides[-1]) is not None:
                    self.shown[right].append(sides)
        else:
            for sides in lefts:
                self._left_enters(sides, {})
            for event in rights:
                self._right_enters(event, {})
        self.reports = True

    def _add_left(self, sides: Sides) -> Event:
        self.number += 1
        event = self.lefts[sides] = joined_event(sides, self.width, self.number)
        self.sides[event] = sides
        self.left.add(event)
        return event

    def _left_enters(self, sides: Sides, net: Net) -> None:
        event = self._add_left(sides)
        partners = self.to_right(event.row, 0)
        if isinstance(self.right, Pulled):
            rows = [(*sides, self.right.own(right)) for right in partners]
            self._show(sides, rows or [(*sides, None)] * self.keeps_left, net)
            return
        self.matches[event] = len(partners)
        for right in partners:
            self._match(right, 1, net)
            _count(net, (*sides, right), 1)
        if not partners and self.keeps_left:
            _count(net, (*sides, None), 1)

    def _show(self, row: Sides | Event, joined: list[Sides], net: Net) -> None:
        """Show a row joined with looked-up rows, or with NULL where there is none. What is shown stays until
        the row leaves: a partner that comes or goes later causes no change."""
        self.shown[row] = joined
        for sides in joined:
            _count(net, sides, 1)

    def _left_leaves(self, sides: Sides, net: Net) -> None:
        event = self.lefts.pop(sides)
        self.left.remove(event)
        del self.sides[event]
        if self.right.pulled:
            for row in self.shown.pop(sides):
                _count(net, row, -1)
            return
        if not self.matches.pop(event) and self.keeps_left:
            _count(net, (*sides, None), -1)
        for right in self.to_right(event.row, 0):
            self._match(right, -1, net)
            _count(net, (*sides, right), -1)

    def _right_enters(self, right: Event, net: Net) -> None:
        assert isinstance(self.right, Rows)
        self.right.add(right)
        partners = self._lefts_of(right)
        if self.looked_up is not None:
            rows: list[Sides] = [(*self.looked_up.sides(left), right) for left in partners]
            self._show(right, rows or [(*self.nothing, right)] * self.keeps_right, net)
            return
        self.matches[right] = len(partners)
        for left in partners:
            sides = self.sides[left]
            if not self.matches[left] and self.keeps_left:
                _count(net, (*sides, None), -1)
            self.matches[left] += 1
            _count(net, (*sides, right), 1)
        if not partners and self.keeps_right:
            _count(net, (*self.nothing, right), 1)

    def _right_leaves(self, right: Event, net: Net) -> None:
        if not isinstance(self.right, Rows) or not self.right.remove(right):
            return
        if self.looked_up is not None:
            for row in self.shown.pop(right):
                _count(net, row, -1)
            return
        if not self.matches.pop(right, 0) and self.keeps_right:
            _count(net, (*self.nothing, right), -1)
        for left in self._lefts_of(right):
            sides = self.sides[left]
            _count(net, (*sides, right), -1)
            self.matches[left] -= 1
            if not self.matches[left] and self.keeps_left:
                _count(net, (*sides, None), 1)

    def _lefts_of(self, right: Event) -> list[Event]:
        rows: list[Any] = [None] * self.width
        rows[self.place] = right.row
        return self.to_left(rows, 0)

    def _match(self, right: Event, by: int, net: Net) -> None:
        """A row of the right side has one partner more or less."""
        before = self.matches[right]
        self.matches[right] = before + by
        if self.keeps_right and not before:
            _count(net, (*self.nothing, right), -1)
        if self.keeps_right and not before + by:
            _count(net, (*self.nothing, right), 1)

    def extend(self, rows: Iterable[Sides]) -> list[Sides]:
        """Joined rows beside this source's rows, or NULL, without keeping anything."""
        out: list[Sides] = []
        for sides in rows:
            event = joined_event(sides, self.width)
            found = self.to_right(event.row, 0)
            out += [(*sides, right) for right in found]
            if not found and self.keeps_left:
                out.append((*sides, None))
        return out


def _looked_up(
    place: int, stores: Sequence[Store], rows: Callable[[], list[Sides]]
) -> Pulled | JoinedBefore | None:
    """The sources before this place where their rows are only looked up, and those of this place are not."""
    before = [store for store in stores[:place] if isinstance(store, Pulled)]
    if len(before) < place or isinstance(stores[place], Pulled):
        return None
    return before[0] if place == 1 else JoinedBefore(before, len(stores), rows)


def _count(net: Net, sides: Sides, by: int) -> None:
    net[sides] = net.get(sides, 0) + by


class OuterCode:
    """A chain of steps over all sources, made once for all instances of a join."""

    def __init__(self, joins: Sequence[JoinPlan], functions: FunctionSet) -> None:
        self.joins = joins
        self.functions = functions
        self.steps: list[StepCode] = []

    def over(self, stores: Sequence[Store], fail: Fail) -> Outer:
        if not self.steps:
            self.steps = [
                StepCode(join, place, stores, self.functions)
                for place, join in enumerate(self.joins, start=1)
            ]
        return Outer(self.steps, stores, fail)


class Outer:
    """The joined rows of one instance."""

    def __init__(self, steps: Sequence[StepCode], stores: Sequence[Store], fail: Fail) -> None:
        """`fail` takes joined rows whose condition cannot be evaluated."""
        self.stores = stores
        self.steps = [
            Step(code, stores, fail, partial(self._joined_before, place)) for place, code in enumerate(steps)
        ]

    def change(self, changes: Mapping[int, Delta]) -> Net:
        """The net change of the joined rows, from the rows that came and went by source."""
        change, first, net = changes.get(0, Delta()), self.stores[0], Net()
        if isinstance(first, Rows):
            first.change(change)
        for event in change.inserted:
            _count(net, (event,), 1)
        for event in change.removed:
            _count(net, (event,), -1)
        net = {sides: count for sides, count in net.items() if count}
        for step in self.steps:
            came, went = changes.get(step.place, Delta())
            stayed = [event for event in came if event not in set(went)]
            left = [event for event in went if event not in set(came)]
            net = step.change(net, stayed, left)
        return net

    def product(self) -> list[Sides]:
        return self._joined(self.steps)

    def _joined_before(self, place: int) -> list[Sides]:
        return self._joined(self.steps[:place])

    def _joined(self, steps: Iterable[Step]) -> list[Sides]:
        """The present rows of the first source, joined by the first steps."""
        rows: list[Sides] = [(event,) for event in self.stores[0].content()]
        for step in steps:
            longer = step.extend(rows)
            if step.keeps_right:
                met = {sides[-1] for sides in longer}
                longer += [(*step.nothing, right) for right in step.right.content() if right not in met]
            rows = longer
        return rows

    def between(self) -> list[list[Sides]]:
        """The rows joined before each step but the first, in order of arrival."""
        return [list(step.lefts) for step in self.steps[1:]]

    def restore(
        self, sources: Sequence[Sequence[Event]], between: Sequence[Sequence[Sides]], rows: Sequence[Sides]
    ) -> None:
        """Put a snapshot back: the rows of each source, those joined before each step but the first, and
        those shown."""
        first = self.stores[0]
        if isinstance(first, Rows):
            first.change(Delta(sources[0]))
        before = [[(event,) for event in sources[0]], *between]
        for step, lefts, shown in zip(self.steps, before, [*between, rows], strict=True):
            step.restore(lefts, sources[step.place], shown)

    def of_event(self, driver: int, event: Event) -> list[Sides]:
        """The joined rows that hold an event of a source that keeps nothing."""
        if driver == 0:
            rows: list[Sides] = [(event,)]
        else:
            rows = self._beside(self.steps[driver - 1], self._joined(self.steps[: driver - 1]), event)
        for step in self.steps[driver:]:
            rows = step.extend(rows)
        return rows

    @staticmethod
    def _beside(step: Step, rows: list[Sides], event: Event) -> list[Sides]:
        found = [(*sides, event) for sides in rows if step._pairs(joined_event(sides, step.width), event)]
        return found or ([(*step.nothing, event)] if step.keeps_right else [])

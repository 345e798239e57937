"""One step of an outer join, which joins what is joined before it with one more source.

A step keeps both sides with their indexes and, for each row, how many partners it has. The row beside NULL is
there as long as that is zero, so it is taken back when a partner comes and restored when the last one goes.
What a step puts out is the net change of its content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sql.algebra.event import Event
from sql.algebra.join.inner import Sides
from sql.algebra.join.store import Pulled, Rows, Store
from sql.algebra.join.tables_before import Beside, exist_before, is_part, only_the_first, values
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

    def __init__(
        self, joins: Sequence[JoinPlan], place: int, stores: Sequence[Store], functions: FunctionSet
    ) -> None:
        """`joins`: those of all steps; `stores`: those of one instance."""
        self.place = place
        join = joins[place - 1]
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
        self.meets_tables = exist_before(joins, place, stores)
        """True if rows of tables that no event has joined may stand beside an event of this source."""
        self.to_table: Finder | None = None
        """Finds these in the first source, where that is the only table."""
        if self.meets_tables and only_the_first(place, stores):
            others = frozenset(range(1, place + 1))
            self.to_table = Finder(
                join.on, 0, others, stores[0], functions, nullable=before | others, reports=True
            )


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
        self.to_right = code.to_right.over(self.right, self.failed)
        self.to_left = code.to_left.over(self.looked_up or self.left, self.failed)
        self.keeps_left, self.keeps_right = code.keeps_left, code.keeps_right
        self.nothing: Sides = (None,) * self.place
        self.shown: dict[Sides | Event, list[Sides]] = {}
        """The rows shown for a row of either side joined with looked-up rows, which may be others when it
        leaves, or rows of tables for one of the right side."""
        self.tables: Beside | None = None
        """Finds joined rows of tables only, where this step must look for them."""

    def pairs(self, left: Event, right: Event) -> bool:
        if self.holds is None:
            return True
        rows = (*left.row[: self.place], right.row, *left.row[self.place + 1 :])
        try:
            return bool(self.holds(Event(rows, 0, -1)))
        except DATA_ERRORS as error:
            self.failed(rows, error)
            return False

    def failed(self, rows: Any, error: BaseException) -> None:
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
            tables, self.tables = self.tables, None
            for sides in lefts:
                self._left_enters(sides, {})
            for event in rights:
                self._right_enters(event, {})
            self.tables = tables
            for sides in shown if tables is not None else ():
                right = sides[-1]
                if right is not None and any(sides[:-1]) and sides[:-1] not in self.lefts:
                    self.shown.setdefault(right, []).append(sides)
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
            self._hide_tables(sides, right, net)
            count_in(net, (*sides, right), 1)
        if not partners and self.keeps_left:
            count_in(net, (*sides, None), 1)

    def _show(self, row: Sides | Event, joined: list[Sides], net: Net) -> None:
        """Show a row joined with looked-up rows, or with NULL where there is none. What is shown stays until
        the row leaves: a partner that comes or goes later causes no change."""
        self.shown[row] = joined
        for sides in joined:
            count_in(net, sides, 1)

    def _left_leaves(self, sides: Sides, net: Net) -> None:
        event = self.lefts.pop(sides)
        self.left.remove(event)
        del self.sides[event]
        if self.right.pulled:
            for row in self.shown.pop(sides):
                count_in(net, row, -1)
            return
        if not self.matches.pop(event) and self.keeps_left:
            count_in(net, (*sides, None), -1)
        for right in self.to_right(event.row, 0):
            self._show_tables(right, net)
            self._match(right, -1, net)
            count_in(net, (*sides, right), -1)

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
                count_in(net, (*sides, None), -1)
            self.matches[left] += 1
            count_in(net, (*sides, right), 1)
        self._show_tables(right, net)
        if not partners and self.keeps_right and right not in self.shown:
            count_in(net, (*self.nothing, right), 1)

    def _right_leaves(self, right: Event, net: Net) -> None:
        if not isinstance(self.right, Rows) or not self.right.remove(right):
            return
        if self.looked_up is not None:
            for row in self.shown.pop(right):
                count_in(net, row, -1)
            return
        tables = self.shown.pop(right, ())
        for row in tables:
            count_in(net, row, -1)
        if not self.matches.pop(right, 0) and self.keeps_right and not tables:
            count_in(net, (*self.nothing, right), -1)
        for left in self._lefts_of(right):
            sides = self.sides[left]
            count_in(net, (*sides, right), -1)
            self.matches[left] -= 1
            if not self.matches[left] and self.keeps_left:
                count_in(net, (*sides, None), 1)

    def _lefts_of(self, right: Event) -> list[Event]:
        rows: list[Any] = [None] * self.width
        rows[self.place] = right.row
        return self.to_left(rows, 0)

    def _match(self, right: Event, by: int, net: Net) -> None:
        """A row of the right side has one partner more or less."""
        before = self.matches[right]
        self.matches[right] = before + by
        if not self.keeps_right or right in self.shown:
            return
        if not before:
            count_in(net, (*self.nothing, right), -1)
        if not before + by:
            count_in(net, (*self.nothing, right), 1)

    def _show_tables(self, right: Event, net: Net) -> None:
        """Show the joined rows of tables beside a row of the right side that are not shown with it."""
        if self.tables is None:
            return
        rows = [(*sides, right) for sides in self.tables(right)]
        shown = [values(sides) for sides in self.shown.get(right, ())]
        for sides in rows:
            if values(sides) not in shown:
                self.shown.setdefault(right, []).append(sides)
                count_in(net, sides, 1)

    def _hide_tables(self, left: Sides, right: Event, net: Net) -> None:
        """Take back what stands beside a row of the right side and is part of a longer row from now on."""
        shown = self.shown.pop(right, None) if self.tables is not None else None
        if shown is None:
            return
        for sides in shown:
            if is_part(sides[:-1], left):
                count_in(net, sides, -1)
        if stay := [sides for sides in shown if not is_part(sides[:-1], left)]:
            self.shown[right] = stay

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


def count_in(net: Net, sides: Sides, by: int) -> None:
    net[sides] = net.get(sides, 0) + by

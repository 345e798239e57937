"""The filter index: an event meets only the rules of its stream that can match it.

A rule's first condition is indexed where it compares a column with constants: `dev = 'p7'`, `site IN ('a',
'b')`, `temp > 90`, `temp BETWEEN 20 AND 30`. Only the first of several joined by AND: the others are
evaluated after it, so an event that the first one drops can cause no error in them. A rule whose condition is
of another form is met by every event.

    equal   column -> value -> rules        one look into a dictionary per event
    range   column -> stretches -> rules    |--a--|--a b--|-b-|   one bisection per event

The condition that comes before everything that keeps state depends on the rule (`first_condition`). A value
of another type than the constants (a text for `temp > 90`) meets the rule, whose own code reports the error.
NULL meets none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from sql.engine.families import Family, Kin
from sql.engine.indexable import TEXT, Equal, Indexable, Range, first_condition, indexable
from sql.engine.sharing import Several
from sql.rows import Shape, attribute_name

_order = attrgetter("order")

STRETCHES_MAX = 1_000_000
"""Rules in all stretches of a column together; with more, its range conditions are not indexed."""

INDEX_MIN = FAMILY_MIN = 8
"""Fewer rules on one column are not worth the look into its index, and fewer rules alike
not a loop of their own."""


MakeItems = Callable[[], Sequence[Any]]
"""Makes what rules are given of a batch: the rows, or rows with their instants."""


@dataclass(slots=True, eq=False)
class Entry:
    """A rule in the index, or a party of rules, and its part of the batch that is being routed."""

    name: str
    order: int
    query: Any
    pour: Callable[[Sequence[Any], int, list[Any]], Sequence[str] | None] | None
    """Takes events, the instant and the list for the results; gives the rules that have a new deadline."""
    rows: list[Any] = field(default_factory=list)
    seen: int = 0
    """The number of events that the rule has counted since the last settling."""

    @property
    def names(self) -> tuple[str, ...]:
        """The rules it stands for."""
        return self.query.names if isinstance(self.query, Several) else (self.name,)

    def reconcile(self, total: int) -> None:
        """Count the events of so many that were kept away from the rule."""
        for query in self.query.queries if isinstance(self.query, Several) else (self.query,):
            query.counts["events_in"] += total - self.seen
        self.seen = 0


class ColumnIndex:
    """The rules whose first condition is on one column."""

    def __init__(self, column: str, kind: str) -> None:
        self.column = column
        self.kinds = (str,) if kind == TEXT else (int, float)
        self.by_value: dict[Any, list[Entry]] = {}
        self.ranges: list[tuple[Range, Entry]] = []
        self.bounds: list[Any] = []
        self.stretches: list[list[Entry]] = [[]]
        self.entries: list[Entry] = []
        self.families: dict[Any, list[tuple[Equal, Entry, Kin]]] = {}
        self.large: list[Family] = []

    def add(self, condition: Indexable, entry: Entry) -> None:
        """Index a rule."""
        self.entries.append(entry)
        if isinstance(condition, Range):
            self.ranges.append((condition, entry))
            return
        kin = entry.query.family() if hasattr(entry.query, "family") else None
        if kin is None:
            self._add_values(condition, entry)
        else:
            self.families.setdefault(kin.signature, []).append((condition, entry, kin))

    def _add_values(self, condition: Equal, entry: Entry) -> None:
        for value in dict.fromkeys(condition.values):
            self.by_value.setdefault(value, []).append(entry)

    def finish(self) -> bool:
        """All rules are there: form families and stretches; False if the stretches are too many."""
        for members in self.families.values():
            self._form(members)
        return self._cut()

    def _form(self, members: list[tuple[Equal, Entry, Kin]]) -> None:
        wanted = Counter(value for condition, _, _ in members for value in set(condition.values))
        family = members[0][2].found() if len(members) >= FAMILY_MIN else None
        for condition, entry, _ in members:
            if family is None or any(wanted[value] > 1 for value in condition.values):
                self._add_values(condition, entry)
            else:
                family.add(entry.name, condition.values, entry.query)
        if family is not None and family.values:
            self.large.append(family)

    def _cut(self) -> bool:
        """Cut the ranges into stretches: 2i lies before bound i, 2i + 1 is bound i itself."""
        self.bounds = sorted(
            {
                bound
                for condition, _ in self.ranges
                for bound in (condition.low, condition.high)
                if bound is not None
            }
        )
        self.stretches = [[] for _ in range(2 * len(self.bounds) + 1)]
        total = 0
        for condition, entry in self.ranges:
            low = (
                0
                if condition.low is None
                else 2 * bisect_left(self.bounds, condition.low) + 2 - condition.low_inside
            )
            high = 2 * len(self.bounds)
            if condition.high is not None:
                high = 2 * bisect_left(self.bounds, condition.high) + condition.high_inside
            total += max(0, high - low + 1)
            if total > STRETCHES_MAX:
                return False
            for place in range(low, high + 1):
                self.stretches[place].append(entry)
        return True

    # --- events ---------------------------------------------------------------------------------------------

    def route(
        self,
        rows: Sequence[Any],
        at: int | Sequence[int],
        make_items: MakeItems,
        shape: Shape,
        out: list[Any],
    ) -> list[Entry]:
        """Run the families; the other rules that can match some of the rows,
        which now have the items of those."""
        values = _values(rows, self.column, shape)
        touched: list[Entry] = []
        if not set(map(type, values)) <= {*self.kinds, type(None)}:
            by_value = self._all_by_value()
            _hand_out(make_items(), [self._found(value, by_value) for value in values], touched)
            return touched
        for family in self.large:
            family.route(rows, values, at, out)
        if self.bounds:
            _hand_out(make_items(), [self._found(value, self.by_value) for value in values], touched)
        elif self.by_value:
            _hand_out(make_items(), map(self.by_value.get, values), touched)
        return touched

    def _all_by_value(self) -> dict[Any, list[Entry]]:
        """The rules by value, those of families among them."""
        found = {value: list(entries) for value, entries in self.by_value.items()}
        by_name = {entry.name: entry for entry in self.entries}
        for family in self.large:
            for name, values in family.values.items():
                for value in values:
                    found.setdefault(value, []).append(by_name[name])
        return found

    def _found(self, value: Any, by_value: Mapping[Any, Sequence[Entry]]) -> Sequence[Entry]:
        """The rules that meet a value. One of another type meets every rule, for each has to call it an
        error."""
        if value is None:
            return ()
        if value.__class__ not in self.kinds:
            return self.entries
        found = by_value.get(value, ())
        return [*found, *self._in_ranges(value)] if self.bounds else found

    def _in_ranges(self, value: object) -> list[Entry]:
        """The rules whose range holds a value; NaN is in none."""
        if value != value:
            return []
        place = bisect_left(self.bounds, value)
        return self.stretches[2 * place + (place < len(self.bounds) and self.bounds[place] == value)]


def _hand_out(items: Sequence[Any], found: Iterable[Sequence[Entry] | None], touched: list[Entry]) -> None:
    """Give each item to the rules found for it, if any; `touched` gets those that had none before."""
    for item, entries in zip(items, found, strict=True):
        if entries is not None:
            for entry in entries:
                if not entry.rows:
                    touched.append(entry)
                entry.rows.append(item)


def _values(rows: Sequence[Any], column: str, shape: Shape) -> list[Any]:
    if shape == "dict":
        return [row.get(column) for row in rows]
    return list(map(attrgetter(attribute_name(column)), rows))


class FilterIndex:
    """All rules of one stream, in order of deployment."""

    def __init__(self, rules: Iterable[tuple[str, Any]], parties: Sequence[Several] = ()) -> None:
        self.total = 0
        """Events routed since the last settling."""
        self.columns: dict[tuple[str, str, Shape], ColumnIndex] = {}
        self.always: list[Entry] = []
        self.indexed: dict[str, Entry] = {}
        rules = list(rules)
        self.parties = {name: party for party in parties for name in party.names}
        """The rules that may share groups with others."""
        for place, (name, query) in enumerate(rules):
            party = self.parties.get(name)
            if party is None:
                self._add(name, query, place)
            elif party.names[0] == name:
                self._add(name, party, place)
        self._finish()

    def _add(self, name: str, query: Any, order: int) -> None:
        plan = query.plan
        entry = Entry(name, order, query, getattr(query, "pour", None) if plan.emits_as_made else None)
        condition = indexable(first_condition(plan))
        shape = getattr(query, "shape", None)
        if condition is None or shape is None:
            self.always.append(entry)
            return
        key = (condition.column, condition.kind, shape)
        column = self.columns.setdefault(key, ColumnIndex(condition.column, condition.kind))
        column.add(condition, entry)
        self.indexed[name] = entry

    def _finish(self) -> None:
        for key, column in list(self.columns.items()):
            if len(column.entries) < INDEX_MIN or not column.finish():
                del self.columns[key]
                self.always += column.entries
                for entry in column.entries:
                    del self.indexed[entry.name]
        self.always.sort(key=_order)

    def route(
        self, rows: Sequence[Any], now_ms: int, out: list[Any]
    ) -> Iterator[tuple[Entry, Sequence[Any]]]:
        """Each rule that has to see some of the rows, with those, in order of deployment.

        Rules of large families are run at once, before the others; their results are added to `out`.
        """
        return self._meet(rows, now_ms, lambda: rows, out)

    def route_timed(
        self, rows: Sequence[Any], times: Sequence[int], out: list[Any]
    ) -> Iterator[tuple[Entry, Sequence[Any], Sequence[int]]]:
        """`route` for events with their times."""
        for entry, mine in self._meet(rows, times, lambda: list(zip(rows, times, strict=True)), out):
            if mine is rows:
                yield entry, rows, times
            else:
                own, at_ms = zip(*mine, strict=True)
                yield entry, own, at_ms

    def take_woken(self) -> list[str]:
        """The rules in families that may have a new deadline since the last call."""
        if not self.columns:
            return []
        return [
            name
            for column in self.columns.values()
            for family in column.large
            for name in family.take_woken()
        ]

    def _meet(
        self, rows: Sequence[Any], at: int | Sequence[int], make_items: MakeItems, out: list[Any]
    ) -> Iterator[tuple[Entry, Sequence[Any]]]:
        """Each rule that has to see some of the rows, with the items of those, or with all rows."""
        self.total += len(rows)
        touched = list(self.always)
        for (_, _, shape), column in self.columns.items():
            touched += column.route(rows, at, make_items, shape, out)
        if len(touched) > 1:
            touched.sort(key=_order)
        for entry in touched:
            mine, entry.rows = entry.rows, []
            if mine:
                entry.seen += len(mine)
                yield entry, mine
            elif entry.name not in self.indexed:
                yield entry, rows

    def shares_with(self, name: str) -> list[str]:
        """The rules that share groups with this one."""
        return self.parties[name].shares_with(name) if name in self.parties else []

    def reconcile(self) -> None:
        """Let the rules' own counts include the events they never met."""
        for column in self.columns.values():
            for family in column.large:
                for name, met in family.reconcile().items():
                    self.indexed[name].query.counts["events_in"] += met
                    self.indexed[name].seen += met
        for entry in self.indexed.values():
            entry.reconcile(self.total)
        for party in dict.fromkeys(self.parties.values()):
            party.reconcile()
        self.total = 0

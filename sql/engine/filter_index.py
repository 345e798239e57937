"""The filter index: an event goes only to the rules of its stream whose first condition can hold.

A rule's first condition is indexed where it compares a column with constants: `dev = 'p7'`, `site IN ('a',
'b')`, `temp > 90`, `temp BETWEEN 20 AND 30`. Only the first of several joined by AND: the others are
evaluated after it, so an event that the first one drops can cause no error in them. A rule whose condition is
of another form gets every event.

    equal   column -> value -> rules        one lookup per event
    range   column -> stretches -> rules    |--a--|--a b--|-b-|   one bisection per event

The condition that comes before everything that keeps state depends on the rule (`first_condition`). A value
of another type than the constants (a text for `temp > 90`) goes to the rule, whose own code reports the
error; NULL goes to none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from sql.emission import Emission
from sql.engine.families import At, Family, FamilyKind
from sql.engine.indexable import TEXT, Equal, Indexable, Range, first_condition, indexable
from sql.engine.query import Running, RunningQuery
from sql.engine.rowwise_query import Rowwise, row_family_of
from sql.engine.sampled.sampled_query import SampledQuery
from sql.engine.sampled.window_family import window_family_of
from sql.engine.sharing import Cohort
from sql.rows import Shape, attribute_name

_order = attrgetter("order")

STRETCHES_MAX = 1_000_000
"""Rules in all stretches of a column together; with more, its range conditions are not indexed."""

INDEX_MIN = FAMILY_MIN = 8
"""With fewer rules on one column, or alike, an index or a common loop costs more than it saves."""


@dataclass(slots=True, eq=False)
class Entry:
    """A rule in the index, or a cohort of rules, and its part of the batch that is being routed."""

    order: int
    query: Running | Cohort[Any, Any]
    queries: tuple[Running, ...]
    """The rules it stands for; it has the name of the first."""
    name: str
    emits_as_made: bool
    """True if all that it emits leaves as it is made."""
    type: str | None = None
    """The type as which it takes the events, one that theirs inherits; None: their own."""
    rows: list[Any] = field(default_factory=list)
    seen: int = 0
    """The number of events that the rule has counted since the last reconciling."""

    def reconcile(self, total: int) -> None:
        """Count the events of so many that were kept away from the rule."""
        for query in self.queries:
            query.counts["events_in"] += total - self.seen
        self.seen = 0


def entry_of(query: Running | Cohort[Any, Any], order: int, type_: str | None) -> Entry:
    """The entry of a rule, or of rules that may share work; `type_` as in `Entry`."""
    queries = query.queries if isinstance(query, Cohort) else (query,)
    emits_as_made = isinstance(query, Cohort | Rowwise) and query.plan.emits_as_made
    return Entry(order, query, queries, queries[0].name, emits_as_made, type_)


def family_kind_of(query: Running | Cohort[Any, Any]) -> FamilyKind[Any] | None:
    """The family of all rules that differ from this one in the constants of their first condition."""
    if isinstance(query, Rowwise):
        return row_family_of(query)
    return window_family_of(query) if isinstance(query, SampledQuery) else None


class ColumnIndex:
    """The rules whose first condition is on one column."""

    def __init__(self, column: str, kind: str, shape: Shape) -> None:
        self.column, self.shape = column, shape
        self.kinds = (str,) if kind == TEXT else (int, float)
        self.by_value: dict[Any, list[Entry]] = {}
        self.ranges: list[tuple[Range, Entry]] = []
        self.bounds: list[Any] = []
        self.stretches: list[list[Entry]] = [[]]
        self.entries: list[Entry] = []
        self.families: dict[Hashable, list[tuple[Equal, Entry, FamilyKind[Any]]]] = {}
        """The rules that are alike, until all are there."""
        self.large: list[Family[Any, Any]] = []

    def add(self, condition: Indexable, entry: Entry) -> None:
        """Index a rule."""
        self.entries.append(entry)
        if isinstance(condition, Range):
            self.ranges.append((condition, entry))
            return
        kin = family_kind_of(entry.query)
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
        self.families.clear()
        return self._cut()

    def _form(self, members: list[tuple[Equal, Entry, FamilyKind[Any]]]) -> None:
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

    def route(self, rows: Sequence[Any], at: At, out: list[Emission]) -> list[Entry]:
        """Run the families; the other rules that can match some of the rows,
        which now have those, in event time each with its instant."""
        values = _values(rows, self.column, self.shape)
        touched: list[Entry] = []
        if not set(map(type, values)) <= {*self.kinds, type(None)}:
            by_value = self._all_by_value()
            _hand_out(rows, at, [self._found(value, by_value) for value in values], touched)
            return touched
        for family in self.large:
            family.route(rows, values, at, out)
        if self.bounds:
            _hand_out(rows, at, [self._found(value, self.by_value) for value in values], touched)
        elif self.by_value:
            _hand_out(rows, at, map(self.by_value.get, values), touched)
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
        """The rules for a value. One of another type goes to all of them, since each reports the error."""
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


def _hand_out(
    rows: Sequence[Any], at: At, found: Iterable[Sequence[Entry] | None], touched: list[Entry]
) -> None:
    """Give each row, with its instant where there are several, to the rules found for it, if any; `touched`
    gets those that had none before."""
    items = rows if isinstance(at, int) else zip(rows, at, strict=True)
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

    def __init__(
        self,
        rules: Iterable[Running],
        cohorts: Sequence[Cohort[Any, Any]] = (),
        types: Mapping[str, Sequence[str]] = MappingProxyType({}),
        *,
        order_matters: bool = False,
    ) -> None:
        """`types`: as what rules take the events, by rule, where these are of several types.
        `order_matters`: the rules can see each other's effects, so that each event must be done before the
        next."""
        self.order_matters = order_matters
        self.total = 0
        """Events routed since the last reconciling."""
        self.columns: dict[tuple[str, str, Shape], ColumnIndex] = {}
        self.always: list[Entry] = []
        self.indexed: dict[str, Entry] = {}
        self.cohorts = {name: cohort for cohort in cohorts for name in cohort.names}
        """The rules that may share work with others."""
        for place, query in enumerate(rules):
            cohort = self.cohorts.get(query.name)
            if cohort is None or cohort.names[0] == query.name:
                for type_ in types.get(query.name, (None,)):
                    self._add(entry_of(cohort or query, place, type_))
        self._finish()

    def _add(self, entry: Entry) -> None:
        query = entry.query
        condition = indexable(first_condition(query.plan))
        shape = query.shape if isinstance(query, RunningQuery | Cohort) else None
        if condition is None or shape is None:
            self.always.append(entry)
            return
        key = (condition.column, condition.kind, shape)
        column = self.columns.setdefault(key, ColumnIndex(*key))
        column.add(condition, entry)
        self.indexed[entry.name] = entry

    def _finish(self) -> None:
        for key, column in list(self.columns.items()):
            if len(column.entries) < INDEX_MIN or not column.finish():
                del self.columns[key]
                self.always += column.entries
                for entry in column.entries:
                    del self.indexed[entry.name]
        self.always.sort(key=_order)

    def route(
        self, rows: Sequence[Any], at: At, out: list[Emission]
    ) -> Iterable[tuple[Entry, Sequence[Any], At]]:
        """Each rule that has to see some of the rows, with those and their instants, in order of deployment.

        Rules of large families are run at once, before the others; their results are added to `out`.
        """
        self.total += len(rows)
        if not self.columns:
            return zip(self.always, repeat(rows), repeat(at), strict=False)
        touched = list(self.always)
        for column in self.columns.values():
            touched += column.route(rows, at, out)
        touched.sort(key=_order)
        return self._handed(touched, rows, at)

    def _handed(
        self, touched: list[Entry], rows: Sequence[Any], at: At
    ) -> Iterator[tuple[Entry, Sequence[Any], At]]:
        for entry in touched:
            mine, entry.rows = entry.rows, []
            entry.seen += len(mine)
            if not mine:
                if entry.name not in self.indexed:
                    yield entry, rows, at
            elif isinstance(at, int):
                yield entry, mine, at
            else:
                own, times = zip(*mine, strict=True)
                yield entry, own, times

    def take_woken(self) -> list[str]:
        """The rules in families that may have a new deadline since the last call."""
        return [
            name
            for column in self.columns.values()
            for family in column.large
            for name in family.take_woken()
        ]

    def shares_with(self, name: str) -> list[str]:
        """The rules that share groups with this one."""
        return self.cohorts[name].shares_with(name) if name in self.cohorts else []

    def reconcile(self) -> None:
        """Count for the rules the events that the index kept away from them."""
        for column in self.columns.values():
            for family in column.large:
                for name, met in family.reconcile().items():
                    entry = self.indexed[name]
                    entry.queries[0].counts["events_in"] += met
                    entry.seen += met
        for entry in self.indexed.values():
            entry.reconcile(self.total)
        for cohort in dict.fromkeys(self.cohorts.values()):
            cohort.reconcile()
        self.total = 0

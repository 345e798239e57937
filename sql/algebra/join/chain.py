"""A row and its partners in the other sources, as loops in one another: first the
sources that an index finds.

for y1 in find_0_1(key, ()):
    r1 = y1.row
    for r2 in find_0_2(key, ()):   of a relation: `r2.temp` reads a column, `r2.row` is all of them
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from sql.algebra.table.index import keys_of
from sql.algebra.table.lookup import equalities, ranges
from sql.algebra.table.search import Search
from sql.codegen.loop import LoopWriter, batch_loop
from sql.codegen.names import Names
from sql.codegen.source import SourceWriter, Suite
from sql.plan.bound import Bound, columns_read, reads_subquery


class JoinLoops:
    """The loops from a row of one source. In the text `r0`, `r1`, … are rows, `y1`, `y2`, …
    the partners' events; a row of a relation is both."""

    def __init__(
        self,
        parts: Sequence[Bound],
        tested: Sequence[Bound],
        start: int,
        stores: Sequence[Any],
        *,
        reads: Sequence[Bound] | None = None,
    ) -> None:
        """`parts` of conditions say where to look; those `tested` hold for every row that is found.
        `reads`: the expressions of the output's rows, if the partners of which an event has the key are
        looked up for a batch of events at once; else None."""
        self.start = start
        self.width = len(stores)
        self.kept = frozenset(
            place for place, store in enumerate(stores) if place != start and store.of_relation
        )
        """The sources whose rows are those of relations."""
        self.searches = [
            (place, Search(parts, place, known, stores[place])) for place, known in self._way(parts)
        ]
        settled = [part for _, search in self.searches for part in search.settled]
        self.rest = [part for part in tested if not any(part is other for other in settled)]
        self.needs_event = reads_subquery(parts)
        self.ahead = {
            place: column
            for place, search in self.searches
            if reads is not None and (column := search.column_of(start)) is not None
        }
        """The sources that are looked into for a batch of events, each with the column that is its key."""
        self.reads = (*(reads or ()), *self.rest)

    def _way(self, parts: Sequence[Bound]) -> Iterator[tuple[int, frozenset[int]]]:
        """The other sources in the order in which they are looked into, each with the
        sources known by then."""
        known = {self.start}
        rest = [place for place in range(self.width) if place != self.start]
        while rest:
            place = min(rest, key=lambda place: (_rank(parts, place, known), place))
            yield place, frozenset(known)
            known.add(place)
            rest.remove(place)

    @property
    def finds_one(self) -> bool:
        """True if each row has one joined row at most."""
        return all(search.is_single for _, search in self.searches)

    def opened(self, stores: Sequence[Any]) -> list[Callable[..., Any]]:
        """The functions that the text calls `find_0_1`, …: one for each search, in order."""
        return [
            search.ahead(stores[place], columns_read(self.reads, place) if place in self.kept else ())
            if place in self.ahead
            else search.opened(stores[place])
            for place, search in self.searches
        ]

    def batch(self, source: SourceWriter, names: Names) -> Suite:
        """The loop over the rows of a batch of events, each with what is looked up for it."""
        keys: dict[str, str] = {}
        for column in dict.fromkeys(self.ahead.values()):
            keys[column] = f"keys_{len(keys)}"
            source.line(f"{keys[column]} = {names.bind(keys_of, 'keys_of')}(rows, {column!r})")
        found = {self._name(place): f"find_{self._name(place)}({keys[column]})"
                 for place, column in self.ahead.items()}  # fmt: skip
        return source.block(batch_loop(found, f"r{self.start}"))

    def _name(self, place: int) -> str:
        """The end of the names for what is looked up in a source."""
        return f"{self.start}_{place}"

    @property
    def finders(self) -> list[str]:
        """The names of what the text calls, in order."""
        return [f"find_{self._name(place)}" for place, _ in self.searches]

    def rows(self) -> dict[int, str]:
        """The local of each source's row."""
        return {place: f"r{place}" for place in range(self.width)}

    def partner(self, place: int) -> str:
        """The local of a partner's event."""
        return f"r{place}" if place in self.kept else f"y{place}"

    def whole(self, place: int) -> str:
        """The text of a source's row as a value."""
        return f"r{place}.row" if place in self.kept else f"r{place}"

    @contextmanager
    def each(self, loop: LoopWriter) -> Iterator[LoopWriter]:
        """The loops: what is written inside, with the writer that is given, is done for each joined row."""
        source, known = loop.source, {self.start}
        with ExitStack() as stack:
            for place, search in self.searches:
                if self.needs_event:
                    source.line(f"x = {self.event(known)}")
                name = self._name(place)
                if place in self.ahead:
                    rows = search.each_of(loop, f"found_{name}", self.partner(place))
                else:
                    rows = search.each(loop, f"find_{name}", self.partner(place))
                stack.enter_context(rows)
                if place not in self.kept:
                    source.line(f"r{place} = y{place}.row")
                known.add(place)
                loop = loop.inner()
            yield loop

    def sides(self, kept: Container[int] = ()) -> str:
        """The text of the rows of all sources; of those `kept` the rows of relations themselves."""
        return ", ".join(
            self.partner(place) if place in kept else self.whole(place) for place in range(self.width)
        )

    def write_test(self, loop: LoopWriter) -> None:
        """Go on with the next row where what no index settles does not hold."""
        if reads_subquery(self.rest):
            loop.source.line(f"x = {self.event(set(range(self.width)))}")
        loop.test(self.rest)

    def event(self, known: set[int]) -> str:
        """The text of a joined row as an event to evaluate with."""
        return f"Event({self.event_rows(known)}, now, -1)"

    def event_rows(self, known: set[int]) -> str:
        """The text of the rows of these sources, NULL for the others."""
        rows = [self.whole(place) if place in known else "None" for place in range(self.width)]
        return f"({', '.join(rows)})"


def _rank(parts: Sequence[Bound], place: int, known: set[int]) -> int:
    """0 for a source found by equality, 1 by a range, 2 by looking at all."""
    if any(item.needs <= known and item.needs for item in equalities(parts, place)):
        return 0
    return 1 if any(item.needs <= known and item.needs for item in ranges(parts, place)) else 2

"""The search for the rows of a condition, as statements: by an index where its parts allow,
else one by one.

An index settles the equalities of its key, and a range whose values are of one type, so that they are not
tested again. The rest of the condition is tested on each row that is found.

    y1 = find_1(key)
    for y1 in () if y1 is None else (y1,):                 the primary key of a table: a row or None
    for y1 in () if y1 is None else … (y1,):               a hash index: a row, several as a dict, or None
    for y1 in find_1(key, low, high):                      an ordered index: equalities (or none), a range
    for y1 in find_1():                                    every row
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from sql.algebra.event import Event
from sql.algebra.table import lookup
from sql.algebra.table.index import sought
from sql.algebra.table.lookup import KeyRange, Name, Own, equalities, ranges
from sql.algebra.table.row import read_ahead
from sql.algebra.table.searched import Bucket, FindRange, RowStore, Searched
from sql.algebra.table.sorted_rows import placed
from sql.codegen.expression_code import Code
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.errors import Fail
from sql.plan.bound import Bound, Read, conjuncts, reads_subquery, sources_read

Find = Callable[[Sequence[Any], int], list[Event]]
"""The rows that stand beside rows, by source, at an instant. Those of sources that are not known may be
anything."""


class Search:
    """The search for rows of one source. The text calls the function that `opened` returns for a store."""

    def __init__(self, parts: Sequence[Bound], own: Own, known: Collection[int], store: Searched) -> None:
        """`parts` hold all together; `known`: the sources whose rows stand in the text already."""
        usable = parts if lookup.INDEXED else ()
        equal = [item for item in equalities(usable, own) if item.needs <= set(known)]
        columns = tuple(item.column for item in equal)
        self.bounds = self._range(usable, own, known, columns)
        if self.bounds is not None and store.by_range(columns, self.bounds.column) is None:
            self.bounds = None
        index = store.by_key(columns) if equal and self.bounds is None else None
        if self.bounds is None and index is None:
            equal = []
        self.values = [item.value for item in equal]
        self.columns = tuple(item.column for item in equal)
        self.settled = [item.part for item in equal]
        """The parts that need no test of their own."""
        self.is_single = index is not None and index.is_single
        """True if a key has one row at most."""
        self.finds_many = index is not None and index.find_many is not None
        """True if rows may be looked up for many keys at once."""
        if self.bounds is not None:
            self.settled += self.bounds.parts if self.bounds.is_exact else ()

    @staticmethod
    def _range(
        parts: Iterable[Bound], own: Own, known: Collection[int], equal: Collection[Name]
    ) -> KeyRange | None:
        """The range to look into: one with both ends, if there is one."""
        found = [item for item in ranges(parts, own) if item.needs <= set(known) and item.column not in equal]
        return min(found, key=lambda item: item.low is None or item.high is None, default=None)

    def opened(self, store: Searched) -> Callable[..., Any]:
        """The function that the text calls to find rows of a store."""
        if self.bounds is not None:
            find = store.by_range(self.columns, self.bounds.column)
            assert find is not None
            return within(find, self.bounds)
        if self.values:
            index = store.by_key(self.columns)
            assert index is not None
            return index.find
        return lambda: tuple(store.content())

    @property
    def reads_all(self) -> bool:
        """True if every row is tested, for want of an index."""
        return self.bounds is None and not self.values

    def column_of(self, source: int) -> str | None:
        """The column of a source that is the whole key, if it is one."""
        key = self.values[0] if self.finds_many and len(self.values) == 1 else None
        return key.column if isinstance(key, Read) and key.source == source else None

    def ahead(
        self, store: Searched, columns: Iterable[str] = ()
    ) -> Callable[[Sequence[Hashable]], Sequence[Bucket | None]]:
        """The function that finds the rows of a store for each of many keys of one column. `columns`: what
        the statement reads of a relation's rows."""
        index = store.by_key(self.columns)
        assert index is not None
        assert index.find_many is not None
        find_many, read = index.find_many, read_ahead(tuple(columns))
        return lambda keys: find_many(keys, read)

    @contextmanager
    def each_of(self, loop: LoopWriter, found: str, event: str) -> Iterator[None]:
        """The loop over the rows `event` of what `found` is: what is written inside is its body."""
        several = "" if self.is_single else f"{found} if {found}.__class__ is dict else "
        with loop.source.block(f"for {event} in () if {found} is None else {several}({found},):"):
            yield

    @contextmanager
    def each(self, loop: LoopWriter, found: str, event: str, hint: str = "") -> Iterator[None]:
        """The loop over the rows `event` that `found` gives: what is written inside is its body. The local
        `hint`, if there is one, holds what was looked up ahead, or None."""
        head = f"{found}()"
        if self.bounds is not None:
            key, new = self._key(loop), loop.expressions.names.temporary
            low, high = [
                None if end is None else loop.atom(end, new()) for end in (self.bounds.low, self.bounds.high)
            ]
            head = f"{found}({key}, {low}, {high})"
        elif self.values:
            bucket = hint or event
            with loop.source.block(f"if {hint} is None:") if hint else nullcontext():
                loop.source.line(f"{bucket} = {found}({self._key(loop.inner() if hint else loop)})")
            with self.each_of(loop, bucket, event):
                yield
            return
        with loop.source.block(f"for {event} in {head}:"):
            yield

    def _key(self, loop: LoopWriter) -> str:
        """The text of the key to look up; one with NULL in it is found nowhere."""
        names = loop.expressions.names
        texts = []
        for node in self.values:
            value = loop.atom(node, names.temporary())
            texts.append(
                f"({value} if {value}.__class__ is str else {names.bind(sought, 'sought')}({value}))"
            )
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)}{',' if texts else ''})"


def within(find: FindRange, bounds: KeyRange) -> Callable[[Hashable, object, object], Iterable[Event]]:
    """The function that finds the rows of a key in a range; none if an end is NULL."""
    has_low, has_high = bounds.low is not None, bounds.high is not None
    low_inside, high_inside, turned = bounds.low_inside, bounds.high_inside, bounds.turned

    def found(key: Hashable, low: object, high: object) -> Iterable[Event]:
        if (has_low and low is None) or (has_high and high is None):
            return ()
        if turned and placed(low) > placed(high):
            low, high = high, low
        return find(key, (low, high, low_inside, high_inside))

    return found


# --- functions ----------------------------------------------------------------------------------------------


def loop_over(
    functions: FunctionSet,
    source: SourceWriter,
    rows: dict[int, str],
    *,
    nullable: Container[int] = (),
    kept: Container[int] = (),
) -> LoopWriter:
    """A writer of statements over rows that stand in locals, at the instant `now`."""
    slots: dict[Any, Code] = {
        ("event_time", None): Code("now", False, True, "number"),
        ("istream", None): Code("True", False, True),
    }
    return functions.loop(source, slots, rows=rows, nullable=nullable, kept=kept)


def _whole(own: Own, known: Collection[int]) -> str:
    """The text of the joined row: the row found, or the rows found, among those that are known."""
    if isinstance(own, int):
        return f"(*e[:{own}], y.row, *e[{own + 1}:])"
    (place,) = known
    return f"(*y.row[:{place}], e[{place}], *y.row[{place + 1}:])"


@contextmanager
def guarded(source: SourceWriter, row: str, *, enabled: bool = True) -> Iterator[None]:
    """A block whose errors go to `fail`, with a joined row, of which `row` is the text."""
    with source.block("try:") if enabled else nullcontext():
        yield
    if enabled:
        with source.block("except DATA_ERRORS as error:"):
            source.line(f"fail({row}, error)")


class Finder:
    """Finds rows of stores of one kind: the function is made once, for a first `store`."""

    def __init__(
        self,
        condition: Bound | None,
        own: Own,
        known: Collection[int],
        store: RowStore,
        functions: FunctionSet,
        *,
        nullable: Collection[int] = (),
        reports: bool = False,
    ) -> None:
        """`own`: the source that the rows belong to, or the sources of rows joined before.
        `nullable`: sources that may have no row. `reports`: a pair whose condition cannot be evaluated, a
        tuple, is handed to a function; it is no error of the others."""
        parts = tuple(conjuncts(condition))
        self.own, self.known = own, known
        self.places = (own,) if isinstance(own, int) else tuple(sorted(own))
        self.search = Search(parts, own, known, store)
        kept = self.places if store.of_relation and isinstance(own, int) else ()
        rows = {place: f"r{place}" for place in (*self.places, *known)}
        source = SourceWriter()
        loop = loop_over(functions, source, rows, nullable=nullable, kept=kept)
        self.reports = reports
        self._write(source, loop, parts, "y" if kept else "y.row")
        self.find = functions.generate(source, Event=Event, DATA_ERRORS=DATA_ERRORS)["find"]

    def over(self, store: RowStore, fail: Fail | None = None) -> Find:
        """The function for one store; `fail` takes what cannot be evaluated, where the finder reports."""
        return partial(self.find, self.search.opened(store), *([fail] if self.reports else ()))

    def _write(self, source: SourceWriter, loop: LoopWriter, parts: Sequence[Bound], whole: str) -> None:
        """The function `find`; `whole`: the text of the row of an event that is found."""
        search, needs_event = self.search, reads_subquery(parts)
        with source.block(f"def find(rows, {'fail, ' if self.reports else ''}e, now):"):
            read = frozenset().union(*map(sources_read, parts))
            for place in sorted(read.intersection(self.known)):
                source.line(f"r{place} = e[{place}]")
            if needs_event:
                source.line("x = Event(tuple(e), now, -1)")
            source.line("found = []")
            with guarded(source, "e", enabled=self.reports), search.each(loop, "rows", "y"):
                for place in self.places:
                    source.line(f"r{place} = {whole if isinstance(self.own, int) else f'y.row[{place}]'}")
                joined = _whole(self.own, self.known)
                if needs_event:
                    source.line(f"x = Event({joined}, now, -1)")
                with guarded(source, joined, enabled=self.reports):
                    loop.inner().test([part for part in parts if part not in search.settled])
                    source.line("found.append(y)")
            source.line("return found")

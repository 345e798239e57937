"""Inner joins: the pairs of a change are found from its rows outward, one source after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sql.algebra.event import Event
from sql.algebra.join.chain import JoinLoops
from sql.algebra.join.store import Store
from sql.algebra.table.search import guarded, loop_over
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.source import SourceWriter
from sql.errors import Fail
from sql.plan.bound import Bound, conjuncts

Sides = tuple[Event | None, ...]


def parts_of(conditions: Sequence[Bound | None]) -> list[Bound]:
    return [part for condition in conditions for part in conjuncts(condition)]


Way = Callable[[Event, int], list[Sides]]
"""The joined rows of an event of a source."""


class InnerCode:
    """Finds the joined rows that a row of one source is part of: made once for all instances of a join."""

    def __init__(self, on: Sequence[Bound | None], where: Bound | None, functions: FunctionSet) -> None:
        self.functions = functions
        self.parts = parts_of([*on, where])
        self.tested = parts_of(on)
        self.made: dict[int, tuple[JoinLoops, Callable[..., list[Sides]]]] = {}
        """By source its loops, and the function that has them."""

    def over(self, stores: Sequence[Store], fail: Fail) -> Inner:
        return Inner(self, stores, fail)

    def way(self, start: int, stores: Sequence[Store], fail: Fail) -> Way:
        """The function that finds the joined rows of an event of a source."""
        if start not in self.made:
            chain = JoinLoops(self.parts, self.tested, start, stores)
            self.made[start] = chain, self._partners(chain)
        chain, partners = self.made[start]
        return partial(partners, fail, *chain.opened(stores))

    def _partners(self, chain: JoinLoops) -> Callable[..., list[Sides]]:
        source, start = SourceWriter(), chain.start
        loop = loop_over(self.functions, source, chain.rows(), kept=chain.kept)
        with source.block(f"def partners(fail, {', '.join(chain.finders)}, y{start}, now):"):
            source.line(f"r{start} = y{start}.row")
            source.line("found = []")
            every = set(range(chain.width))
            with (
                guarded(source, chain.event_rows({start})),
                chain.each(loop) as inner,
                guarded(source, chain.event_rows(every)),
            ):
                chain.write_test(inner)
                sides = ", ".join(map(chain.partner, range(chain.width)))
                source.line(f"found.append(({sides}))")
            source.line("return found")
        made = self.functions.generate(source, Event=Event, DATA_ERRORS=DATA_ERRORS)
        partners: Callable[..., list[Sides]] = made["partners"]
        return partners


class Inner:
    """The joined rows of one instance."""

    def __init__(self, code: InnerCode, stores: Sequence[Store], fail: Fail) -> None:
        """`fail` takes joined rows whose condition cannot be evaluated."""
        self.code = code
        self.stores = stores
        self.fail = fail
        self.ways: dict[int, Way] = {}

    def of_event(self, start: int, event: Event, without: Mapping[int, Any] | None = None) -> list[Sides]:
        """The joined rows of a row of source `start`; `without`: by source, rows that take no part."""
        way = self.ways.get(start)
        if way is None:
            way = self.ways[start] = self.code.way(start, self.stores, self.fail)
        found = way(event, event.time_ms)
        if without and found:
            taken = without.items()
            return [sides for sides in found if not any(sides[place] in rows for place, rows in taken)]
        return found

    def product(self) -> list[Sides]:
        return [sides for event in self.stores[0].content() for sides in self.of_event(0, event)]

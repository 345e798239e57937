"""A join whose joined rows are not kept: they pass. Only the rows of its sources stay, in the indexes that
its compiled text searches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sql.algebra.event import Delta, Event
from sql.algebra.join.chain import JoinLoops
from sql.algebra.join.inner import Sides
from sql.algebra.join.join_sources import JoinSources
from sql.algebra.join.store import Pulled, Rows
from sql.codegen.functions import FunctionSet
from sql.plan.logical import Plan
from sql.rows import Shape


class Passing(JoinSources):
    """The rows of the sources of a join, beside the functions that its text calls."""

    def __init__(
        self,
        plan: Plan,
        functions: FunctionSet,
        shape: Shape,
        pulled: Mapping[int, Pulled],
        kept: Sequence[int],
        chains: Sequence[JoinLoops],
    ) -> None:
        """`kept`: sources whose rows are kept here. `chains`: how the text finds the partners of the rows of
        each source."""
        super().__init__(plan, functions, shape, pulled)
        finders = [find for chain in chains for find in chain.opened(self.stores)]
        changers = [change for place in kept for change in self._changers(place)]
        self.opened = (*changers, *finders)
        """The functions that the text calls, in the order of `opened_names`."""

    def _changers(self, place: int) -> tuple[Any, Any]:
        store = self.stores[place]
        assert isinstance(store, Rows)
        return store.add, store.remove

    def change(self, changes: Mapping[int, Delta]) -> Mapping[int, Delta] | None:
        """The changes themselves, of which the text makes rows; None where there is none."""
        return changes or None

    def content(self) -> Iterable[Event]:
        """The joined rows of the rows that are there, in the order in which the last of each came."""
        if self.drivers:
            return ()
        found = sorted(self.way().product(), key=_last)
        return [
            Event(tuple([None if side is None else side.row for side in sides]), _time(sides), -1)
            for sides in found
        ]


def opened_names(kept: Iterable[int], chains: Iterable[JoinLoops]) -> list[str]:
    """The names, in the text, of the functions that change the sources' rows and find partners."""
    changers = [f"{verb}_{place}" for place in kept for verb in ("add", "remove")]
    return [*changers, *(name for chain in chains for name in chain.finders)]


FEW = 8
"""So many events are looked through one by one."""


def sides_of(changes: Mapping[int, Delta], width: int) -> Iterator[Collection[Event]]:
    """The rows that came and the rows that left, source by source, as the text takes them."""
    for place in range(width):
        for side in changes.get(place, Delta()):
            yield side if len(side) <= FEW else dict.fromkeys(side)


def _last(sides: Sides) -> int:
    return max(event.seq for event in sides if event is not None)


def _time(sides: Sides) -> int:
    return max(event.time_ms for event in sides if event is not None)

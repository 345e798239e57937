"""A join whose joined rows are not kept: they pass. Only the rows of its sources stay, in the indexes that
its compiled text searches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from sql.algebra.event import Delta, Event
from sql.algebra.join.chain import JoinLoops
from sql.algebra.join.inner import Sides
from sql.algebra.join.join_sources import JoinCode, JoinSources
from sql.algebra.join.store import Pulled
from sql.errors import Fail
from sql.plan.logical import Plan


class Passing(JoinSources):
    """The rows of the sources of a join, beside the functions that its text calls."""

    def __init__(
        self,
        plan: Plan,
        code: JoinCode,
        pulled: Mapping[int, Pulled],
        fail: Fail,
        chains: Mapping[int, JoinLoops],
    ) -> None:
        """`chains`: how the text finds the partners of the rows of each source whose events make rows."""
        super().__init__(plan, code, pulled, fail)
        self.starts = tuple(chains)
        self.finders = tuple([find for chain in chains.values() for find in chain.opened(self.stores)])
        """The functions that the text calls, in the order of its loops."""

    def change(self, changes: Mapping[int, Delta]) -> Mapping[int, Delta] | None:
        """The changes themselves, of which the text makes rows; None where there is none."""
        self.apply(changes)
        return changes or None

    def sides(self, changes: Mapping[int, Delta]) -> Iterator[Collection[Event]]:
        """The rows that came, and in an outer join those that left, source by source, as the text takes
        them."""
        for place in self.starts:
            for side in changes.get(place, Delta())[: 2 if self.is_outer else 1]:
                yield dict.fromkeys(side)

    def content(self) -> Iterable[Event]:
        """The joined rows of the rows that are there, in the order in which the last of each came."""
        if self.drivers:
            return ()
        found = sorted(self.way().product(), key=_last)
        return [
            Event(tuple([None if side is None else side.row for side in sides]), _time(sides), -1)
            for sides in found
        ]


def _last(sides: Sides) -> int:
    return max(event.seq for event in sides if event is not None)


def _time(sides: Sides) -> int:
    return max(event.time_ms for event in sides if event is not None)

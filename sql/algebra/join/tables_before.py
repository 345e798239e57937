"""Rows joined before a step of an outer join that hold rows of tables only.

Nothing of a table arrives, so no step is told of a table's row that stands beside NULL because no event has
come that joins with it. A later step looks such rows up for each event of its source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sql.algebra.event import Event
from sql.algebra.join.inner import Sides
from sql.algebra.join.store import Pulled, Store
from sql.plan.clauses import JoinPlan

Beside = Callable[[Event], list[Sides]]
"""The joined rows, of tables only, that stand beside an event of a source."""


def exist_before(joins: Sequence[JoinPlan], place: int, stores: Sequence[Store]) -> bool:
    """True if sources before `place`, some of them tables, may give rows that hold rows of tables only."""
    if isinstance(stores[place], Pulled) or all(isinstance(store, Pulled) for store in stores[:place]):
        return False
    possible = isinstance(stores[0], Pulled)
    for join, store in zip(joins[: place - 1], stores[1:], strict=False):
        stays = possible and join.keeps_left
        possible = (possible or join.keeps_right) if isinstance(store, Pulled) else stays
    return possible


def only_the_first(place: int, stores: Sequence[Store]) -> bool:
    """True if the first source is the only table before `place`."""
    return [isinstance(store, Pulled) for store in stores[:place]] == [True] + [False] * (place - 1)


def of_tables(rows: Sequence[Sides], stores: Sequence[Store]) -> list[Sides]:
    """Those of these rows that hold rows of tables only, with events of the query."""
    return [
        tuple([_own(side, store) for side, store in zip(sides, stores, strict=False)])
        for sides in rows
        if any(sides)
        and all(side is None or isinstance(store, Pulled) for side, store in zip(sides, stores, strict=False))
    ]


def _own(side: Event | None, store: Store) -> Event | None:
    return store.own(side) if side is not None and isinstance(store, Pulled) else None


def is_part(sides: Sides, longer: Sides) -> bool:
    """True if each row in `sides` stands at its place in `longer` too."""
    pairs = zip(sides, longer, strict=False)
    return all(side is None or (other is not None and side.row == other.row) for side, other in pairs)


def values(sides: Sides) -> list[object]:
    """The values of a joined row, to compare rows that were looked up at different times."""
    return [None if side is None else side.row for side in sides]

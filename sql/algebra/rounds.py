"""Rounds through the groups of windows, in which what waits in them is folded:
some groups after each batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

PENDING_MAX, PENDING_PER_GROUP = 16_384, 16
"""The values that may wait before all are folded: a fixed number, and for each group about as many as take
the room of its accumulators, so that a million small groups need none."""

FOLDED_AT_ONCE, FOLDED_PER_EVENT = 4_096, 4
"""The values folded after a batch, so that none waits for a million groups; and the least number for each of
its events, so that a round ends long before as many values wait again."""

GROUP_VALUES = 8
"""Folding a group costs as much as so many values, beside those it holds."""


def waiting_max(parts: Iterable[Any]) -> int:
    """The number of values that may wait in these instances of a window."""
    return PENDING_MAX + PENDING_PER_GROUP * sum(len(p.groups) for p in parts)


class Round:
    """Folds the groups that there were when it began."""

    def __init__(self, parts: Iterable[Any], fold: Callable[[Any, Hashable, list[Any]], object]) -> None:
        """`fold` gets the instance, the key and the group."""
        self._left: Iterator[tuple[Any, Hashable]] = ((p, key) for p in parts for key in list(p.groups))
        self._fold = fold
        self._came = 0

    def go_on(self, came: int) -> bool:
        """Fold the next groups; whether there are more. `came`: events since the round began."""
        left = max(FOLDED_AT_ONCE, FOLDED_PER_EVENT * (came - self._came))
        self._came = came
        for p, key in self._left:
            group = p.groups.get(key)
            if group is not None:  # its window may have closed
                left -= len(group) + GROUP_VALUES
                self._fold(p, key, group)
                if left <= 0:
                    return True
        return False

"""Rounds fold the values that wait in the groups of windows: some groups after each batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

PENDING_MAX, PENDING_PER_GROUP = 16_384, 16
"""The values that may wait before a round begins: a fixed number, and a number for each group. The values of
a small group take as much memory as its accumulators would, so a million small groups need no round."""

FOLDED_AT_ONCE, FOLDED_PER_EVENT = 4_096, 4
"""The values folded after a batch: so few that no batch waits for a million groups, and several for each
event of the batch, so that a round ends before the next one is due."""

GROUP_VALUES = 8
"""The cost of folding a group, beside that of its values, as a number of values."""


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

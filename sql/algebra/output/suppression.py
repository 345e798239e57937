"""The pause of a group in `output first`, after a row of it was emitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from sql.algebra.event_store import pack_key, unpack_key
from sql.algebra.stored import Form, Layout, Stored
from sql.types import Saved

MARKS = Form(
    lambda marks: [(pack_key(key), mark) for key, mark in marks.items()],
    lambda state: {unpack_key(key): mark for key, mark in state},
)
"""The keys of groups, and a mark of each."""

SWEEP_MIN = 64
"""So many marks that no longer hold may stay."""


class Suppression(Stored, ABC):
    """Base of the pauses: keeps a mark for each group of which a row was emitted."""

    stored: ClassVar[Layout] = (("marks", MARKS),)

    def __init__(self) -> None:
        self.marks: dict[Any, Any] = {}
        """Of each group that a row went out of."""

    @abstractmethod
    def passes(self, key: object, now: int, *, is_new: bool) -> bool:
        """True if an event of a group goes out, which makes it mute. `is_new`: it came, it did not leave."""


class SuppressionUntil(Suppression):
    """Until an instant; it is the mark of a group."""

    def __init__(self, until_ms: Callable[[int], int]) -> None:
        super().__init__()
        self.until_ms = until_ms
        self.marks_max = SWEEP_MIN
        """With more marks those of groups that are mute no longer are dropped."""

    def passes(self, key: object, now: int, *, is_new: bool) -> bool:
        mark = self.marks.get(key)
        if mark is not None and now < mark:
            return False
        if len(self.marks) > self.marks_max:
            self.marks = {each: until for each, until in self.marks.items() if now < until}
            self.marks_max = SWEEP_MIN + 2 * len(self.marks)
        self.marks[key] = self.until_ms(now)
        return True


class SuppressionForEvents(Suppression):
    """Until so many of its events have come, or have left; both numbers are the mark of a group."""

    def __init__(self, count: Callable[[], int]) -> None:
        super().__init__()
        self.count = count

    def passes(self, key: object, now: int, *, is_new: bool) -> bool:
        mark = self.marks.get(key)
        if mark is not None:
            came, left = mark[0] + is_new, mark[1] + (not is_new)
            if max(came, left) < self.count():
                self.marks[key] = came, left
                return False
        self.marks[key] = 0, 0
        return True

    def restore(self, state: Saved) -> None:
        super().restore(state)
        # Earlier versions counted those that came and those that left together.
        self.marks = {key: (mark, 0) if isinstance(mark, int) else mark for key, mark in self.marks.items()}

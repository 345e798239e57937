"""The bound on how many events a query retains (`maxWindowEvents`)."""

from __future__ import annotations

from collections.abc import Callable

from sql.errors import DataError


class Budget:
    """Bounds how many events a query retains (`maxWindowEvents`).

    The events are counted only when those that came since the last count could have filled the bound. Once it
    is reached, a sixteenth of the bound is refused before they are counted again, so that counting stays
    cheap.
    """

    def __init__(self, limit: int, retained: Callable[[], int]) -> None:
        """`retained` counts the events that the query retains."""
        self.limit = limit
        self.retained = retained
        self.room = limit
        self.refusing = 0

    def takes(self, count: int) -> bool:
        """Take in so many events at once if they are surely not too many; else `admit`
        has to say so of each."""
        if self.refusing:
            return False
        if self.room < count:
            self.room = self.limit - self.retained()
        if self.room < count:
            return False
        self.room -= count
        return True

    def admit(self) -> None:
        """Raise DataError where one more event would be too many."""
        self.room -= 1
        if self.room >= 0:
            return
        if self.refusing == 0:
            self.room = self.limit - self.retained() - 1
            if self.room >= 0:
                return
            self.refusing = self.limit // 16
        else:
            self.refusing -= 1
        raise DataError(f"the rule retains {self.limit} events; raise maxWindowEvents or shorten its window")

    def snapshot(self) -> tuple[int, int, int]:
        return self.limit, self.room, self.refusing

    def restore(self, state: tuple[int, int, int] | None) -> None:
        """Go on as before the snapshot; with another bound, or none stored, the next
        event makes it count anew."""
        if state is not None and state[0] == self.limit:
            self.room, self.refusing = state[1:]
        else:
            self.room = 0

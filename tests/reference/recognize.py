"""match_recognize by trying every reading of every run of rows, as slowly as it says.

A reading is a tuple of (variable, row number); conditions are Python functions.
For each row that arrives, each earlier row is tried as the first one of a match that ends here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from sql.syntax import RowChoice, RowPattern, RowPermutation, RowSequence, RowTimes, RowVariable

Row = dict[str, Any]
Reading = tuple[tuple[str, int], ...]
Condition = Callable[[Sequence[Row], int, Reading], bool]
"""Whether a row, of these and with this number, fits a variable behind a reading."""


class Rows:
    """The rows of one partition; `take` gives the matches that a row completes."""

    def __init__(
        self, pattern: RowPattern, conditions: Mapping[str, Condition], *, skip: str, all_matches: bool
    ) -> None:
        self.pattern = pattern
        self.conditions = conditions
        self.skip = skip
        self.all_matches = all_matches
        self.rows: list[Row] = []
        self.ended = -1
        """The newest row at which no match may begin any more."""

    def take(self, row: Row) -> list[Reading]:
        """The matches that end with the row, the earliest first."""
        self.rows.append(row)
        last = len(self.rows) - 1
        completed: list[Reading] = []
        skipped = self.ended
        for first in range(self.ended + 1, len(self.rows)):
            readings = [
                reading
                for reading in self._readings(self.pattern, (), first)
                if len(reading) == last + 1 - first
            ]
            found = list(dict.fromkeys(readings))
            if found and self.all_matches:
                completed += found
            elif found and first > skipped:
                completed.append(found[0])
            if found and (self.all_matches or completed[-1] == found[0]):
                skipped = max(
                    skipped, {"past last row": last, "to next row": first, "to current row": -1}[self.skip]
                )
        self.ended = skipped
        return completed

    def _readings(self, pattern: RowPattern, before: Reading, first: int) -> Iterator[Reading]:
        """The readings that go on from one by this pattern, the preferred first."""
        if isinstance(pattern, RowVariable):
            at = first + len(before)
            condition = self.conditions.get(pattern.name)
            if at < len(self.rows) and (condition is None or condition(self.rows, at, before)):
                yield (*before, (pattern.name, at))
        elif isinstance(pattern, RowSequence):
            yield from self._in_turn(pattern.parts, before, first)
        elif isinstance(pattern, RowChoice):
            for part in pattern.parts:
                yield from self._readings(part, before, first)
        elif isinstance(pattern, RowPermutation):
            for order in permutations(pattern.parts):
                yield from self._in_turn(order, before, first)
        else:
            assert isinstance(pattern, RowTimes)
            yield from self._times(pattern, before, first, 0)

    def _in_turn(self, parts: Sequence[RowPattern], before: Reading, first: int) -> Iterator[Reading]:
        if not parts:
            yield before
            return
        for reading in self._readings(parts[0], before, first):
            yield from self._in_turn(parts[1:], reading, first)

    def _times(self, pattern: RowTimes, before: Reading, first: int, done: int) -> Iterator[Reading]:
        may_end = done >= pattern.low
        if may_end and pattern.reluctant:
            yield before
        if pattern.high is None or done < pattern.high:
            for reading in self._readings(pattern.operand, before, first):
                if not may_end or len(reading) > len(before):  # what takes no row is not repeated
                    yield from self._times(pattern, reading, first, done + 1)
        if may_end and not pattern.reluctant:
            yield before

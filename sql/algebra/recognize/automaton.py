"""A row pattern as an automaton: places that each take one row, and which places may
follow, the preferred first.

The order of what follows is that of SQL: the left alternative first, a greedy repetition goes on before it
ends, a reluctant one ends before it goes on. Walked through in this order, the first reading that is complete
is the preferred.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import permutations
from typing import NamedTuple

from sql.syntax import RowChoice, RowPattern, RowPermutation, RowSequence, RowTimes, RowVariable

END = -1
"""Follows a place where the whole pattern may end."""


class Edge(NamedTuple):
    """A place that may take the next row."""

    place: int
    variable: int
    bit: int
    """The bit of the place in sets of places."""
    covers: int
    """The places after which nothing may follow that may not follow this one: a reading that has come to
    one of them finds nothing that one at this place does not find."""
    ends: bool
    """True if the pattern may be complete with the row."""
    goes_on: bool
    """True if another row may be added."""


class RecognizeProgram:
    """`variables[p]`: the variable of place p. `first` and `after[p]`: what may follow, in order of
    preference; `start` is the place of a reading without rows."""

    def __init__(self, pattern: RowPattern, places: dict[str, int]) -> None:
        self.places = places
        self.variables: list[int] = []
        self._jumps: dict[int, tuple[int, ...]] = {}
        """Steps without a row: where each leads, in order of preference."""
        self._steps = 0
        self._next: dict[int, int] = {}
        """The step behind each place."""
        self._place_of: dict[int, int] = {}
        end = self._step()
        entry = self._compile(pattern, end)
        self._end = end
        self.first = self._reach(entry)
        self.after = [self._reach(self._next[place]) for place in range(len(self.variables))]
        self.start = len(self.variables)

    def edges(self, *, may_cover: bool) -> list[tuple[Edge, ...]]:
        """The places that may take the row after that of each place, and of `start`.

        `may_cover` False: each reading is reported, so no place covers another.
        """
        covers = self._covers() if may_cover else [0] * self.start
        found = [
            Edge(
                place,
                self.variables[place],
                1 << place if may_cover else 0,
                covers[place],
                END in after,
                any(following != END for following in after),
            )
            for place, after in enumerate(self.after)
        ]
        return [
            tuple(found[following] for following in after if following != END)
            for after in (*self.after, self.first)
        ]

    def _covers(self) -> list[int]:
        """For each place the set of those after which nothing else may follow than after it."""
        before: dict[int, list[int]] = {}
        for place, after in enumerate(self.after):
            for following in after:
                before.setdefault(following, []).append(place)
        found = []
        for after in self.after:
            shared = Counter(place for following in after for place in before[following])
            found.append(
                sum(1 << place for place, count in shared.items() if count == len(self.after[place]))
            )
        return found

    def _step(self, *leads: int) -> int:
        self._steps += 1
        if leads:
            self._jumps[self._steps] = leads
        return self._steps

    def _compile(self, pattern: RowPattern, then: int) -> int:
        """The step at which a part begins that goes on at `then`."""
        if isinstance(pattern, RowVariable):
            step = self._step()
            self._place_of[step] = len(self.variables)
            self._next[len(self.variables)] = then
            self.variables.append(self.places[pattern.name])
            return step
        if isinstance(pattern, RowSequence):
            return self._in_turn(pattern.parts, then)
        if isinstance(pattern, RowChoice):
            return self._step(*(self._compile(part, then) for part in pattern.parts))
        if isinstance(pattern, RowPermutation):
            return self._step(*(self._in_turn(order, then) for order in permutations(pattern.parts)))
        assert isinstance(pattern, RowTimes)
        return self._times(pattern, then)

    def _in_turn(self, parts: Iterable[RowPattern], then: int) -> int:
        for part in reversed(tuple(parts)):
            then = self._compile(part, then)
        return then

    def _times(self, pattern: RowTimes, then: int) -> int:
        """`low` times for sure, then an endless loop or as many more as are allowed."""
        entry, left = then, pattern.low
        if pattern.high is None:
            loop = self._step(0)
            body = self._compile(pattern.operand, loop)
            self._jumps[loop] = (then, body) if pattern.reluctant else (body, then)
            entry = loop
            if left:
                entry, left = body, left - 1  # the last time for sure is the first one of the loop
        else:
            for _ in range(pattern.high - pattern.low):
                body = self._compile(pattern.operand, entry)
                entry = self._step(then, body) if pattern.reluctant else self._step(body, then)
        for _ in range(left):
            entry = self._compile(pattern.operand, entry)
        return entry

    def _reach(self, step: int) -> tuple[int, ...]:
        """The places, and END, that a step leads to without a row, the preferred first."""
        found: dict[int, None] = {}
        seen: set[int] = set()

        def visit(at: int) -> None:
            if at in seen:
                return
            seen.add(at)
            if at == self._end:
                found[END] = None
            elif at in self._place_of:
                found[self._place_of[at]] = None
            else:
                for lead in self._jumps[at]:
                    visit(lead)

        visit(step)
        return tuple(found)

"""The partitions of a match_recognize: rows and time in, matches as rows out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import tzinfo
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

from sql.algebra.pattern.snapshot import Packer, Unpacker, unpack_key
from sql.algebra.recognize.attempts import Attempt, Attempts, Fits, Match, Reading, Rules, Values
from sql.algebra.recognize.program import Program
from sql.calendar.period import Period
from sql.plan.recognize import RecognizePlan

Key = Callable[[Any], Hashable]
Row = tuple[int, Any, int]
"""A row with its number and its instant."""


class Recognizer:
    """Drive it with `change` as the window changes and `advance` as time goes; both give the
    values of the matches."""

    def __init__(
        self,
        plan: RecognizePlan,
        *,
        fits: dict[int, Fits],
        key: Key,
        interval: Period | None,
        zone: tzinfo,
        most: int,
        windowed: bool,
    ) -> None:
        self.plan = plan
        program = Program(plan.pattern, {item.name: place for place, item in enumerate(plan.variables)})
        self.rules = Rules(program, tuple(item.is_list for item in plan.variables), fits, plan.previous)
        self.fits = fits
        self.key = key
        self.interval = interval
        self.zone = zone
        self.most = most
        """How many attempts may live; one more is not begun."""
        self.windowed = windowed
        self.partitions: dict[Hashable, Attempts] = {}
        self.live = 0
        """Attempts that live, in all partitions."""
        self.dues: list[tuple[int, int, Hashable]] = []
        """A heap of (due, first row, partition) of the attempts; what has ended is dropped when it
        surfaces."""
        self.counts = {"attempts_dropped": 0, "matches": 0}
        self.is_simple = interval is None and not windowed
        """Whether rows come one by one, and none leaves."""

    # --- driving --------------------------------------------------------------------------------------------

    def change(self, inserted: Iterable[Row], removed: Iterable[Row], now: int) -> list[Values]:
        """Rows leave, then rows come."""
        left: dict[Hashable, set[int]] = {}
        for number, row, _ in removed:
            left.setdefault(self.key(row), set()).add(number)
        for key, numbers in left.items():
            partition = self.partitions.get(key)
            if partition is not None:
                before = len(partition.live)
                partition.remove(numbers)
                self._settle(key, partition, before)
        told = self._read(list(inserted))
        self.counts["matches"] += len(told)
        return told

    def enter(self, number: int, row: Any, at: int) -> list[Values]:
        """One row, where no window takes rows out and no interval holds matches."""
        key = self.key(row)
        partition = self.partitions.get(key)
        if partition is None:
            partition = Attempts(self.rules)
        before = len(partition.live)
        may_begin = self.live < self.most
        found = partition.read(number, row, at, may_begin=may_begin)
        self.partitions[key] = partition
        self.counts["attempts_dropped"] += not may_begin
        told = self._told(partition, found) if found else []
        self._settle(key, partition, before)
        if not told:
            return []
        if self.plan.all_matches:
            told.sort(key=_row_that_completes)
        self.counts["matches"] += len(told)
        return [match.values for match in told]

    def _read(self, rows: Sequence[Row]) -> list[Values]:
        """Rows that come together are read before any match is chosen; all matches come in order of their
        last rows."""
        found: dict[Hashable, dict[int, tuple[Attempt, list[Match]]]] = {}
        for number, row, at in rows:
            key = self.key(row)
            partition = self.partitions.get(key)
            if partition is None:
                partition = self.partitions[key] = Attempts(self.rules)
            before = len(partition.live)
            may_begin = self.live < self.most
            self.counts["attempts_dropped"] += not may_begin
            keeps = self.interval is not None
            complete = found.setdefault(key, {})
            for attempt, matches in partition.read(number, row, at, may_begin=may_begin, keeps=keeps):
                known = complete.setdefault(attempt.first, (attempt, []))[1]
                known += matches
            if self.windowed:
                partition.rows[number] = (row, at)
            if keeps:
                self._wait(key, partition)
            self.live += len(partition.live) - before
        told: list[Match] = []
        for key, by_first in found.items():
            partition = self.partitions[key]
            before = len(partition.live)
            in_order = [by_first[first] for first in sorted(by_first)]
            told += (
                self._told(partition, in_order) if self.interval is None else self._held(partition, in_order)
            )
            self._settle(key, partition, before)
        if self.plan.all_matches:
            told.sort(key=_row_that_completes)
        return [match.values for match in told]

    def _settle(self, key: Hashable, partition: Attempts, before: int) -> None:
        """Count the attempts of a partition again, and forget it where nothing can come of it.

        Rows that are kept for `prev` alone are forgotten where more partitions than attempts may live.
        """
        self.live += len(partition.live) - before
        is_idle = not partition.live and not partition.rows
        if is_idle and (not self.plan.previous or len(self.partitions) > self.most):
            del self.partitions[key]

    def _told(self, partition: Attempts, found: Sequence[tuple[Attempt, list[Match]]]) -> list[Match]:
        """The matches, the earliest attempt first, as far as skipping lets them be told."""
        told: list[Match] = []
        skipped = -1
        for attempt, matches in found:
            if attempt.first > skipped or self.plan.all_matches:
                chosen = self._chosen(matches)
                told += chosen
                skipped = max(skipped, *(self._skipped(match) for match in chosen))
        partition.drop(skipped)
        return told

    def _chosen(self, matches: list[Match]) -> list[Match]:
        """All, or of those that end last the preferred."""
        if self.plan.all_matches:
            return matches
        last = max(match.last for match in matches)
        return [next(match for match in matches if match.last == last)]

    def _skipped(self, match: Match) -> int:
        """The row up to which a match ends the attempts that began there."""
        return {"past last row": match.last, "to next row": match.first, "to current row": -1}[self.plan.skip]

    # --- intervals ------------------------------------------------------------------------------------------

    def _wait(self, key: Hashable, partition: Attempts) -> None:
        """Note when the interval of the newest attempt ends."""
        newest = partition.live[-1] if partition.live else None
        if newest is not None and newest.due is None and self.interval is not None:
            newest.due = self.interval.add(newest.begun, self.zone)
            heappush(self.dues, (newest.due, newest.first, key))

    def _held(self, partition: Attempts, found: Sequence[tuple[Attempt, list[Match]]]) -> list[Match]:
        """Matches wait for the end of their interval, or for the row after which nothing can be added."""
        for attempt, matches in found:
            attempt.complete = self._chosen([*attempt.complete, *matches])
        if not self.plan.or_terminated:
            return []
        ended = [attempt for attempt in partition.live if _is_terminated(attempt)]
        return [match for attempt in ended for match in self._end(partition, attempt)]

    def _end(self, partition: Attempts, attempt: Attempt) -> list[Match]:
        """The end of an attempt: its matches are told, unless a match before has ended it."""
        if all(other is not attempt for other in partition.live):
            return []
        partition.live = [other for other in partition.live if other is not attempt]
        if attempt.complete:
            partition.drop(self._skipped(attempt.complete[-1]))
        return attempt.complete

    def deadline(self) -> int | None:
        """When the interval of an attempt ends next."""
        while self.dues and self._attempt(self.dues[0]) is None:
            heappop(self.dues)
        return self.dues[0][0] if self.dues else None

    def _attempt(self, entry: tuple[int, int, Hashable]) -> Attempt | None:
        partition = self.partitions.get(entry[2])
        return (
            next((a for a in partition.live if a.first == entry[1]), None) if partition is not None else None
        )

    def advance(self, now: int) -> list[Values]:
        """End the attempts whose interval is over by now, in order of their ends."""
        told: list[Values] = []
        while (due := self.deadline()) is not None and due <= now:
            entry = heappop(self.dues)
            attempt, partition = self._attempt(entry), self.partitions[entry[2]]
            assert attempt is not None
            before = len(partition.live)
            told += [match.values for match in self._end(partition, attempt)]
            self._settle(entry[2], partition, before)
        self.counts["matches"] += len(told)
        return told

    def present(self, rows: Iterable[Row]) -> list[Values]:
        """The matches in a content, read anew."""
        other = Recognizer(
            self.plan,
            fits=self.fits,
            key=self.key,
            interval=None,
            zone=self.zone,
            most=self.most,
            windowed=False,
        )
        return other.change(rows, (), 0)

    def counters(self) -> dict[str, int]:
        """What it holds and what has happened."""
        return {"attempts": self.live, **self.counts}

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain data."""
        packer = Packer()
        partitions = [
            [packer.key(key), self._packed(partition, packer)] for key, partition in self.partitions.items()
        ]
        return {
            "partitions": partitions,
            "rows": packer.packed,
            "bindings": packer.bindings,
            "counts": dict(self.counts),
        }

    @staticmethod
    def _packed(partition: Attempts, packer: Packer) -> Any:
        attempts = [
            [
                attempt.first,
                attempt.begun,
                attempt.due,
                [[place, packer.binding(values)] for place, values in attempt.readings],
                [[match.first, match.last, packer.binding(match.values)] for match in attempt.complete],
            ]
            for attempt in partition.live
        ]
        recent = [[number, packer.rows([row])[0]] for number, row in partition.recent]
        rows = [[number, packer.rows([row])[0], at] for number, (row, at) in partition.rows.items()]
        return [attempts, recent, rows]

    def restore(self, state: dict[str, Any], make_row: Callable[[dict[str, Any]], Any]) -> None:
        """Put a snapshot back."""
        unpacker = Unpacker(state["rows"], state["bindings"], make_row)
        self.partitions.clear()
        self.dues.clear()
        self.counts.update(state["counts"])
        for key, part in state["partitions"]:
            self._put_back(unpack_key(key), part, unpacker)
        self.live = sum(len(partition.live) for partition in self.partitions.values())

    def _put_back(self, key: Hashable, state: Any, unpacker: Unpacker) -> None:
        def values(place: int) -> Values:
            return tuple(
                tuple(value) if value.__class__ is list else value for value in unpacker.binding(place)
            )

        partition = self.partitions[key] = Attempts(self.rules)
        attempts, recent, rows = state
        for first, begun, due, readings, complete in attempts:
            attempt = Attempt(
                first,
                begun,
                [Reading(place, values(found)) for place, found in readings],
                [Match(start, last, values(found)) for start, last, found in complete],
                due,
            )
            partition.live.append(attempt)
            if due is not None:
                heappush(self.dues, (due, first, key))
        partition.recent.extend((number, unpacker.rows([place])[0]) for number, place in recent)
        partition.rows = {number: (unpacker.rows([place])[0], at) for number, place, at in rows}


_row_that_completes = attrgetter("last")


def _is_terminated(attempt: Attempt) -> bool:
    """Whether nothing can be added to what has matched: no reading goes on, or one has
    reached the pattern's end."""
    return bool(attempt.complete) and (
        not attempt.readings or any(match.is_final for match in attempt.complete)
    )

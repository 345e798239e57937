"""match_recognize over rows that leave a window, or whose matches wait for the end of an interval."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import tzinfo
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Any

from sql.algebra.recognize.attempts import Attempt, Attempts, Match, Reading, Rules
from sql.algebra.recognize.recognizer import Fail, Key, RecognizerBase, Row
from sql.calendar.period import Period
from sql.codegen.functions import DATA_ERRORS
from sql.plan.recognize_plan import RecognizePlan

Found = dict[Hashable, dict[int, tuple[Attempt, list[Match]]]]
"""The matches of a change, by partition and first row."""


class HeldRecognizer(RecognizerBase[Attempts]):
    """Drive it with `change` as the window changes and `advance` as time goes; both give the readings of the
    matches."""

    make = Attempts

    def __init__(
        self,
        plan: RecognizePlan,
        rules: Rules,
        key: Key,
        most: int,
        *,
        interval: Period | None,
        zone: tzinfo,
        windowed: bool,
    ) -> None:
        super().__init__(plan, rules, key, most)
        self.interval = interval
        self.zone = zone
        self.windowed = windowed
        self.dues: list[tuple[int, int, Hashable]] = []
        """A heap of (due, first row, partition) of the attempts; an ended one is dropped when it
        surfaces."""

    # --- driving --------------------------------------------------------------------------------------------

    def change(self, inserted: Sequence[Row], removed: Sequence[Row], now: int, fail: Fail) -> list[Reading]:
        """Remove rows, then add rows. `fail` is called for those that cannot be evaluated (not read)."""
        left: dict[Hashable, set[int]] = {}
        for number, row, _ in removed:
            try:
                left.setdefault(self.key(row), set()).add(number)
            except DATA_ERRORS:  # it was reported when the row came
                continue
        for key, numbers in left.items():
            partition = self.partitions.get(key)
            if partition is not None:
                before = len(partition.live)
                partition.remove(numbers)
                self._settle(key, partition, before)
        found: Found = {}
        for number, row, at in inserted:
            try:
                self._read(number, row, at, found)
            except DATA_ERRORS as error:
                fail(row, error)
        return self._matches(found)

    def _read(self, number: int, row: object, at: int, found: Found) -> None:
        """Lead a row through the attempts of its partition. Rows that come together are read before any
        match is chosen."""
        key = self.key(row)
        partition = self.partitions.get(key)
        if partition is None:
            partition = Attempts(self.rules)
        before, keeps = len(partition.live), self.interval is not None
        may_begin = self.live < self.most
        read = partition.read(number, row, at, may_begin=may_begin, keeps=keeps)
        self.partitions[key] = partition
        self.counts["attempts_dropped"] += not may_begin
        for attempt in partition.live:
            self.counts["attempts_dropped"] += max(0, len(attempt.readings) - self.most)
            del attempt.readings[self.most :]
        complete = found.setdefault(key, {})
        for attempt, matches in read:
            complete.setdefault(attempt.first, (attempt, []))[1].extend(matches)
        if self.windowed:
            partition.rows[number] = (row, at)
        if keeps:
            self._wait(key, partition)
        self.live += len(partition.live) - before

    def _matches(self, found: Found) -> list[Reading]:
        """The matches of a change, in order of their last rows."""
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
            told.sort(key=attrgetter("last"))
        return self._counted(told)

    def _counted(self, told: list[Match]) -> list[Reading]:
        self.counts["matches"] += len(told)
        return [match.reading for match in told]

    def _settle(self, key: Hashable, partition: Attempts, before: int) -> None:
        """Count the attempts of a partition again, and forget it where nothing can come of it.

        Rows that are kept for `prev` alone are forgotten where more partitions than attempts may live.
        """
        self.live += len(partition.live) - before
        if partition.is_idle and (not self.rules.depth or len(self.partitions) > self.most):
            self.counts["partitions_forgotten"] += self.rules.depth > 0
            del self.partitions[key]

    def _told(self, partition: Attempts, found: Sequence[tuple[Attempt, list[Match]]]) -> list[Match]:
        """The matches, the earliest attempt first, that skipping allows."""
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
        ended = [attempt for attempt in partition.live if self._is_terminated(attempt)]
        return [match for attempt in ended for match in self._end(partition, attempt)]

    def _is_terminated(self, attempt: Attempt) -> bool:
        """True if nothing can be added to what has matched: no reading goes on, or one has reached the
        pattern's end."""
        final = self.rules.final
        return bool(attempt.complete) and (
            not attempt.readings or any(match.reading[1] in final for match in attempt.complete)
        )

    def _end(self, partition: Attempts, attempt: Attempt) -> list[Match]:
        """End an attempt: its matches are emitted, unless an earlier match has ended it."""
        if all(other is not attempt for other in partition.live):
            return []
        partition.live = [other for other in partition.live if other is not attempt]
        if attempt.complete:
            partition.drop(self._skipped(attempt.complete[-1]))
        return attempt.complete

    def next_deadline(self) -> int | None:
        """When the interval of an attempt ends next."""
        while self.dues and self._attempt(self.dues[0]) is None:
            heappop(self.dues)
        return self.dues[0][0] if self.dues else None

    def _attempt(self, entry: tuple[int, int, Hashable]) -> Attempt | None:
        partition = self.partitions.get(entry[2])
        if partition is None:
            return None
        return next((attempt for attempt in partition.live if attempt.first == entry[1]), None)

    def advance(self, now: int) -> list[Reading]:
        """End the attempts whose interval is over by now, in order of their ends."""
        told: list[Match] = []
        while (due := self.next_deadline()) is not None and due <= now:
            entry = heappop(self.dues)
            attempt, partition = self._attempt(entry), self.partitions[entry[2]]
            assert attempt is not None
            before = len(partition.live)
            told += self._end(partition, attempt)
            self._settle(entry[2], partition, before)
        return self._counted(told)

    def present(self, rows: Iterable[Row], fail: Fail) -> list[Reading]:
        """The matches in a content, read anew."""
        other = HeldRecognizer(
            self.plan, self.rules, self.key, self.most, interval=None, zone=self.zone, windowed=False
        )
        return other.change(list(rows), (), 0, fail)

    # --- state ----------------------------------------------------------------------------------------------

    def restore(self, state: dict[str, Any], make_row: Callable[[dict[str, Any]], Any]) -> None:
        super().restore(state, make_row)
        self.dues = [
            (attempt.due, attempt.first, key)
            for key, partition in self.partitions.items()
            for attempt in partition.live
            if attempt.due is not None
        ]
        heapify(self.dues)

"""match_recognize over rows that leave a window, or whose matches wait for the end of an interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Any

from sql.algebra.recognize.readings import HeldReadings, HeldRow, Match, Reading, Recent, Rules, Waiting
from sql.algebra.recognize.recognizer import RecognizerBase, Row
from sql.codegen.functions import DATA_ERRORS
from sql.errors import Fail

Found = dict[int, list[Match]]
"""The matches of a partition by their first rows."""


class HeldRecognizer(RecognizerBase[HeldReadings]):
    """Drive it with `change` as the window changes and `advance` as time goes; both give the readings of the
    matches."""

    make = HeldReadings

    def __init__(
        self, rules: Rules, fail: Fail, *, ends: Callable[[int], int] | None = None, windowed: bool = False
    ) -> None:
        """`ends`: from the instant of a first row to that at which the interval of its matches ends."""
        super().__init__(rules, fail)
        self.ends = ends
        self.windowed = windowed
        self.dues: list[tuple[int, int, Hashable]] = []
        """A heap of (due, first row, partition) of the attempts; an ended one is dropped when it
        surfaces."""

    # --- driving --------------------------------------------------------------------------------------------

    def change(self, inserted: Sequence[Row], removed: Sequence[Row], now: int) -> list[Reading]:
        """Remove rows, then add rows; those that come together are read before any match is chosen."""
        self._remove(removed)
        found: dict[Hashable, Found] = {}
        for row in inserted:
            self._add(row, now, found)
        completed: list[Match] = []
        for key, by_first in found.items():
            partition = self.partitions[key]
            before = len(partition)
            completed += (
                self._completed(partition, by_first, overlap=self.plan.all_matches)
                if self.ends is None
                else self._terminated(partition)
            )
            self._settle(key, partition, before)
        return self._counted(self._sorted(completed))

    def present(self, content: Iterable[Row]) -> list[Reading]:
        """The matches in a content, read anew. `prev` reads what it read when a row came; skipping holds for
        all matches too."""
        reader = HeldRecognizer(self.rules, self.fail)
        held_rows = (item for held in self.partitions.values() for item in held.rows.items())
        before = {number: row.before for number, row in held_rows}
        found: dict[Hashable, Found] = {}
        for row in content:
            reader._add(row, 0, found, before.get(row[0]))
        completed = [
            match
            for key, by_first in found.items()
            for match in reader._completed(reader.partitions[key], by_first, overlap=False)
        ]
        return [match.reading for match in reader._sorted(completed)]

    def _sorted(self, completed: list[Match]) -> list[Match]:
        """All matches come in order of their last rows."""
        return sorted(completed, key=attrgetter("last")) if self.plan.all_matches else completed

    def _counted(self, completed: list[Match]) -> list[Reading]:
        """The readings of matches that are emitted."""
        self.counts["matches"] += len(completed)
        return [match.reading for match in completed]

    def _settle(self, key: Hashable, partition: HeldReadings, before: int) -> None:
        """Count the attempts of a partition again, and forget it where nothing can come of it.

        Rows that are kept for `prev` alone are forgotten where more partitions than attempts may live.
        """
        self.live += len(partition) - before
        if partition.is_idle and (not self.rules.depth or len(self.partitions) > self.rules.most):
            self.counts["partitions_forgotten"] += self.rules.depth > 0
            del self.partitions[key]

    # --- rows -----------------------------------------------------------------------------------------------

    def _add(self, row: Row, now: int, found: dict[Hashable, Found], before: Recent | None = None) -> None:
        """A row comes, and begins an attempt where one more may live; one that cannot be evaluated is
        reported, and changes nothing. `before`: the rows that `prev` reads; None: those that came before."""
        may_begin = self.live < self.rules.most
        try:
            key = self.rules.key(row[1])
            partition = self.partitions.get(key)
            if partition is None:
                partition = HeldReadings(self.rules)
            live = len(partition)
            recent = partition.recent = before or partition.recent
            matches = self._read(key, partition, row, now, may_begin=may_begin)
        except DATA_ERRORS as error:
            self.fail(row[1], error)
            return
        self.partitions[key] = partition
        self.counts["attempts_dropped"] += not may_begin
        by_first = found.setdefault(key, {})
        for first, more in matches.items():
            by_first.setdefault(first, []).extend(more)
        if self.windowed:
            partition.rows[row[0]] = HeldRow(row[1], now, recent)
        self.live += len(partition) - live

    def _read(self, key: Hashable, partition: HeldReadings, row: Row, at: int, *, may_begin: bool) -> Found:
        """Lead a row that came `at` an instant through the attempts of its partition; the matches that it
        completes, by their first rows. A row that a condition cannot be evaluated for changes nothing."""
        rules, (number, event) = self.rules, row
        readings = partition.readings
        if may_begin:
            readings = [*readings, (number, *rules.begin)]
        live, completed = rules.step(readings, number, event, partition.recent)
        partition.readings = live if len(live) <= self.rules.most else self._bounded(live)
        partition.recent = (event, *partition.recent)[: rules.depth]
        found: Found = {}
        for reading in completed:
            found.setdefault(reading[0], []).append(Match(number, reading))
        if self.ends is not None:
            self._wait(key, partition, number, at, found)
        return found

    def _bounded(self, readings: list[Reading]) -> list[Reading]:
        """The readings, of each attempt as many as may live."""
        counts = Counter[int]()
        kept = []
        for reading in readings:
            counts[reading[0]] += 1
            if counts[reading[0]] <= self.rules.most:
                kept.append(reading)
        self.counts["attempts_dropped"] += len(readings) - len(kept)
        return kept

    def _remove(self, removed: Sequence[Row]) -> None:
        """Rows leave the window: the oldest end what began with them; any other order reads what remains
        anew. What is complete stays, and waits for the end of its interval."""
        left: dict[Hashable, list[int]] = {}
        for number, row in removed:
            try:
                left.setdefault(self.rules.key(row), []).append(number)
            except DATA_ERRORS:  # it was reported when the row came
                continue
        for key, numbers in left.items():
            partition = self.partitions.get(key)
            held = [] if partition is None else [number for number in numbers if number in partition.rows]
            if partition is None or not held:
                continue
            before, oldest = len(partition), list(partition.rows)[: len(held)]
            for number in held:
                del partition.rows[number]
            partition.cut()
            if set(oldest) != set(held):
                self._read_anew(key, partition)
            self._settle(key, partition, before)

    def _read_anew(self, key: Hashable, partition: HeldReadings) -> None:
        waiting = partition.waiting.items()
        partition.waiting = {first: held for first, held in waiting if first not in partition.rows}
        partition.readings, partition.recent = [], self.rules.nothing
        for number, (row, at, _) in partition.rows.items():
            with suppress(*DATA_ERRORS):  # behind another row than when it came: it fits nothing
                self._read(key, partition, (number, row), at, may_begin=True)

    # --- matches --------------------------------------------------------------------------------------------

    def _completed(self, partition: HeldReadings, found: Found, *, overlap: bool) -> list[Match]:
        """The matches, the earliest attempt first, that skipping allows. `overlap`: it allows all of those
        that are complete at once."""
        completed: list[Match] = []
        skipped = -1
        for first in sorted(found):
            if first > skipped or overlap:
                chosen = self._chosen(found[first])
                completed += chosen
                skipped = max(skipped, *(self._skipped(match) for match in chosen))
        partition.end(range(skipped + 1))
        return completed

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

    def _wait(self, key: Hashable, partition: HeldReadings, number: int, at: int, found: Found) -> None:
        """Matches wait for the end of their interval; an attempt lives as long as some do, or readings."""
        assert self.ends is not None
        going_on = {reading[0] for reading in partition.readings}
        if number in going_on or number in found:
            due = self.ends(at)
            partition.waiting[number] = Waiting(due)
            heappush(self.dues, (due, number, key))
        for first, matches in found.items():
            held = partition.waiting[first]
            held.complete = self._chosen([*held.complete, *matches])
        waiting = partition.waiting.items()
        partition.waiting = {first: held for first, held in waiting if held.complete or first in going_on}

    def _terminated(self, partition: HeldReadings) -> list[Match]:
        """The matches of attempts to which nothing can be added, where these need not wait; those whose rows
        have left the window wait."""
        if not self.plan.or_terminated:
            return []
        going_on = {reading[0] for reading in partition.readings}
        ended = [
            first
            for first, held in partition.waiting.items()
            if held.complete
            and (first in partition.rows or not self.windowed)
            and (first not in going_on or held.reaches(self.rules.final))
        ]
        return [match for first in ended for match in self._end(partition, first)]

    def _end(self, partition: HeldReadings, first: int) -> list[Match]:
        """End an attempt: its matches are emitted, unless an earlier match has ended it."""
        held = partition.waiting.get(first)
        if held is None:
            return []
        partition.end((first,))
        if held.complete:
            partition.end(range(self._skipped(held.complete[-1]) + 1))
        return held.complete

    def next_deadline(self) -> int | None:
        """When the interval of an attempt ends next."""
        while self.dues:
            due, first, key = self.dues[0]
            if key in self.partitions and first in self.partitions[key].waiting:
                return due
            heappop(self.dues)
        return None

    def advance(self, now: int) -> list[Reading]:
        """End the attempts whose interval is over by now, in order of their ends."""
        completed: list[Match] = []
        while (due := self.next_deadline()) is not None and due <= now:
            _, first, key = heappop(self.dues)
            partition = self.partitions[key]
            before = len(partition)
            completed += self._end(partition, first)
            self._settle(key, partition, before)
        return self._counted(completed)

    # --- state ----------------------------------------------------------------------------------------------

    def restore(self, state: dict[str, Any], make_row: Callable[[dict[str, Any]], Any]) -> None:
        super().restore(state, make_row)
        self.dues = [
            (held.due, first, key)
            for key, partition in self.partitions.items()
            for first, held in partition.waiting.items()
        ]
        heapify(self.dues)

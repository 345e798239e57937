"""match_recognize over rows that come one by one and stay: each partition has its readings,
the newest rows for `prev`, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from sql.algebra.event_store import pack_key, unpack_key
from sql.algebra.pattern.snapshot import VERSION, check_version
from sql.algebra.recognize.readings import Reading, ReadingPacker, Readings, ReadingUnpacker, Rules
from sql.codegen.functions import DATA_ERRORS
from sql.errors import Fail

Row = tuple[int, Any]
"""A row with its number."""

P = TypeVar("P", bound=Readings)


class RecognizerBase(Generic[P]):
    """Base of both recognizers: their partitions, each made by `make`, and their counters."""

    make: Callable[[Rules], P]

    def __init__(self, rules: Rules, fail: Fail) -> None:
        """`fail` takes rows that cannot be evaluated; they change nothing."""
        self.plan = rules.plan
        self.rules = rules
        self.fail = fail
        self.partitions: dict[Hashable, P] = {}
        self.live = 0
        """The number of live readings, or attempts, in all partitions."""
        self.counts = {"attempts_dropped": 0, "partitions_forgotten": 0, "matches": 0}

    def counters(self) -> dict[str, int]:
        return {"attempts": self.live, "partitions": len(self.partitions), **self.counts}

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain data."""
        packer = ReadingPacker(self.plan.lists)
        partitions = [[pack_key(key), *found.pack(packer)] for key, found in self.partitions.items()]
        return {
            "version": VERSION,
            "partitions": partitions,
            "rows": packer.packed,
            "cells": packer.cells,
            "counts": dict(self.counts),
        }

    def restore(self, state: dict[str, Any], make_row: Callable[[dict[str, Any]], Any]) -> None:
        """Put a snapshot back. Raises CorruptState for one that does not fit."""
        check_version(state, "match_recognize")
        unpacker = ReadingUnpacker(state["rows"], state["cells"], self.plan.lists, make_row)
        self.counts.update(state["counts"])
        self.partitions.clear()
        for key, *packed in state["partitions"]:
            partition = self.partitions[unpack_key(key)] = self.make(self.rules)
            partition.unpack(unpacker, *packed)
        self.live = sum(map(len, self.partitions.values()))


class Recognizer(RecognizerBase[Readings]):
    """Drive it with `read` or `change`; both give the readings of the matches."""

    make = Readings

    def __init__(self, rules: Rules, fail: Fail) -> None:
        super().__init__(rules, fail)
        self.number = 0
        """The number of the newest row."""

    # --- driving --------------------------------------------------------------------------------------------

    def read(self, rows: Iterable[Any]) -> list[tuple[Any, list[Reading]]]:
        """The rows that complete matches, each with these."""
        rules = self.rules
        key_of_row, step, begin, depth, most = rules.key, rules.step, rules.begin, rules.depth, rules.most
        get, number = self.partitions.get, self.number
        out: list[tuple[Any, list[Reading]]] = []
        for row in rows:
            number += 1
            try:
                key = key_of_row(row)
                partition = get(key)
                if partition is None:
                    partition = Readings(self.rules)
                before = partition.readings
                may_begin = self.live < most
                tried = [*before, (number, *begin)] if may_begin else before
                live, completed = step(tried, number, row, partition.recent)
            except DATA_ERRORS as error:
                self.fail(row, error)
                continue
            if not may_begin:
                self.counts["attempts_dropped"] += 1
            if depth:
                partition.recent = (row,) if depth == 1 else (row, *partition.recent[: depth - 1])
            if completed:
                live, completed = self._chosen(live, completed)
                out.append((row, completed))
            if len(live) != len(before) or not live:
                self._settle(key, partition, len(live) - len(before), live)
            else:
                partition.readings = live
        self.number = number
        return out

    def _chosen(self, live: list[Reading], completed: list[Reading]) -> tuple[list[Reading], list[Reading]]:
        """The attempts that go on after a row that completes matches, and the matches:
        of each attempt the preferred, unless all are wanted."""
        if not self.plan.all_matches:
            preferred: dict[int, Reading] = {}
            for reading in completed:
                preferred.setdefault(reading[0], reading)
            completed = list(preferred.values())
        self.counts["matches"] += len(completed)
        if self.plan.skip == "past last row":
            return [], completed
        if self.plan.skip == "to current row":
            return live, completed
        skipped = max(reading[0] for reading in completed)
        return [reading for reading in live if reading[0] > skipped], completed

    def _settle(self, key: Hashable, partition: Readings, more: int, live: list[Reading]) -> None:
        """Count the readings again, drop what is over the bound, and forget a partition of which nothing
        can come.

        Rows that are kept for `prev` alone are forgotten where more partitions than readings may live.
        """
        over = self.live + more - self.rules.most
        if over > 0:
            dropped = min(over, max(0, more))
            del live[len(live) - dropped :]
            self.counts["attempts_dropped"] += dropped
            more -= dropped
        self.live += more
        partition.readings = live
        is_kept = self.rules.depth and len(self.partitions) + (key not in self.partitions) <= self.rules.most
        if live or is_kept:
            self.partitions[key] = partition
            return
        self.counts["partitions_forgotten"] += self.rules.depth > 0
        self.partitions.pop(key, None)

    def change(self, inserted: Sequence[Row], removed: Sequence[Row], now: int) -> list[Reading]:
        """Rows come; none ever leaves."""
        completed = self.read([row for _, row in inserted])
        return [reading for _, found in completed for reading in found]

    def next_deadline(self) -> int | None:
        """Time completes no match."""
        return None

    def advance(self, now: int) -> list[Reading]:
        """Time completes no match."""
        return []

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"number": self.number}

    def restore(self, state: dict[str, Any], make_row: Callable[[dict[str, Any]], Any]) -> None:
        super().restore(state, make_row)
        self.number = state["number"]

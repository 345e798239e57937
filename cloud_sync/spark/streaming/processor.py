"""The engine of one key, in Spark's state store: its state,
and a timer for what it has to do at a time of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cloud_sync.spark.backfill import handover
from cloud_sync.spark.backfill.handover import UNKNOWN, Handed
from cloud_sync.spark.backfill.row_writer import RowWriter
from cloud_sync.spark.backfill.rules import compiled_once
from rules.drive import Arrival, advance, drive, in_runs, state_of
from sinks.formats import lossless_json
from sql import Emission, Engine, Plan

FOUND_OF_KEY = "rule STRING, key STRING, number BIGINT, at_ms BIGINT, kind STRING, reason STRING"
"""The rows of all rules, beside the columns of their SELECTs (`slots`); `number` counts the rows of a key in
their order, the others are those of a backfill."""


class EngineOfKey(StatefulProcessor):
    """Runs a rule over the events of one key, a batch at a time. The grouping key is (rule, key). Spark calls
    methods and arguments by these names."""

    def __init__(self, sources: tuple[tuple[str, str], ...], zone: str, columns: str) -> None:
        """`columns`: those of the rows, as DDL."""
        self._sources = sources
        self._zone = zone
        self._names = [column.split()[0] for column in columns.split(", ")]

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark in each worker."""
        self._handle = handle
        self._state = handle.getValueState("engine", "state BINARY")
        self._known = compiled_once(self._sources, self._zone)
        self._row = Row(*self._names)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """The rows of a key's new events, those of all gateways in the order of their arrival."""
        found = list(rows)
        if not key[0]:  # the clock
            return
        found.sort(key=lambda row: (row["at_ms"], row["gateway"], row["path"], row["line"]))
        arrivals = (
            (
                int(row["at_ms"]),
                str(row["stream"]),
                lossless_json.decode(row["event"].encode("utf-8", "surrogatepass")),
            )
            for row in found
            if row["reason"] is None
        )
        bad = [str(row["reason"]) for row in found if row["reason"] is not None]
        yield from self._run(key, self._kept(), arrivals, None, bad)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """The rows that come from the passing of time. Afterwards Spark deletes the timer."""
        kept = self._kept()._replace(timer_ms=None)
        yield from self._run(key, kept, iter(()), timerValues.getCurrentWatermarkInMs(), ())

    def close(self) -> None:
        """There is nothing to release."""

    def _kept(self) -> Handed:
        """The state of the key. Each question to Spark costs as much as ten events."""
        stored = self._state.get()
        return Handed(timer_ms=None) if stored is None else handover.unpacked(bytes(stored[0]))

    def _run(
        self,
        key: Any,
        kept: Handed,
        arrivals: Iterator[Arrival],
        to_ms: int | None,
        bad: list[str] | tuple[()],
    ) -> Iterator[Row]:
        """Go on from the state of the key, over new events or to a time,
        and keep the state that this leaves."""
        rule, text = str(key[0]), str(key[1])
        plans = {rule: self._known.rules[rule].plan}
        engine = Engine(self._known.catalog.copied(), by_instants=True)
        writer = RowWriter(plans[rule])
        number = writer.add(_emissions(engine, plans, arrivals, kept, to_ms), kept.number)
        columns = writer.write()
        count = number - kept.number
        same = {"rule": [rule] * count, "key": [text] * count}
        listed = same | {name: column.to_pylist() for name, column in columns.items()}
        nothing = [None] * count
        yield from map(self._row, *(listed.get(name, nothing) for name in self._names))
        for reason in bad:
            found = {"rule": rule, "key": text, "number": number, "kind": "error", "reason": reason}
            yield self._row(*map(found.get, self._names))
            number += 1
        deadline_ms = engine.next_deadline_ms()
        self._wake(kept.timer_ms, deadline_ms)
        new = Handed(state_of(engine, plans, {}), number, timer_ms=deadline_ms)
        self._state.update((handover.packed(new),))

    def _wake(self, known_ms: int | None, deadline_ms: int | None) -> None:
        """Have one timer, at this time, where there was one at `known_ms`."""
        timers = self._handle.listTimers() if known_ms == UNKNOWN else () if known_ms is None else (known_ms,)
        known = {*timers}
        for timer_ms in known - {deadline_ms}:
            self._handle.deleteTimer(timer_ms)
        if deadline_ms is not None and deadline_ms not in known:
            self._handle.registerTimer(deadline_ms)


def _emissions(
    engine: Engine, plans: dict[str, Plan], arrivals: Iterator[Arrival], handed: Handed, to_ms: int | None
) -> Iterator[Emission]:
    yield from drive(engine, plans, in_runs(arrivals), {}, handed.state, is_open=True)
    if to_ms is not None and engine.now_ms is not None and to_ms > engine.now_ms:
        yield from advance(engine, to_ms)

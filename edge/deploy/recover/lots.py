"""Replay in lots: consecutive batches of the journal that take effect as one push.

A push costs as much as dozens of messages, and the journal has the batches of a run: ten messages each at
2,000 a second. Where all rules are in event time, nothing depends on when a message came nor on where a
batch ended, so batches of one stream with nothing but receipts between them are pushed together, and each
row gets the number that it had.

Each batch is pushed by itself where rules feed others over memory topics, for they would take turns in
another order, and once a rule had a defect, for how many rows that costs it depends on the push.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from edge.deploy.memory_streams import MemoryStreams
from edge.gateway import Gateway
from edge.intake.streams import Decoded
from edge.journal.reader import FramedRecord
from edge.journal.record import Batch, Receipts

LOT_ROWS = 1_000
"""The number of rows from which on a lot is complete."""


class _Arrived(NamedTuple):
    """The rows of a batch, and when they came."""

    rows: Sequence[Any]
    at_ms: int


class Lots:
    """Batches that wait to take effect together, and the receipts between them. Used by the recovery only."""

    def __init__(self, gateway: Gateway, memory: MemoryStreams) -> None:
        self._gateway = gateway
        self._memory = memory
        self._stream = ""
        self._waiting: list[_Arrived] = []
        self._rows = 0
        self._receipts: list[Receipts] = []

    def take(self, batch: Batch, entry: FramedRecord) -> None:
        """A batch takes effect at once, or with those that follow it."""
        gateway = self._gateway
        decoded = gateway.decode(entry.messages, batch.at_ms, batch.connection)
        stream = self._waits_for(decoded)
        if stream != self._stream or self._rows >= LOT_ROWS:
            self.end()
        if stream:
            self._stream = stream
            self._waiting.append(_Arrived(decoded.rows[stream], batch.at_ms))
            self._rows += len(decoded.rows[stream])
            return
        for name, rows in gateway.streams.in_order(entry.messages, decoded, batch.connection):
            gateway.push(name, rows, batch.at_ms)

    def take_receipts(self, receipts: Receipts) -> None:
        """Sinks have taken rows, at most those of the batches until now."""
        self._receipts.append(receipts)

    def end(self) -> None:
        """Apply everything that waits."""
        gateway = self._gateway
        if self._waiting:
            for rows, at_ms in self._pushes(self._waiting):
                gateway.push(self._stream, [*rows], at_ms)
        for receipts in self._receipts:
            gateway.outbox.journaled.delivered(receipts)
        self._stream, self._waiting, self._rows, self._receipts = "", [], 0, []

    def _pushes(self, waiting: list[_Arrived]) -> Iterator[_Arrived]:
        """The batches, joined where one push may take them: not across rows without a time stamp."""
        together = _together(waiting)
        if self._may_be_one(together):
            yield together
            return
        for may_be_one, run in groupby(waiting, key=self._may_be_one):
            batches = [*run]
            yield from [_together(batches)] if may_be_one else batches

    def _may_be_one(self, arrived: _Arrived) -> bool:
        """True if what these rows cause does not depend on when each came. There is at least one."""
        return self._gateway.engine.dispatch.needs_no_instants(self._stream, arrived.rows)

    def _waits_for(self, decoded: Decoded) -> str:
        """The stream of a batch that may take effect with others; empty where it may not."""
        gateway = self._gateway
        if len(decoded.rows) != 1 or not self._memory.is_empty:
            return ""
        if gateway.refusals.defects or gateway.engine.dispatch.defects:
            return ""
        (stream,) = decoded.rows
        return "" if stream in gateway.streams.readers else stream


def _together(batches: Sequence[_Arrived]) -> _Arrived:
    return _Arrived([row for arrived in batches for row in arrived.rows], batches[-1].at_ms)

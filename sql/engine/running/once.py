"""Statements without FROM: a row of the partition's properties when it starts, or when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sql.algebra.event import Event
from sql.catalog.streams import Catalog
from sql.codegen.functions import FunctionSet
from sql.codegen.support import Warnings
from sql.emission import Emission
from sql.engine.running.query import SNAPSHOT_VERSION, RunningQuery
from sql.errors import CorruptState
from sql.functions.registry import Context
from sql.plan.logical import Plan


class Once(RunningQuery):
    """Emits its row at the first advance of time, or at the end with `output … when terminated`."""

    steps_itself = takes_lots = takes_times = False

    def __init__(
        self, name: str, plan: Plan, catalog: Catalog, now_ms: int, partition: Sequence[Any] | None = None
    ) -> None:
        super().__init__(name, plan, now_ms)
        self.catalog = catalog
        self.context = Context(
            now_ms=now_ms, zone=plan.options.zone_info(), rule_id=name, start_ms=now_ms, partition=partition
        )
        self.functions = FunctionSet(catalog, self.context, Warnings(), text=plan.text)
        self.row = self.functions.row(plan.items, [])
        self.at_end = None if plan.output is None else plan.output.terminated
        self.test = None
        if self.at_end is not None and self.at_end.condition is not None:
            self.test = self.functions.true(self.at_end.condition)
        self.due_ms: int | None = now_ms if self.at_end is None else None

    def advance(self, now_ms: int) -> list[Emission]:
        """The row, if it is due."""
        self.now_ms = max(self.now_ms, now_ms)
        if self.due_ms is None:
            return []
        self.due_ms = None
        return self._emissions(now_ms)

    def next_deadline(self) -> int | None:
        """When the row is due."""
        return self.due_ms

    def terminate(self, now_ms: int) -> list[Emission]:
        """The partition ends: the row of `when terminated`."""
        self.now_ms = self.context.now_ms = max(self.now_ms, now_ms)
        if self.at_end is None or (self.test is not None and not self.test(Event(None, now_ms, 0))):
            return []
        for name, value in self.at_end.then_set:
            self.catalog.assign(name, self.functions.value(value)(None))
        return self._emissions(now_ms)

    def _emissions(self, now_ms: int) -> list[Emission]:
        self.counts["rows_out"] += 1
        return [Emission(self.name, now_ms, "rows", self.read(now_ms))]

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        """The row at this instant."""
        self.context.now_ms = now_ms
        return [self.row(Event(None, now_ms, 0))]

    def held(self) -> Iterable[Event]:
        """It holds no events."""
        return ()

    def snapshot(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "version": SNAPSHOT_VERSION,
            "fingerprint": self.plan.fingerprint,
            "now": self.now_ms,
            "counts": dict(self.counts),
            "due": self.due_ms,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put a snapshot back; CorruptState where it does not fit."""
        if (
            snapshot.get("version") != SNAPSHOT_VERSION
            or snapshot.get("fingerprint") != self.plan.fingerprint
        ):
            raise CorruptState("the snapshot is of another plan or version")
        self.now_ms, self.due_ms = snapshot["now"], snapshot["due"]
        self.counts |= snapshot["counts"]

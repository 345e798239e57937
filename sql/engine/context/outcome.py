"""The emissions of a context's statements in its partitions, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sql.algebra.context.partition import Partition
from sql.algebra.event import Event
from sql.emission import Emission
from sql.engine.context.bodies import Body, Cell, Member
from sql.engine.steps import moved
from sql.functions.definition import Context


class WaitingEvents(Protocol):
    """The events of a batch that wait for statements, between two changes of partitions."""

    def settle(self) -> None:
        """Partitions are about to change: what came before is done first."""

    def takes_first(self, partition: Partition, stream: str, event: Event) -> bool:
        """An event starts a partition; whether it waits with the others."""

    def takes_last(self, bodies: Sequence[Body]) -> bool:
        """A partition ends; whether that waits with the events."""


class Outcome:
    """The emissions since they were last taken. `clock`: the present instant of the context."""

    def __init__(self, clock: Context) -> None:
        self.clock = clock
        self.out: list[Emission] = []
        self.ended: dict[Member, list[Cell]] = {}
        """The cells of partitions that have ended, by statement: their reports are made together."""
        self.lane: WaitingEvents | None = None
        """The batch that is being taken, where statements get the events between two changes of partitions
        together."""

    def settle(self) -> None:
        """Give statements the events that wait for them, and make the reports that wait."""
        if self.lane is not None:
            self.lane.settle()
        ended, self.ended = self.ended, {}
        for member, cells in ended.items():
            assert member.cells is not None
            given = member.cells.report(cells, self.clock.now_ms)
            self.count(cells[0], given)
            self.out += given

    def add(self, body: Body, emissions: list[Emission]) -> None:
        """An instance has emitted something on its own: not for an event."""
        if emissions:
            self.settle()
            self.count(body, emissions)
            self.out += emissions

    def count(self, body: Body, emissions: list[Emission]) -> None:
        """Count the emissions of an instance; rows for a relation of the context are queued for it."""
        member = body.member
        for emission in emissions:
            if emission.kind == "error":
                member.counts["errors"] += 1
                continue
            member.counts["rows_out"] += len(emission.inserted)
            if member.fills_own and emission.kind == "rows":
                assert member.inner.insert is not None
                rows = moved(member.inner, emission)
                body.catalog.loop.forward(member.inner.insert.stream, rows, member.name)

    def take(self) -> list[Emission]:
        """The emissions since the last call."""
        if self.ended:
            self.settle()
        out, self.out = self.out, []
        return out

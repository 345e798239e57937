"""Statements that show the matches of one pattern, over streams and over the rows inserted into windows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sql.plan.logical import Plan
from tests.reference.expressions import Place, Row, holds
from tests.reference.patterns import Twin
from tests.reference.relations.statements import Statement
from tests.reference.rows import project

if TYPE_CHECKING:
    from tests.reference.relations.world import World


class Matching(Statement):
    """A row per match."""

    def __init__(self, name: str, plan: Plan, world: World) -> None:
        super().__init__(name, plan, world)
        (source,) = plan.sources
        assert source.pattern is not None
        chosen = plan.order_by or plan.distinct or plan.limit or plan.having or plan.prevs or plan.analytics
        if source.windows or plan.row_kind != "plain" or plan.output is not None or chosen:
            raise NotImplementedError("the twin of relations shows each match by itself")
        self.pattern = Twin(source.pattern, world.now)
        self.streams = source.pattern.streams

    def event(self, stream: str, row: Row) -> None:
        if stream in self.streams:
            self.show(self.pattern.send(stream, row, self.world.now))

    def entered(self, relation: str, row: Row) -> None:
        self.event(relation, row)

    def due_ms(self) -> int | None:
        return self.pattern.due()

    def advance(self, now_ms: int) -> None:
        self.show(self.pattern.advance(now_ms))

    def changed(self, deltas: object) -> None:
        """No change of a relation is an event."""

    def show(self, matches: Iterable[tuple[Any, ...]]) -> None:
        """The matches that one event, or one instant, completes."""
        places = [Place(match) for match in matches]
        rows = [project(self.plan.items, place, None) for place in places if holds(self.plan.where, place)]
        self.world.post(self.name, self.plan, rows, [])

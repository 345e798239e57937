"""A running query as others see it: the engine, the stage of event time, the room of those that wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sql.algebra.event import Delta
from sql.catalog.streams import Catalog
from sql.emission import Emission
from sql.plan.logical import Plan


class Query(Protocol):
    """A query in processing or event time."""

    plan: Plan
    steps_itself: bool

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]: ...
    def fill(self, *, posts: bool = False) -> list[Emission]: ...
    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]: ...
    def advance(self, now_ms: int) -> list[Emission]: ...
    def next_deadline(self) -> int | None: ...
    def flush(self, now_ms: int) -> list[Emission]: ...
    def reject(self, row: object, why: str, now_ms: int) -> list[Emission]: ...
    def unseen(self, emissions: list[Emission]) -> list[Emission]: ...
    def variable_changed(self, name: str) -> None: ...
    def read(self, now_ms: int) -> list[dict[str, Any]]: ...
    def counters(self) -> dict[str, int]: ...
    def snapshot(self) -> dict[str, Any]: ...
    def restore(self, snapshot: dict[str, Any]) -> None: ...


class Running(Query, Protocol):
    """A query as the engine sees it."""

    takes_lots: bool

    def push_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]: ...
    def arriving(self, stream: str, row: object, now_ms: int) -> None: ...


class CompiledStatement(Protocol):
    """A compiled statement, which all its instances share."""

    def instance(
        self, name: str, catalog: Catalog, now_ms: int, partition: Sequence[Any] | None = None
    ) -> Running: ...


class QueryDecorator(ABC):
    """A query behind something that holds its events back; what that does not change is the query's.

    Rows of another query wait one by one like all events. Filters see relations as they are when the event
    enters the query, not as it arrives.
    """

    steps_itself = False
    takes_lots = False

    def __init__(self, query: Query) -> None:
        self.query = query
        self.plan: Plan = query.plan

    @abstractmethod
    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events arrive."""

    def push_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        return self.push(stream, rows, now_ms)

    def arriving(self, stream: str, row: object, now_ms: int) -> None:
        return None

    def fill(self, *, posts: bool = False) -> list[Emission]:
        return self.query.fill(posts=posts)

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        return self.query.feed(changes, now_ms)

    def reject(self, row: object, why: str, now_ms: int) -> list[Emission]:
        return self.query.reject(row, why, now_ms)

    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        return self.query.unseen(emissions)

    def variable_changed(self, name: str) -> None:
        self.query.variable_changed(name)

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        return self.query.read(now_ms)

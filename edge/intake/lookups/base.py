"""The interface of stores to the gateway, and the settings common to all stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field

from edge.clock import Clock, SystemClock
from rules.base import Model
from rules.durations import DurationMs, SecondsMs
from sql.catalog.streams import Stream
from sql.plan.lookup_plan import AnswerPolicy
from sql.record import Record, field

Rows = list[dict[str, Any]]
"""Rows as JSON values."""


class Unanswered(Exception):
    """The store cannot answer now; the request is repeated while an event waits."""


class Refused(Exception):
    """The store refuses the request, and any other with the same columns and types: a repetition would fail
    as well. The text ends with the remedy."""


class KeyRefused(Refused):
    """The store refuses this key; it may answer others."""


class Lookup(Protocol):
    """A connection to a store. One thread uses it."""

    def find(self, columns: tuple[str, ...], key: tuple[Any, ...], timeout_ms: int) -> Rows:
        """The rows whose columns have these values. Raises `Unanswered` and `Refused`."""

    def close(self) -> None:
        """End the connection; the next `find` begins one. Never raises."""


class CacheSettings(Model):
    """Which answers serve later events."""

    cache: bool = Field(False, description="keep answers")
    cache_ttl: SecondsMs = Field(600_000, ge=1, description="how long")
    cache_missing_key: bool = Field(False, description="keep answers without rows too")
    keys_max: int = Field(10_000, ge=1, description="how many answers; with one more the oldest goes")

    @property
    def kept_ms(self) -> int:
        """The time for which an answer is valid."""
        return self.cache_ttl if self.cache else 0


class LookupSettings(Model):
    """The settings common to all stores."""

    lookup: CacheSettings = Field(default_factory=CacheSettings.model_construct, description="the cache")
    timeout_ms: DurationMs = Field(5_000, ge=1, description="how long an event waits for an answer")
    unanswered: Literal["miss", "error"] = Field(
        "miss", description="what an event is then: one without a row, or an error event"
    )
    refusal_ms: DurationMs = Field(
        5_000,
        ge=1,
        description="after a refusal (no such table, a wrong password): how long until the store is asked "
        "again; meanwhile events go on at once as if unanswered",
    )
    waiting_max: int = Field(
        10_000,
        ge=1,
        description="events of a rule that wait; with one more the first goes on as if unanswered",
    )
    rows_max: int = Field(
        1_000, ge=1, description="rows of an answer; one with more is an error of the store"
    )
    connections: int = Field(2, ge=1, le=32, description="how many requests are under way at once")

    @property
    def policy(self) -> AnswerPolicy:
        """The policy by which the engine treats answers."""
        cache = self.lookup
        return AnswerPolicy(
            cache.kept_ms,
            cache.cache_missing_key,
            cache.keys_max,
            self.timeout_ms,
            self.waiting_max,
            self.unanswered,
        )


class LookupEnvironment(Record):
    """Resources of stores from the process around them: the folder of SQLite files, the longest answer, the
    clock by which tokens grow old."""

    data_dir: Path
    bytes_max: int = 1_048_576
    clock: Clock = field(default_factory=SystemClock)


Make = Callable[[Stream, Any, LookupEnvironment], Lookup]
"""Makes a connection that is not open yet. Raises `BadSource`."""


class LookupKind(Record):
    """A kind of store."""

    name: str
    settings: type[LookupSettings]
    make: Make

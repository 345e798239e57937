"""The declarations of tables in a rule file: relations, and tables filled by a source or asked of a store."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from rules.base import Model
from rules.durations import DurationMs
from rules.streams import Stream
from sql.catalog.stores import STORES


class Table(Model):
    """Rows that many rules read and write. They survive restarts."""

    sql: str = Field(
        min_length=1,
        description="'create table …' or 'create window …', and perhaps 'create index …' behind a semicolon; "
        "or 'context C create variable …', a variable of each partition",
    )
    max_rows: int = Field(
        1_000_000, ge=1, description="how many rows it may hold, in each partition of its context"
    )
    when_full: Literal["refuse", "oldest"] = Field(
        "refuse",
        description="at maxRows: a new row is refused (an error event), or the row written longest ago goes",
    )
    ttl: DurationMs | None = Field(None, ge=1, description="rows that were not written for so long go")


class Cache(Model):
    """The cache of a store's answers, which serve later events."""

    ttl: DurationMs = Field(600_000, ge=1, description="how long an answer serves")
    misses: bool = Field(False, description="keep answers without rows too")
    keys_max: int = Field(10_000, ge=1, description="how many answers; with one more the oldest goes")


ASKED = ("cache", "timeout_ms", "unanswered", "refusal_ms", "waiting_max", "rows_max")
"""The settings of tables whose store is queried event by event."""


class SourceTable(Stream):
    """A table with external rows: a source fills it, or a store is queried event by event."""

    kind: Literal["scan", "lookup"] | None = Field(
        None,
        description="lookup: its rows are found by a key, here or in a store; scan: the newest `retainSize` "
        "rows of a source",
    )
    cache: Cache | None = Field(
        None, description="keep the answers of the store; without it every event asks"
    )
    timeout_ms: DurationMs | None = Field(
        None, ge=1, description="how long an event waits for an answer; default 5s"
    )
    unanswered: Literal["miss", "error"] | None = Field(
        None,
        description=(
            "what an event without an answer in time is: one without a row (default), or an error event"
        ),
    )
    refusal_ms: DurationMs | None = Field(
        None,
        ge=1,
        description="how long after a refusal (no such table, a wrong password) until the store is asked "
        "again; default 5s",
    )
    waiting_max: int | None = Field(
        None, ge=1, description="events of a rule that wait; with one more the first goes on as if unanswered"
    )
    rows_max: int | None = Field(
        None, ge=1, description="rows of an answer; one with more is an error of the store"
    )

    @field_validator(*ASKED)
    @classmethod
    def _is_asked(cls, value: object, info: ValidationInfo) -> Any:
        if value is not None and info.data.get("type") not in STORES:
            name = cls.model_fields[info.field_name or ""].alias
            raise ValueError(f"'{name}' is for stores that are asked: type {', '.join(STORES)}")
        if value is not None and isinstance(info.data.get("extra"), str):
            raise ValueError("write 'extra' as a mapping where it stands beside settings of its store")
        return value

    def plain(self) -> Stream:
        """The same as a stream, with the settings of the store in its EXTRA."""
        told = {name for name in ASKED if name != "cache"}
        given = self.model_dump(include=told, by_alias=True, exclude_none=True)
        if self.cache is not None:
            cache = self.cache
            given["lookup"] = {
                "cache": True,
                "cacheTtl": f"{cache.ttl}ms",
                "cacheMissingKey": cache.misses,
                "keysMax": cache.keys_max,
            }
        fields = {name: value for name, value in self if name in Stream.model_fields}
        if given:
            fields["extra"] = {**(self.extra if isinstance(self.extra, dict) else {}), **given}
        return Stream.model_construct(**fields)

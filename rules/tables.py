"""The declaration of a table or named window in a rule file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rules.base import Model
from rules.durations import DurationMs


class Table(Model):
    """Rows that many rules read and write. They survive restarts."""

    sql: str = Field(
        min_length=1,
        description="'create table …' or 'create window …', and perhaps 'create index …' behind a semicolon",
    )
    max_rows: int = Field(
        1_000_000, ge=1, description="how many rows it may hold, in each partition of its context"
    )
    when_full: Literal["refuse", "oldest"] = Field(
        "refuse",
        description="at maxRows: a new row is refused (an error event), or the row written longest ago goes",
    )
    ttl: DurationMs | None = Field(None, ge=1, description="rows that were not written for so long go")

"""The declaration of a context in a rule file, and its translation to a statement."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rules.base import Model
from rules.durations import DurationMs
from rules.options import Zone


class Context(Model):
    """A context: the start and end of partitions in which rules run, each with state of its own."""

    sql: str = Field(
        min_length=1,
        description="what follows 'create context NAME', for example 'partition by dev from temperature'",
    )
    max_partitions: int = Field(100_000, ge=1, description="how many partitions may live at the same time")
    when_full: Literal["refuse", "oldest"] = Field(
        "refuse",
        description="at maxPartitions: the event is refused (an error event), or the oldest partition ends",
    )
    idle: DurationMs | None = Field(
        None,
        description="partitions of a key that was silent for so long end; only where nothing else ends them",
    )
    catch_up: Literal["step", "once", "skip"] = Field(
        "step",
        description="what is overdue after a pause: each in turn; once for now; once, without output",
    )
    priority: int = Field(
        0,
        description="compared with the @Priority of its statements: one with a higher priority sees the "
        "event that ends a partition in that partition",
    )
    timezone: Zone | None = Field(None, description="the zone of its crontabs; default: the gateway's")


def prefix_of(name: str) -> str:
    """The text put before a declaration to make it a statement."""
    return f"create context `{name}` as "

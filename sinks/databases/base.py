"""What the sql sink needs of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Kind = Literal["insert", "update", "upsert", "delete"]


@dataclass(frozen=True, slots=True)
class Change:
    """One row and what is done with it. `keys` say which rows update and delete mean, and
    when an upsert updates."""

    kind: Kind
    table: str
    row: Mapping[str, Any]
    keys: tuple[str, ...] = ()


class Unreachable(Exception):
    """The database cannot be asked now."""


class Refused(Exception):
    """The database will never take this: a wrong type, a missing column, a constraint."""


class Database(Protocol):
    """One connection. All methods raise `Unreachable` or `Refused`."""

    def open(self) -> None:
        """Connect."""

    def write(self, changes: Sequence[Change]) -> None:
        """Make all changes, or none."""

    def close(self) -> None:
        """Disconnect; never raises."""

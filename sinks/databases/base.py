"""What sinks and lookups need of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from sql.record import Record

Kind = Literal["insert", "update", "upsert", "delete"]


class Change(Record):
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


class Connection(Protocol):
    """One connection. All methods raise `Unreachable` or `Refused`."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Disconnect; never raises."""


class Table(Connection, Protocol):
    """What a lookup needs of a database."""

    def find(self, table: str, wanted: Mapping[str, Any], rows_max: int) -> list[dict[str, Any]]:
        """The rows of a table whose columns have these values, as many as `rows_max`. `table` may name its
        schema: `plant.device`."""


class Database(Connection, Protocol):
    """What a sink needs of a database."""

    def write(self, changes: Sequence[Change]) -> None:
        """Make all changes, or none."""

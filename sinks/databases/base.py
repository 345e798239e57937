"""The interface of databases for sinks and lookups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, get_args

from sql.record import Record

Kind = Literal["insert", "update", "upsert", "delete"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Change(Record):
    """A row and its operation. `keys` name the columns that select the rows to update or delete, and the row
    that an upsert updates."""

    kind: Kind
    table: str
    row: Mapping[str, Any]
    keys: tuple[str, ...] = ()


class Unreachable(Exception):
    """The database cannot be reached now."""


class Denied(Unreachable):
    """The database refuses the connection, or every query like this one: a wrong password, no such table.
    The text ends with the remedy."""


class Refused(Exception):
    """The database will never take this row, or find one by this key: a wrong type, a missing column,
    a constraint."""


def kind_of(row: Mapping[str, Any], field: str | None, default: Kind) -> Kind:
    """The operation that column `field` of a row names. Raises `Refused` for another word."""
    found: Any = row.get(field) if field else None
    if found is None:
        return default
    if found not in KINDS:
        raise Refused(f"'{found}' in column {field} is none of {', '.join(KINDS)}")
    kind: Kind = found
    return kind


class Connection(Protocol):
    """One connection. All methods raise `Unreachable` (`Denied` where that is known) or `Refused`."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Disconnect; never raises."""


class Table(Connection, Protocol):
    """The interface of a database for lookups."""

    def find(self, table: str, wanted: Mapping[str, Any], rows_max: int) -> list[dict[str, Any]]:
        """The rows of a table whose columns have these values, at most `rows_max`. `table` may name its
        schema: `plant.device`."""


class Database(Connection, Protocol):
    """The interface of a database for sinks."""

    def write(self, changes: Sequence[Change]) -> None:
        """Make all changes, or none."""

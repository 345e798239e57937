"""Rows of a database's table."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Self

from pydantic import Field, model_validator

from edge.intake.lookups.base import (
    KeyRefused,
    LookupEnvironment,
    LookupKind,
    LookupSettings,
    Refused,
    Rows,
    Unanswered,
)
from edge.intake.sources.registry import BadSource
from rules.secrets import reveal
from sinks.databases import base as databases
from sinks.databases.alchemy import Alchemy
from sinks.databases.sqlite import Sqlite, path_of
from sinks.settings import Text
from sql.catalog.streams import Stream


class SqlLookupSettings(LookupSettings):
    """Query a table of a database, whose name is DATASOURCE.

    `sqlite:///name.db` is a file below the data folder; what sql actions write is `sqlite:///output/name.db`
    here. postgresql://, mysql:// and others need the extra penstock[sql] and the database's driver.
    """

    url: Text | None = Field(
        None, description="the database, such as 'postgresql://user@host/db' or 'sqlite:///devices.db'"
    )
    dburl: Text | None = Field(None, description="the same, as eKuiper 2 calls it")

    @model_validator(mode="after")
    def _url_is_one(self) -> Self:
        if self.url is not None and self.dburl is not None:
            raise ValueError("'url' and 'dburl' are the same: write one")
        return self

    @property
    def address(self) -> str:
        return reveal(self.url or self.dburl or "")


class SqlLookup:
    """One connection; each request is a SELECT by the columns of the key."""

    def __init__(self, table: str, database: databases.Table, rows_max: int) -> None:
        self._table = table
        self._database = database
        self._rows_max = rows_max
        self._is_open = False

    def find(self, columns: tuple[str, ...], key: tuple[Any, ...], timeout_ms: int) -> Rows:
        try:
            if not self._is_open:
                self._database.open()
                self._is_open = True
            wanted = dict(zip(columns, key, strict=True))
            rows = self._database.find(self._table, wanted, self._rows_max + 1)
        except databases.Refused as failure:
            raise KeyRefused(f"{failure}; check the value of the key") from None
        except databases.Unreachable as failure:
            self.close()
            kind = Refused if isinstance(failure, databases.Denied) else Unanswered
            raise kind(str(failure)) from None
        if len(rows) > self._rows_max:
            raise KeyRefused(f"more than {self._rows_max} rows for one key (rowsMax)")
        return [_plain_row(row) for row in rows]

    def close(self) -> None:
        self._is_open = False
        self._database.close()


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of JSON values: the journal records what the rules see.

    >>> _plain_row({"n": Decimal("3"), "x": Decimal("2.5"), "d": date(2026, 1, 2), "b": b"ab"})
    {'n': 3, 'x': 2.5, 'd': '2026-01-02', 'b': 'YWI='}
    """
    return {str(name): _plain(value) for name, value in row.items()}


def _plain(value: object) -> Any:
    """A value: times as ISO texts, exact numbers as numbers, bytes in base64, anything else as its text."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, Mapping):
        return _plain_row(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return str(value)


def _make(stream: Stream, settings: SqlLookupSettings, environment: LookupEnvironment) -> SqlLookup:
    url = settings.address
    if "://" not in url:
        raise BadSource(
            "EXTRA", "has no url of the database: write it there, or in sources.sql of the gateway"
        )
    database: databases.Table
    if url.startswith("sqlite:"):
        try:
            database = Sqlite(environment.data_dir / path_of(url), is_read_only=True)
        except ValueError as error:
            raise BadSource("EXTRA", f"url: {error}") from None
    else:
        database = Alchemy(url, settings.timeout_ms)
    return SqlLookup(stream.datasource, database, settings.rows_max)


KIND = LookupKind("sql", SqlLookupSettings, _make)

"""The `sql` sink: results as rows of a database table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from rules.durations import DurationMs
from rules.secrets import reveal
from sinks.base import Message, Reject, Retry, Row, SinkContext, register_sink
from sinks.connections import SYNONYMS, ConnectionSettings, connected
from sinks.databases.alchemy import Alchemy
from sinks.databases.base import Change, Database, Kind, Refused, Unreachable, kind_of
from sinks.databases.sqlite import Sqlite, path_of
from sinks.dynamic import Target
from sinks.formats.json_text import json_text
from sinks.settings import SinkSettings, Text

INTEGER_MAX = 2**63 - 1
"""The largest integer of databases: 64 bits."""


class SqlSettings(SinkSettings, ConnectionSettings):
    """Write each row into a table of a database.

    `sqlite:///name.db` is a file below `output` in the data folder; postgresql://, mysql:// and others need
    the extra penstock[sql] and the database's driver. All waiting rows are written in one transaction. A row
    that the database refuses (a missing column, a constraint) is a dead letter; without the database all
    wait. A row may be written twice if the gateway is cut off between the database's commit and its own;
    with `upsert` that changes nothing.
    """

    address: ClassVar[str | None] = "url"
    target: ClassVar[str | None] = "table"
    target_kind: ClassVar[Literal["topic", "url", "path"]] = "path"
    encodes: ClassVar[bool] = False
    synonyms: ClassVar[Mapping[str, str]] = {**SYNONYMS, "dburl": "url"}
    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"format", "schemaId", "delimiter", "hasHeader", "compression"}
    )

    url: Text | None = Field(
        None, description="the database, such as 'postgresql://user@host/db' or 'sqlite:///out.db'"
    )
    table: Text = Field(description="the table; may hold '{{.field}}'")
    table_data_field: str | None = Field(
        None,
        min_length=1,
        description="the column whose value is the row, or rows; `fields` are then columns of these",
    )
    action: Literal["insert", "update", "upsert", "delete"] = Field(
        "insert", description="what is done with a row; `rowkindField` says it per row"
    )
    key_field: str | list[str] = Field(
        default_factory=list, description="the columns that update, upsert and delete find rows by"
    )
    send_nil_field: bool = Field(True, description="write NULL columns too")
    timeout: DurationMs = Field(
        10_000, ge=1, description="time for connecting and for a batch; not for SQLite"
    )

    @field_validator("url")
    @classmethod
    def _url_is_one(cls, url: object) -> Any:
        text = "" if url is None else reveal(url)
        if text.startswith("sqlite:"):
            path_of(text)
        elif url is not None and "://" not in text:
            raise ValueError("a url looks like 'postgresql://user@host/database' or 'sqlite:///name.db'")
        return url

    @field_validator("table")
    @classmethod
    def _table_is_named(cls, table: object) -> Any:
        if not reveal(table).strip():
            raise ValueError("the table has no name")
        Target(reveal(table), "path")
        return table

    def faults(self) -> Iterator[str]:
        """A database and the columns of the key are named."""
        yield from super().faults()
        if self.action != "insert" and not self.key_columns:
            yield f"'action: {self.action}' needs 'keyField', the columns that find the row"
        if self.url is None and self.connection_selector is None:
            yield "'url' or 'connectionSelector' says which database"

    @property
    def row_fields(self) -> list[str] | None:
        """`fields` for the row itself; None with `tableDataField`, to whose rows they apply."""
        return self.fields if self.table_data_field is None else None

    @property
    def key_columns(self) -> tuple[str, ...]:
        return (self.key_field,) if isinstance(self.key_field, str) else tuple(self.key_field)


class SqlSink:
    """A sink that writes a batch in one transaction; if a message is refused, those before it in another."""

    def __init__(self, settings: SqlSettings, context: SinkContext) -> None:
        self._settings = settings
        self._context = context
        self._database: Database | None = None

    def open(self) -> None:
        """Connect."""
        self.close()
        settings = connected(self._settings, self._context)
        url = reveal(settings.url)
        root = self._context.environment.data_dir
        database: Database
        if url.startswith("sqlite:"):
            database = Sqlite(root / path_of(url))
        else:
            database = Alchemy(url, settings.timeout)
        try:
            database.open()
        except Unreachable as failure:
            raise Retry(f"database: {failure}") from failure
        self._database = database

    def close(self) -> None:
        """Disconnect."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def send(self, messages: Sequence[Message]) -> None:
        """Write all messages, or those before the first one that is refused."""
        if self._database is None:
            self.open()
        try:
            self._write([change for message in messages for change in self._changes(message)])
        except Refused:
            self._one_by_one(messages)

    def _one_by_one(self, messages: Sequence[Message]) -> None:
        for done, message in enumerate(messages):
            try:
                self._write(list(self._changes(message)))
            except Refused as failure:
                raise Reject(f"the database refused it: {failure}", done=done) from None
            except Retry as failure:
                failure.done = done
                raise

    def _write(self, changes: list[Change]) -> None:
        assert self._database is not None
        try:
            self._database.write(changes)
        except Unreachable as failure:
            self.close()
            raise Retry(f"database: {failure}") from failure

    def _changes(self, message: Message) -> list[Change]:
        settings = self._settings
        found = []
        for row in message.rows:
            for data in self._data_of(row):
                values = {
                    name: _stored(value) for name, value in data.items() if name != settings.rowkind_field
                }
                kind = self._kind(row)
                if not values or (
                    kind != "insert" and not all(key in values for key in settings.key_columns)
                ):
                    raise Refused(f"a row without {', '.join(settings.key_columns) or 'columns'}")
                found.append(Change(kind, message.target, values, settings.key_columns))
        return found

    def _kind(self, row: Row) -> Kind:
        settings = self._settings
        kind = kind_of(row, settings.rowkind_field, settings.action)
        if kind != "insert" and not settings.key_columns:
            raise Refused(f"'{kind}' needs 'keyField'")
        return kind

    def _data_of(self, row: Row) -> list[dict[str, Any]]:
        name = self._settings.table_data_field
        if name is None:
            return [dict(row)]
        data = row.get(name)
        found: list[Any] = data if isinstance(data, list) else [data]
        if not all(isinstance(item, dict) for item in found):
            raise Refused(f"column '{name}' holds no row")
        wanted = self._settings.fields
        return found if wanted is None else [{key: item.get(key) for key in wanted} for item in found]


def _stored(value: object) -> Any:
    """A value in a type that databases have: arrays, objects and numbers beyond 64 bits as text."""
    if isinstance(value, dict | list | tuple) or (isinstance(value, int) and abs(value) > INTEGER_MAX):
        return json_text(value)
    return value


register_sink("sql", SqlSettings, SqlSink)

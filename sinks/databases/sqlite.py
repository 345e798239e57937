"""SQLite, which comes with Python: a file below the data folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from sinks.databases.base import Change, Denied, Refused, Unreachable
from sinks.databases.denials import remedy_of

BUSY_S = 5.0
"""The time to wait for another writer of the file."""


class Sqlite:
    """A connection to an SQLite file. Changes are durable when `write` returns."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self._path = path
        self._is_read_only = is_read_only
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        if self._is_read_only:
            self._open_to_read()
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(
                self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
        except sqlite3.Error as error:
            self.close()
            raise Unreachable(str(error)) from error

    def _open_to_read(self) -> None:
        if not self._path.exists():
            raise Denied(
                f"there is no file {self._path}; put it there, or check the name of the file in its url"
            )
        try:
            self._connection = sqlite3.connect(
                f"file:{quote(str(self._path))}?mode=ro", timeout=BUSY_S, uri=True, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise Unreachable(f"{self._path.name}: {error}") from error

    def find(self, table: str, wanted: Mapping[str, object], rows_max: int) -> list[dict[str, object]]:
        """The rows of a table whose columns have these values."""
        assert self._connection is not None
        name = ".".join(map(_identifier, table.split(".")))
        where = " AND ".join(f"{_identifier(column)} = ?" for column in wanted)
        try:
            with closing(self._connection.cursor()) as cursor:
                cursor.execute(f"SELECT * FROM {name} WHERE {where} LIMIT ?", [*wanted.values(), rows_max])
                columns = [column[0] for column in cursor.description]
                return [dict(zip(columns, row, strict=True)) for row in cursor]
        except OverflowError as error:
            raise Refused(str(error)) from error
        except sqlite3.Error as error:
            remedy = remedy_of(str(error))
            raise (Denied(f"{error}; {remedy}") if remedy else Unreachable(str(error))) from error

    def write(self, changes: Sequence[Change]) -> None:
        connection = self._connection
        assert connection is not None
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                for change in changes:
                    connection.execute(*_statement(change))
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
        except sqlite3.OperationalError as error:
            # SQLite gives a missing table or column the same class of error as a full disk.
            hopeless = error.sqlite_errorcode == sqlite3.SQLITE_ERROR
            raise (Refused if hopeless else Unreachable)(str(error)) from error
        except (sqlite3.Error, OverflowError) as error:
            raise Refused(str(error)) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def path_of(url: str) -> str:
    """The file of a `sqlite:` address, below the data folder. Raises ValueError."""
    path = unquote(url.removeprefix("sqlite:").removeprefix("//").removeprefix("/"))
    pure = PurePosixPath(path)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or path.startswith("~"):
        raise ValueError("a SQLite file lies below the data folder: write sqlite:///name.db")
    return path


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _identifier(name: str) -> str:
    """A name in backticks: SQLite reads one in double quotes that is no column as a text."""
    return "`" + name.replace("`", "``") + "`"


def _statement(change: Change) -> tuple[str, list[object]]:
    table, row, keys = _quoted(change.table), change.row, change.keys
    where = " AND ".join(f"{_quoted(key)} IS ?" for key in keys)
    chosen = [row.get(key) for key in keys]
    if change.kind == "delete":
        return f"DELETE FROM {table} WHERE {where}", chosen
    others = [name for name in row if name not in keys]
    if change.kind == "update":
        changed = ", ".join(f"{_quoted(name)} = ?" for name in others)
        return f"UPDATE {table} SET {changed} WHERE {where}", [*(row[name] for name in others), *chosen]
    names, places = ", ".join(map(_quoted, row)), ", ".join("?" * len(row))
    text = f"INSERT INTO {table} ({names}) VALUES ({places})"
    if change.kind == "upsert":
        changed = ", ".join(f"{_quoted(name)} = excluded.{_quoted(name)}" for name in others)
        action = f"DO UPDATE SET {changed}" if others else "DO NOTHING"
        text += f" ON CONFLICT ({', '.join(map(_quoted, keys))}) {action}"
    return text, list(row.values())

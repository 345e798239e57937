"""The spool's SQLite file: its opening, its tables, its version, and the lock of its writer.

WAL with `synchronous=FULL`: a commit that returned survives a power cut. There is exactly one connection that
writes and checkpoints, guarded by a lock file, because SQLite before 3.51.3 can damage a WAL when two do so
at once. Readers (`penstock spool ls`) open the file read-only and never checkpoint.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cloud_sync.errors import SpoolBusy, SpoolCorrupt, SpoolError, SpoolFull, SpoolVersion
from rules.problems import in_words

SCHEMA_VERSION = 2
APPLICATION_ID = 0x50454E53  # "PENS"

REPAIR = "penstock spool repair"

LOG_PAGES = 256
"""Pages in the log before they move to the database:
pages that are in both at once must fit a piece of the reserve on a full disk."""

SCHEMA = """
CREATE TABLE rows (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, rule TEXT NOT NULL, date TEXT NOT NULL,
    created_ms INTEGER NOT NULL, body BLOB NOT NULL, checksum INTEGER NOT NULL,
    schema TEXT NOT NULL DEFAULT '');
CREATE INDEX rows_by_file ON rows (rule, date, seq);
CREATE TABLE set_aside (
    seq INTEGER PRIMARY KEY, rule TEXT, date TEXT, created_ms INTEGER, body BLOB, checksum INTEGER,
    reason TEXT NOT NULL, schema TEXT NOT NULL DEFAULT '');
CREATE TABLE files (
    name TEXT PRIMARY KEY, rule TEXT NOT NULL, date TEXT NOT NULL, first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL, sha256 TEXT NOT NULL,
    schema TEXT NOT NULL DEFAULT '');
CREATE TABLE state (key TEXT PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""

FROM_VERSION_1 = "".join(
    f"ALTER TABLE {table} ADD COLUMN schema TEXT NOT NULL DEFAULT '';"
    for table in ("rows", "set_aside", "files")
)
"""Makes a spool of version 1, whose rows name no schema, one of version 2."""


class WriterLock:
    """The lock that keeps a second process from writing to the spool. The operating system releases it if
    this process dies."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise SpoolBusy(
                f"spool {path} is in use by another process: stop the gateway on {path.parent} first, "
                "or look at a copy; a second gateway needs a data directory of its own"
            ) from None

    def release(self) -> None:
        """Release the lock, so that another process can write."""
        os.close(self._descriptor)


def damaged(path: Path, why: object) -> SpoolCorrupt:
    """The error of a damaged spool, with the remedy."""
    return SpoolCorrupt(f"spool {path} is damaged ({why}); save what can be read with: {REPAIR} {path}")


def connect(path: Path) -> sqlite3.Connection:
    """The one writing connection; makes the tables of a new file. The caller holds the `WriterLock`."""
    with translated(path):
        # SQLite's log gets the same mode
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.text_factory = readable
        try:
            check_version(connection, path, upgrades=True)
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # of a new file
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA mmap_size=0")
            connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
            connection.execute("PRAGMA journal_size_limit=4194304")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version != SCHEMA_VERSION:
                connection.executescript(
                    f"BEGIN;{FROM_VERSION_1 if version else SCHEMA}PRAGMA application_id={APPLICATION_ID};"
                    f"PRAGMA user_version={SCHEMA_VERSION};COMMIT;"
                )
        except BaseException:
            connection.close()
            raise
        return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """A connection for reading only; works beside a running writer."""
    if not path.exists():
        raise SpoolError(f"there is no spool at {path}")
    with translated(path):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        connection.text_factory = readable
        try:
            check_version(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def readable(raw: bytes) -> str:
    """Text of the database. Text that is no UTF-8 was damaged, and the checksum of its row shows it."""
    return raw.decode("utf-8", "replace")


def rows_of(db: sqlite3.Connection, query: str, lost: list[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of a query up to the first page that cannot be read; its error is appended to `lost`."""
    try:
        yield from db.execute(query)
    except sqlite3.Error as error:
        table = query.partition(" FROM ")[2].split()
        lost.append(f"{table[0] if table else query}: {error}")


def check_version(connection: sqlite3.Connection, path: Path, *, upgrades: bool = False) -> None:
    """Refuse a file of another program or of an unknown version; `upgrades`: an older one is welcome. Raises
    SpoolVersion."""
    application, version, tables = (
        connection.execute(query).fetchone()[0]
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    is_known = version == SCHEMA_VERSION or (upgrades and version == 1)
    if (application == APPLICATION_ID and is_known) or (application, version, tables) == (0, 0, 0):
        return
    if application != APPLICATION_ID:
        raise SpoolVersion(f"{path} is a database of another program, not a spool; choose another path")
    if version == 1:
        raise SpoolVersion(
            f"spool {path} has schema version 1; start the gateway once, which brings it up to date"
        )
    raise SpoolVersion(
        f"spool {path} has schema version {version}, this program knows version {SCHEMA_VERSION}; "
        "upload its rows with the program that wrote it, or move the file away"
    )


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """All or nothing, durable at the end. Raises the spool's errors in place of SQLite's."""
    with translated(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as the spool's, with a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise SpoolFull(f"the disk is full, spool {path} cannot be made; free space") from error
        why = f"{in_words(error, with_file=False)}; see that the gateway may write there"
        raise SpoolError(f"spool {path} cannot be opened: {why}") from error
    except sqlite3.Error as error:
        extended = getattr(error, "sqlite_errorcode", 0)
        code = extended & 0xFF
        if code == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_SHMSIZE:
            raise SpoolFull(
                f"the disk is full, spool {path} cannot grow; free space or lower spoolBytesMax"
            ) from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise damaged(path, error) from error
        remedy = f"check the disk, or save what can be read with: {REPAIR} {path}"
        raise SpoolError(f"spool {path}: {error}; {remedy}") from error

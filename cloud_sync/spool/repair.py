"""`penstock spool repair`: replace a damaged spool by a whole one with everything that can still be read.

The damaged file may yield any value, so each one is checked before it is stored. A page that SQLite cannot
read ends the reading of its table from that side only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloud_sync.errors import SpoolError
from cloud_sync.records import ROW_OVERHEAD_BYTES, SpooledRow
from cloud_sync.spool.database import (
    WriterLock,
    connect,
    readable,
    rows_of,
    transaction,
    translated,
)
from cloud_sync.spool.rows import DAMAGED
from cloud_sync.spool.state import is_intact_state
from cloud_sync.spool.store import SEQ_GAP, SEQ_MAX
from cloud_sync.spool.types import FILE_COLUMNS, ROW_COLUMNS, SPOOL_COUNTERS

HEADER = b"SQLite format 3\0" + bytes([16, 0, 2, 2, 0, 64, 32, 32])
"""The first bytes of every spool's file: 4 KB pages, WAL."""

KEPT_SETTINGS = ("gateway", "spool_id")


@dataclass(slots=True)
class Repair:
    """The number of entries saved, those that could not be read (`lost`), and the new path of the damaged
    original. `missing`: rows that the damaged spool had by its own count, and that are neither saved nor set
    aside. `bytes`: the size of the rows; `highest`: their highest sequence number; `is_counted`: the
    counters could be read."""

    original: Path
    rows: int = 0
    set_aside: int = 0
    state: int = 0
    bytes: int = 0
    highest: int = 0
    missing: int = 0
    is_counted: bool = False
    lost: list[str] = field(default_factory=list)


def repair(path: Path) -> Repair:
    """Copy every readable row, state entry and the identity into a new file and put it in place of the
    damaged one.

    The original is kept beside it. Also gives the space of an emptied spool back to the disk. Sequence
    numbers go on behind the highest one seen, with a gap, because the damaged tail may have held higher ones
    that were uploaded. Raises SpoolError (no such file, no room), SpoolBusy.
    """
    if not path.exists():
        raise SpoolError(f"there is no spool at {path}")
    lock = WriterLock(path)
    try:
        fresh, copy = path.with_name(path.name + ".repaired"), path.with_name(path.name + ".examined")
        for leftover in (*_database_files(fresh), *_database_files(copy)):
            leftover.unlink(missing_ok=True)
        saved = Repair(_free_name(path))
        with translated(path):
            with closing(_connect_to_damaged(path, copy)) as damaged, closing(connect(fresh)) as whole:
                _salvage(damaged, whole, fresh, saved)
                whole.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                # one file without companions can be renamed safely
                whole.execute("PRAGMA journal_mode=DELETE")
            # With the mark the next start sees what the damaged spool has lost, and leaves its numbers out.
            for suffix in ("", "-wal", "-shm", *(() if saved.is_counted else (".mark",))):
                companion = path.with_name(path.name + suffix)
                if companion.exists():
                    companion.rename(saved.original.with_name(saved.original.name + suffix))
            fresh.rename(path)
            for leftover in _database_files(copy):
                leftover.unlink(missing_ok=True)
        return saved
    finally:
        lock.release()


def _connect_to_damaged(path: Path, copy: Path) -> sqlite3.Connection:
    """A read-only connection; to a copy if the first bytes are damaged, which are the same in every spool."""
    with path.open("rb") as file:
        is_readable = file.read(len(HEADER)) == HEADER
    if not is_readable:
        _copy_with_header(path, copy)
    name = path if is_readable else copy
    db = sqlite3.connect(f"{name.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    db.text_factory = readable
    return db


def _copy_with_header(path: Path, copy: Path) -> None:
    with path.open("rb") as source, copy.open("wb") as target:
        target.write(HEADER)
        source.seek(len(HEADER))
        while block := source.read(1 << 20):
            target.write(block)
    log = path.with_name(path.name + "-wal")
    if log.exists():
        copy.with_name(copy.name + "-wal").write_bytes(log.read_bytes())


def _salvage(damaged: sqlite3.Connection, whole: sqlite3.Connection, path: Path, saved: Repair) -> None:
    with transaction(whole, path):
        for key, value in rows_of(damaged, "SELECT key, value FROM meta", saved.lost):
            if key in KEPT_SETTINGS and isinstance(value, str):
                whole.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
        _salvage_rows(damaged, whole, saved)
        for found in rows_of(damaged, "SELECT key, body, checksum FROM state", saved.lost):
            if is_intact_state(*found):
                whole.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", found)
                saved.state += 1
        for found in rows_of(
            damaged, f"SELECT {_columns(damaged, 'files', FILE_COLUMNS)} FROM files", saved.lost
        ):
            if None not in found:  # the uploader checks more
                whole.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", found)
        _salvage_counters(damaged, whole, saved)


def _salvage_rows(damaged: sqlite3.Connection, whole: sqlite3.Connection, saved: Repair) -> None:
    for found in _from_both_ends(damaged, "rows", _columns(damaged, "rows", ROW_COLUMNS), saved.lost):
        if SpooledRow(*found).is_intact:
            saved.highest = max(saved.highest, found[0])
            is_new = whole.execute("INSERT OR IGNORE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)", found).rowcount
            saved.rows += is_new  # pages that point to each other in a circle give rows twice
            saved.bytes += is_new * (len(found[4]) + ROW_OVERHEAD_BYTES)
        else:
            _put_aside(whole, (*found, DAMAGED), saved)
    columns = _columns(damaged, "set_aside", f"{ROW_COLUMNS}, reason")
    for found in _from_both_ends(damaged, "set_aside", columns, saved.lost):
        _put_aside(whole, found, saved)


def _put_aside(whole: sqlite3.Connection, found: tuple[Any, ...], saved: Repair) -> None:
    seq, rule, date, created_ms, body, check, schema, reason = found
    body = body if isinstance(body, bytes) else str(body or "").encode()
    values = (seq, rule, date, created_ms, body, check, str(reason), str(schema))
    is_new = whole.execute("INSERT OR IGNORE INTO set_aside VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values).rowcount
    saved.set_aside += is_new
    saved.bytes += is_new * (len(body) + ROW_OVERHEAD_BYTES)


def _salvage_counters(damaged: sqlite3.Connection, whole: sqlite3.Connection, saved: Repair) -> None:
    counters = {
        name: value
        for name, value in rows_of(damaged, "SELECT name, value FROM counters", saved.lost)
        if name in (*SPOOL_COUNTERS, "changes", "rows") and isinstance(value, int) and 0 <= value < SEQ_MAX
    }
    saved.is_counted = "changes" in counters
    held = saved.rows + saved.set_aside
    saved.missing = max(0, counters.get("rows", 0) - held)
    counters |= {"rows": held, "bytes": saved.bytes, "lost": counters.get("lost", 0) + saved.missing}
    whole.executemany("INSERT OR REPLACE INTO counters VALUES (?, ?)", list(counters.items()))
    for (seq,) in rows_of(damaged, "SELECT seq FROM sqlite_sequence WHERE name = 'rows'", saved.lost):
        if isinstance(seq, int) and seq < SEQ_MAX // 2:
            saved.highest = max(saved.highest, seq)
    whole.execute("DELETE FROM sqlite_sequence WHERE name = 'rows'")
    highest = saved.highest + (SEQ_GAP if saved.lost else 0)
    whole.execute("INSERT INTO sqlite_sequence VALUES ('rows', ?)", (highest,))


def _columns(damaged: sqlite3.Connection, table: str, columns: str) -> str:
    """The columns to read; empty text for those that a spool of version 1 lacks."""
    there = {found[1] for found in rows_of(damaged, f"PRAGMA table_info({table})", [])}
    return ", ".join(name if name in there else "''" for name in columns.split(", "))


def _from_both_ends(
    damaged: sqlite3.Connection, table: str, columns: str, lost: list[str]
) -> Iterator[tuple[Any, ...]]:
    """Every row before the first page that cannot be read, then every row behind the last such page."""
    query, found_before, seq = f"SELECT {columns} FROM {table} NOT INDEXED ORDER BY seq", len(lost), -(2**63)
    for found in rows_of(damaged, query, lost):
        seq = found[0]
        yield found
    if len(lost) > found_before:
        for found in rows_of(damaged, query + " DESC", []):
            if found[0] <= seq:
                return
            yield found


def _database_files(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]


def _free_name(path: Path) -> Path:
    number = 1
    while (candidate := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return candidate

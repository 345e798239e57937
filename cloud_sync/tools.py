"""`penstock spool ls | verify | export | repair | replay`: looking into a spool and mending it by hand.

`ls`, `verify` and `export` open the file read-only and work beside a running gateway. `repair` and `replay` write, so
the gateway must be stopped (SpoolBusy otherwise).
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cloud_sync.database import WriterLock, connect, connect_read_only, transaction, translated
from cloud_sync.errors import SpoolError
from cloud_sync.records import ROW_OVERHEAD_BYTES, SpooledRow, line
from cloud_sync.spool import ROW_BYTES, ROW_COLUMNS, Spool
from cloud_sync.targets.base import Target
from cloud_sync.uploader import Uploader


@dataclass(frozen=True, slots=True)
class Group:
    """The waiting rows of one rule and UTC date."""

    rule: str
    date: str
    rows: int
    bytes: int
    first_seq: int
    last_seq: int
    oldest_ms: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `verify` found. `is_sound` needs all of them to be right."""

    rows: int
    damaged_rows: tuple[int, ...]
    damaged_state: tuple[str, ...]
    set_aside: tuple[tuple[int, str], ...]
    structure: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Nothing is damaged; rows set aside for another reason do not count."""
        return not (self.damaged_rows or self.damaged_state or self.structure)


@dataclass(frozen=True, slots=True)
class Repair:
    """What `repair` saved, and where the damaged original lies now."""

    rows: int
    set_aside: int
    state: int
    lost: tuple[str, ...]
    original: Path


def ls(path: Path) -> list[Group]:
    """The waiting rows by rule and date, oldest first."""
    query = (
        f"SELECT rule, date, count(*), sum({ROW_BYTES}), min(seq), max(seq), min(created_ms) "
        "FROM rows GROUP BY rule, date ORDER BY min(seq)"
    )
    with closing(connect_read_only(path)) as db, translated(path):
        return [Group(*found) for found in db.execute(query)]


def verify(path: Path) -> Verdict:
    """Check the structure of the file and every checksum, without changing anything."""
    structure: list[str] = []
    with closing(connect_read_only(path)) as db:
        structure += [text for (text,) in _readable(db, "PRAGMA integrity_check(20)", structure) if text != "ok"]
        rows, damaged = 0, []
        for found in _readable(db, f"SELECT {ROW_COLUMNS} FROM rows ORDER BY seq", structure):
            rows += 1
            if not _is_intact(found):
                damaged.append(found[0])
        state = _readable(db, "SELECT key, body, checksum FROM state", structure)
        wrong = tuple(key for key, body, check in state if zlib.crc32(body, zlib.crc32(key.encode())) != check)
        aside = tuple((seq, reason) for seq, reason in _readable(db, "SELECT seq, reason FROM set_aside", structure))
    return Verdict(rows, tuple(damaged), wrong, aside, tuple(structure))


def export(path: Path, out: IO[bytes], *, rule: str | None = None, set_aside: bool = False) -> int:
    """Write intact waiting rows (or those set aside) as the JSON lines an upload would hold; returns how many."""
    table = "set_aside" if set_aside else "rows"
    written = 0
    with closing(connect_read_only(path)) as db, translated(path):
        meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
        query = f"SELECT {ROW_COLUMNS} FROM {table} WHERE ? IS NULL OR rule = ? ORDER BY seq"
        for found in db.execute(query, (rule, rule)):
            row = SpooledRow(*found)
            if row.is_intact:
                out.write(line(row, meta["gateway"], meta["spool_id"]))
                written += 1
    return written


def replay(path: Path, gateway: str, target: Target, now_ms: int) -> int:
    """Put intact rows that were set aside back in line and upload everything now; returns the rows uploaded.

    Raises TargetError when the target fails; what was uploaded until then is acknowledged.
    """
    spool = Spool(path, gateway)
    try:
        spool.restore_set_aside()
        uploader = Uploader(spool, target)
        uploader.drain(now_ms)
        return uploader.stats.rows
    finally:
        spool.close()


def repair(path: Path) -> Repair:
    """Copy every readable row, state entry and the identity into a new file and put it in place of the damaged one.

    The original is kept beside it. Also gives the space of an emptied spool back to the disk. Sequence numbers go on
    behind the highest one seen, with a gap, because the damaged tail may have held higher ones that were uploaded.
    """
    if not path.exists():
        raise SpoolError(f"there is no spool at {path}")
    lock = WriterLock(path)
    try:
        fresh = path.with_name(path.name + ".repaired")
        for leftover in _database_files(fresh):
            leftover.unlink(missing_ok=True)
        with closing(sqlite3.connect(path, isolation_level=None)) as damaged, closing(connect(fresh)) as whole:
            result = _salvage(damaged, whole, fresh)
            whole.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            whole.execute("PRAGMA journal_mode=DELETE")  # one file without companions can be renamed safely
        original = _free_name(path)
        for suffix in ("", "-wal", "-shm"):
            companion = path.with_name(path.name + suffix)
            if companion.exists():
                companion.rename(original.with_name(original.name + suffix))
        fresh.rename(path)
        return Repair(*result, original)
    finally:
        lock.release()


SEQ_GAP = 1_000_000
"""Sequence numbers left out after a repair."""


def _salvage(
    damaged: sqlite3.Connection, whole: sqlite3.Connection, path: Path
) -> tuple[int, int, int, tuple[str, ...]]:
    lost: list[str] = []
    rows = aside = state = size = highest = 0
    with transaction(whole, path):
        for key, value in _readable(damaged, "SELECT key, value FROM meta", lost):
            whole.execute("INSERT INTO meta VALUES (?, ?)", (key, value))
        for found in _rows_from_both_ends(damaged, lost):
            intact = _is_intact(found)
            table, extra = ("rows", ()) if intact else ("set_aside", ("checksum does not fit",))
            marks = ", ".join("?" * (6 + len(extra)))
            whole.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", (*found, *extra))
            rows, aside = rows + intact, aside + (not intact)
            size += len(found[4]) + ROW_OVERHEAD_BYTES
            highest = max(highest, found[0])
        for found in _readable(damaged, f"SELECT {ROW_COLUMNS}, reason FROM set_aside", lost):
            whole.execute("INSERT OR REPLACE INTO set_aside VALUES (?, ?, ?, ?, ?, ?, ?)", found)
            aside, size = aside + 1, size + len(found[4] or b"") + ROW_OVERHEAD_BYTES
        for found in _readable(damaged, "SELECT key, body, checksum FROM state", lost):
            whole.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", found)
            state += 1
        for found in _readable(damaged, "SELECT * FROM files", lost):
            whole.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)", found)
        for name, value in _readable(damaged, "SELECT name, value FROM counters", lost):
            whole.execute("INSERT INTO counters VALUES (?, ?)", (name, value))
        whole.executemany("INSERT OR REPLACE INTO counters VALUES (?, ?)", [("rows", rows + aside), ("bytes", size)])
        for (seq,) in _readable(damaged, "SELECT seq FROM sqlite_sequence WHERE name = 'rows'", lost):
            highest = max(highest, seq)
        whole.execute("DELETE FROM sqlite_sequence WHERE name = 'rows'")
        whole.execute("INSERT INTO sqlite_sequence VALUES ('rows', ?)", (highest + (SEQ_GAP if lost else 0),))
    return rows, aside, state, tuple(lost)


def _is_intact(found: tuple[Any, ...]) -> bool:
    try:
        return SpooledRow(*found).is_intact
    except (TypeError, AttributeError):
        return False


def _rows_from_both_ends(damaged: sqlite3.Connection, lost: list[str]) -> Iterator[tuple[Any, ...]]:
    """Every row before the first page that cannot be read, then every row behind the last such page."""
    query, found_before, seq = f"SELECT {ROW_COLUMNS} FROM rows NOT INDEXED ORDER BY seq", len(lost), 0
    for found in _readable(damaged, query, lost):
        seq = found[0]
        yield found
    if len(lost) > found_before:
        for found in _readable(damaged, query + " DESC", []):
            if found[0] <= seq:
                return
            yield found


def _readable(db: sqlite3.Connection, query: str, lost: list[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of a query up to the first page that cannot be read; what stopped it goes to `lost`."""
    try:
        yield from db.execute(query)
    except sqlite3.Error as error:
        table = query.partition(" FROM ")[2].split()
        lost.append(f"{table[0] if table else query}: {error}")


def _database_files(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]


def _free_name(path: Path) -> Path:
    number = 1
    while (candidate := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return candidate

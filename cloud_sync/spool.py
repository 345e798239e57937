"""The spool: rows on their way to the cloud, kept on disk until the cloud has them.

    append -> pending (memory) -> commit: ONE transaction of rows and the numbers of the last ones -> durable
                                              -> the uploader plans a file, uploads it, acknowledges -> deleted

* Rows come with numbers that a replay of their inputs reproduces; those that are stored already are ignored.
* A commit groups whatever was appended until then. Whoever owns the clock calls `commit` when `due_ms` is reached.
* Every row carries a checksum. A row that does not fit its checksum is set aside and counted; the others go on.
* The backlog stays on disk: only one file's rows are ever in memory.

`append` may be called while another thread is inside `commit`; all methods are thread-safe. Time is an argument.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cloud_sync.database import WriterLock, connect, transaction, translated
from cloud_sync.errors import SpoolError, SpoolFull
from cloud_sync.files import Reserve
from cloud_sync.records import ROW_OVERHEAD_BYTES, Record, SpooledRow, checksum
from cloud_sync.spool_types import COUNTERS, OnFull, Origin, PlannedFile, SpoolSettings, SpoolStats, Ticket

ROW_BYTES = f"length(body) + {ROW_OVERHEAD_BYTES}"
ROW_COLUMNS = "seq, rule, date, created_ms, body, checksum"

MARK_PREFIX = "mark:"
"""Keys of the state that hold the number of the last row of an origin."""

CHUNK_BYTES = 500_000
"""Rows stored in one transaction, in bytes."""

VACUUM_PAGES = 200
"""Free pages given back to the disk at a time, while there are more."""

DELETED_BYTES = 1_000_000
"""Rows deleted in one transaction, in bytes."""


class Spool:
    """One gateway's spool. Close it to release the file for other processes."""

    def __init__(self, path: Path, gateway: str, settings: SpoolSettings | None = None) -> None:
        """Open or create. Raises SpoolBusy, SpoolVersion, SpoolCorrupt, or SpoolError if it is another gateway's."""
        self.path = path
        self.gateway = gateway
        self.settings = settings or SpoolSettings()
        self._lock = threading.RLock()  # the connection and what is durable
        self._pending_lock = threading.Lock()
        self._pending: list[Pending] = []
        self._tickets: list[Ticket] = []
        self._pending_bytes = 0
        self._pending_since_ms = 0
        self._marks: dict[str, int] = {}  # the number of the last row taken, by the key of its origin
        self._counted: Counter[str] = Counter()  # not yet in the database
        self._disk_full = False
        self._reserve = Reserve(path.with_name(path.name + ".reserve"), self.settings.reserve_bytes)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = WriterLock(path)
        with contextlib.ExitStack() as undo:
            undo.callback(self._writer.release)
            self._db = self._open_or_make_room()
            undo.callback(self._db.close)
            self._load()
            undo.pop_all()
        self._reserve.claim()

    def _open_or_make_room(self) -> sqlite3.Connection:
        """Open; on a full disk with the space of the reserve, for SQLite needs some to begin with."""
        try:
            return connect(self.path)
        except SpoolFull:
            if not self._reserve.free():
                raise
            return connect(self.path)

    def _load(self) -> None:
        with transaction(self._db, self.path):
            self.spool_id = self._identity()
            self._next_seq = self._number("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'rows'") + 1
            self._bytes = self._number("SELECT value FROM counters WHERE name = 'bytes'")
            self._rows = self._number("SELECT value FROM counters WHERE name = 'rows'")
        self._marks = {key.removeprefix(MARK_PREFIX): int(body) for key, body in self.state(MARK_PREFIX).items()}

    def _identity(self) -> str:
        """The random id given at creation: sequence numbers are unique only within the life of one spool."""
        meta = dict(self._db.execute("SELECT key, value FROM meta").fetchall())
        if meta.get("gateway", self.gateway) != self.gateway and self._number("SELECT count(*) FROM rows"):
            raise SpoolError(
                f"spool {self.path} holds rows of gateway {meta['gateway']!r}, not {self.gateway!r}; "
                "upload them under the old id first (penstock spool replay), or move the spool away"
            )
        spool_id = str(meta.get("spool_id") or os.urandom(6).hex())
        if meta.get("gateway") != self.gateway:  # an unchanged spool opens without writing, even on a full disk
            values = [("gateway", self.gateway), ("spool_id", spool_id)]
            self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)
        return spool_id

    # --- writing -------------------------------------------------------------------------------------------------

    def mark(self, key: str) -> int:
        """The number of the last row taken from an origin; 0 when there is none."""
        return self._marks.get(key, 0)

    def append(self, records: Sequence[Record], now_ms: int, origin: Origin | None = None) -> Ticket:
        """Take rows for the next commit, all or (raising SpoolFull) none. Only memory is touched.

        Rows of an `origin` that were taken before are ignored. Raises ValueError for a record that is larger than the
        whole spool may be.
        """
        settings = self.settings
        first = last = 0
        if origin is not None:
            last = origin.first + len(records) - 1
            first = max(origin.first, self.mark(origin.key) + 1)
            records = records[first - origin.first :]
        size = sum(record.size_bytes for record in records)
        for record in records:
            if record.size_bytes > settings.bytes_max:
                raise ValueError(
                    f"a row of {record.size_bytes} bytes cannot enter a spool of {settings.bytes_max} bytes"
                )
        ticket = Ticket()
        with self._pending_lock:
            room = settings.bytes_max - self._bytes - self._pending_bytes
            if size > room and settings.on_full == "drop_newest":
                records = self._that_fit(records, room)
            elif size > room and settings.on_full == "block" and self._bytes > 0:
                # An empty spool takes even more than the cap: refusing could never end, as nothing can be uploaded.
                raise SpoolFull(
                    f"spool {self.path} is full: {settings.bytes_max - room} of {settings.bytes_max} bytes; "
                    "rows are refused until some are uploaded"
                )
            if not self._pending:
                self._pending_since_ms = now_ms
            key = origin.key if origin is not None else None
            self._pending += [Pending(record, now_ms, key, number) for number, record in enumerate(records, first)]
            self._pending_bytes += sum(record.size_bytes for record in records)
            self._tickets.append(ticket)
            if origin is not None and last > self.mark(origin.key):
                self._marks[origin.key] = last
        return ticket

    def _that_fit(self, records: Sequence[Record], room: int) -> list[Record]:
        kept: list[Record] = []
        for record in records:
            room -= record.size_bytes
            if room < 0:
                break
            kept.append(record)
        self._counted["dropped_newest"] += len(records) - len(kept)
        return kept

    @property
    def due_ms(self) -> int | None:
        """When `commit` should be called for what is pending: in the past if the group is full; None if empty."""
        with self._pending_lock:
            if not self._tickets:
                return None
            full = len(self._pending) >= self.settings.group_rows
            return self._pending_since_ms + (0 if full else self.settings.group_wait_ms)

    def commit(self, now_ms: int, state: Mapping[str, bytes | None] | None = None) -> int:
        """Make pending rows and `state` durable in one transaction; returns the number of rows.

        `state` holds values by key; None deletes a key. A large group takes several transactions, each with the numbers
        of its rows, because the log of a single one needs more room than a full disk has. When this raises, what was
        not stored is still pending: SpoolFull (disk full) may pass when the uploader has made room.
        """
        with self._lock:
            with self._pending_lock:
                group, tickets = self._pending, self._tickets
                self._pending, self._tickets = [], []
            done = 0
            if group or state or self._counted or self.settings.age_max_ms is not None:
                try:
                    for chunk in _chunks(group):
                        self._store_or_make_room(chunk, now_ms, {} if done else state or {})
                        done += len(chunk)
                except BaseException:
                    self._take_back(group[done:], tickets)
                    raise
            with self._pending_lock:
                self._pending_bytes = sum(waiting.record.size_bytes for waiting in self._pending)
                if self._pending:
                    self._pending_since_ms = self._pending[0].created_ms
        for ticket in tickets:
            ticket.resolve()
        return len(group)

    def _take_back(self, group: list[Pending], tickets: list[Ticket]) -> None:
        with self._pending_lock:
            self._pending[:0] = group
            self._tickets[:0] = tickets

    def _store_or_make_room(self, group: list[Pending], now_ms: int, state: Mapping[str, bytes | None]) -> None:
        """Store; when the disk is full, give the reserve to the uploader's deletions, or drop the oldest rows."""
        if self._disk_full and self._rows and not self._reserve.claim():
            raise SpoolFull(
                f"the disk of spool {self.path} is still full; free space, or wait for uploads to make room"
            )
        self._disk_full = False
        try:
            self._store(group, now_ms, state)
        except SpoolFull:
            self._use_reserve()
            if self.settings.on_full == "drop_oldest" and self._rows:
                with self._changing() as change:
                    self._delete_oldest(change, excess=sum(waiting.record.size_bytes for waiting in group))
                self._store(group, now_ms, state)
                return
            self._disk_full = True
            raise

    def _store(self, group: list[Pending], now_ms: int, state: Mapping[str, bytes | None]) -> None:
        values = [
            (
                seq,
                record.rule,
                record.date,
                created_ms,
                record.body,
                checksum(seq, record.rule, record.date, record.body),
            )
            for seq, (record, created_ms, _, _) in enumerate(group, self._next_seq)
        ]
        with self._changing(appended=len(values)) as change:
            self._db.executemany(f"INSERT INTO rows ({ROW_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", values)
            change.rows += len(values)
            change.bytes += sum(waiting.record.size_bytes for waiting in group)
            for key, body in {**state, **_marks_of(group)}.items():
                if body is None:
                    self._db.execute("DELETE FROM state WHERE key = ?", (key,))
                else:
                    stored = (key, body, zlib.crc32(body, zlib.crc32(key.encode())))
                    self._db.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", stored)
            if self.settings.age_max_ms is not None:
                self._delete_expired(change, now_ms - self.settings.age_max_ms)
            if self.settings.on_full == "drop_oldest":
                self._delete_oldest(change, excess=self._bytes + change.bytes - self.settings.bytes_max)
        self._next_seq += len(values)
        self._reserve.claim()

    def _delete_expired(self, change: _Change, before_ms: int) -> None:
        for table in ("rows", "set_aside"):
            change.counted["expired"] += self._delete(change, table, "created_ms < ?", (before_ms,))

    def _delete_oldest(self, change: _Change, excess: int) -> None:
        """Make room for `excess` bytes: first what is set aside, then the oldest rows, but none of a planned file."""
        not_planned = (
            "NOT EXISTS (SELECT 1 FROM files f WHERE f.rule = t.rule AND f.date = t.date "
            "AND t.seq BETWEEN f.first_seq AND f.last_seq)"
        )
        for table in ("set_aside", "rows"):
            if excess <= 0:
                return
            query = f"SELECT seq, {ROW_BYTES} FROM {table} t WHERE {not_planned} ORDER BY seq"
            doomed: list[tuple[int]] = []
            for seq, size in self._db.execute(query):
                doomed.append((seq,))
                excess -= size
                change.bytes -= size
                if excess <= 0:
                    break
            self._db.executemany(f"DELETE FROM {table} WHERE seq = ?", doomed)
            change.rows -= len(doomed)
            change.counted["dropped_oldest"] += len(doomed)

    # --- state ---------------------------------------------------------------------------------------------------

    def state(self, prefix: str = "") -> dict[str, bytes]:
        """The stored state by key, for keys that begin with `prefix`. A damaged entry is left out and counted."""
        with self._lock, translated(self.path):
            query = "SELECT key, body, checksum FROM state WHERE substr(key, 1, ?) = ? ORDER BY key"
            found = self._db.execute(query, (len(prefix), prefix)).fetchall()
        intact = {key: body for key, body, check in found if zlib.crc32(body, zlib.crc32(key.encode())) == check}
        self._counted["corrupt_state"] += len(found) - len(intact)
        return intact

    # --- for the uploader ----------------------------------------------------------------------------------------

    def planned(self) -> PlannedFile | None:
        """The file whose upload was begun and is not acknowledged yet."""
        with self._lock, translated(self.path):
            found = self._db.execute("SELECT * FROM files ORDER BY rowid LIMIT 1").fetchone()
        return None if found is None else _planned_file(found)

    def oldest(self) -> SpooledRow | None:
        """The row that has waited longest; the next file is that of its rule and date."""
        with self._lock, translated(self.path):
            found = self._db.execute(f"SELECT {ROW_COLUMNS} FROM rows ORDER BY seq LIMIT 1").fetchone()
        return None if found is None else SpooledRow(*found)

    def take(
        self, rule: str, date: str, rows_max: int, bytes_max: int, last_seq: int | None = None
    ) -> list[SpooledRow]:
        """The first intact rows of one rule and date up to `last_seq`, not more than the bounds (but at least one).

        Damaged ones are set aside and counted.
        """
        query = f"SELECT {ROW_COLUMNS} FROM rows WHERE rule = ? AND date = ? AND seq <= ? ORDER BY seq"
        taken: list[SpooledRow] = []
        damaged: list[tuple[str, int]] = []
        size = 0
        with self._lock:
            with translated(self.path):
                for found in self._db.execute(query, (rule, date, 2**62 if last_seq is None else last_seq)):
                    row = SpooledRow(*found)
                    if not row.is_intact:
                        damaged.append(("checksum does not fit", row.seq))
                        continue
                    size += len(row.body)
                    if taken and (size > bytes_max or len(taken) == rows_max):
                        break
                    taken.append(row)
            if damaged:
                self._set_aside(damaged, "corrupt_rows", len(damaged))
        return taken

    def plan(self, planned: PlannedFile, instead_of: PlannedFile | None = None) -> None:
        """Make the boundaries of a file durable, before any byte of it is sent."""
        with self._lock:
            self._with_reserve(lambda: self._plan(planned, instead_of))

    def _plan(self, planned: PlannedFile, instead_of: PlannedFile | None) -> None:
        with transaction(self._db, self.path):
            if instead_of is not None:
                self._db.execute("DELETE FROM files WHERE name = ?", (instead_of.name,))
            values = (
                planned.name, planned.rule, planned.date, planned.first_seq, planned.last_seq, planned.rows,
                planned.bytes, planned.sha256,
            )  # fmt: skip
            self._db.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def acknowledge(self, planned: PlannedFile) -> None:
        """The target has the file and its manifest: delete its rows. Doing it twice does nothing.

        The rows go in several transactions, the plan in the last one: a single large one would need more room in the
        log than a full disk has. After a crash in between, the uploader finds the file in place and acknowledges again.
        """
        while True:
            with self._lock:
                last_seq = self._end_of_chunk(planned)
                self._with_reserve(lambda: self._acknowledge(planned, last_seq))  # noqa: B023  called at once
                self._disk_full = False  # the freed pages can be written again
                self._shrink()
                if last_seq == planned.last_seq:
                    return

    def _shrink(self) -> None:
        """Give free pages back to the disk, a few at a time; others of the gateway may need the room."""
        with contextlib.suppress(SpoolError), translated(self.path):
            if self._number("PRAGMA freelist_count") > VACUUM_PAGES:
                self._db.execute(f"PRAGMA incremental_vacuum({VACUUM_PAGES})").fetchall()

    def _end_of_chunk(self, planned: PlannedFile) -> int:
        """The last sequence number to delete in the next transaction."""
        query = "SELECT seq, length(body) FROM rows WHERE rule = ? AND date = ? AND seq BETWEEN ? AND ? ORDER BY seq"
        span = (planned.rule, planned.date, planned.first_seq, planned.last_seq)
        size = 0
        with translated(self.path):
            for seq, length in self._db.execute(query, span):
                size += length + ROW_OVERHEAD_BYTES
                if size >= DELETED_BYTES:
                    return int(seq)
        return planned.last_seq

    def _acknowledge(self, planned: PlannedFile, last_seq: int) -> None:
        with self._changing() as change:
            span = (planned.rule, planned.date, planned.first_seq, last_seq)
            deleted = self._delete(change, "rows", "rule = ? AND date = ? AND seq BETWEEN ? AND ?", span)
            change.counted["uploaded"] += deleted
            if last_seq == planned.last_seq:
                self._db.execute("DELETE FROM files WHERE name = ?", (planned.name,))

    def _with_reserve(self, write: Callable[[], None]) -> None:
        """Write; on a full disk once more with the reserve's space, as what the uploader writes leads to deletions."""
        try:
            write()
        except SpoolFull:
            if not self._use_reserve():
                raise
            write()

    def _use_reserve(self) -> bool:
        """Give the reserve's space to the database: the log is emptied into it and can then be written from its start
        without growing. Whether there was a reserve."""
        if not self._reserve.free():
            return False
        self._counted["reserve_used"] += 1
        with contextlib.suppress(SpoolError), translated(self.path):
            self._db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        return True

    def quarantine(self, planned: PlannedFile, reason: str) -> None:
        """The target holds another content under this name: set the rows aside, so that the others can go on."""
        with self._lock:
            query = "SELECT seq FROM rows WHERE rule = ? AND date = ? AND seq BETWEEN ? AND ?"
            with translated(self.path):
                found = self._db.execute(
                    query, (planned.rule, planned.date, planned.first_seq, planned.last_seq)
                ).fetchall()
            self._set_aside([(reason, seq) for (seq,) in found], "conflicts", 1, planned)

    def cancel(self, planned: PlannedFile) -> None:
        """Forget a plan that has no rows left."""
        with self._lock, transaction(self._db, self.path):
            self._db.execute("DELETE FROM files WHERE name = ?", (planned.name,))

    def restore_set_aside(self) -> int:
        """Put intact rows that were set aside back in line, for `replay`; returns how many. Damaged ones stay."""
        with self._lock, self._changing():
            found = [SpooledRow(*row) for row in self._db.execute(f"SELECT {ROW_COLUMNS} FROM set_aside ORDER BY seq")]
            intact = [(row.seq,) for row in found if row.is_intact]
            copy = f"INSERT INTO rows ({ROW_COLUMNS}) SELECT {ROW_COLUMNS} FROM set_aside WHERE seq = ?"
            self._db.executemany(copy, intact)
            self._db.executemany("DELETE FROM set_aside WHERE seq = ?", intact)
        return len(intact)

    # --- the whole -----------------------------------------------------------------------------------------------

    def stats(self) -> SpoolStats:
        """Present sizes and the counters since the spool was created."""
        with self._lock, translated(self.path):
            counters = dict.fromkeys(COUNTERS, 0)
            counters |= dict(self._db.execute("SELECT name, value FROM counters").fetchall())
            set_aside = self._number("SELECT count(*) FROM set_aside")
            for name, count in self._counted.items():
                counters[name] += count
            rows, size = counters.pop("rows", 0), counters.pop("bytes", 0)
            with self._pending_lock:
                pending = len(self._pending)
        return SpoolStats(rows, size, set_aside, pending, self.settings.bytes_max, counters)

    @property
    def is_pressed(self) -> bool:
        """More than half full: the uploader should not wait for files to fill."""
        return 2 * (self._bytes + self._pending_bytes) > self.settings.bytes_max

    @property
    def waiting_rows(self) -> int:
        """Durable rows, those set aside included."""
        return self._rows

    def close(self) -> None:
        """Checkpoint and release the file. Pending rows are not committed. May be called twice."""
        with self._lock:
            if self._writer is None:
                return
            with contextlib.suppress(SpoolError), translated(self.path):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.close()
            self._writer.release()
            self._writer = None  # type: ignore[assignment]

    # --- inside --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _changing(self, **counted: int) -> Iterator[_Change]:
        """A transaction that keeps the row, byte and event counters in step with the rows."""
        with self._pending_lock:
            notes, self._counted = self._counted, Counter()
        change = _Change(notes + Counter(counted))
        try:
            with transaction(self._db, self.path):
                yield change
                deltas = {**change.counted, "rows": change.rows, "bytes": change.bytes}
                upsert = (
                    "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
                )
                self._db.executemany(upsert, [(name, delta) for name, delta in deltas.items() if delta])
        except BaseException:
            self._counted += notes
            raise
        self._bytes += change.bytes
        self._rows += change.rows

    def _delete(self, change: _Change, table: str, condition: str, values: tuple[object, ...]) -> int:
        """Delete rows and account for them; returns how many."""
        measure = f"SELECT count(*), coalesce(sum({ROW_BYTES}), 0) FROM {table} WHERE {condition}"
        rows, size = self._db.execute(measure, values).fetchone()
        self._db.execute(f"DELETE FROM {table} WHERE {condition}", values)
        change.rows -= rows
        change.bytes -= size
        return int(rows)

    def _set_aside(
        self, reasons: list[tuple[str, int]], counter: str, count: int, planned: PlannedFile | None = None
    ) -> None:
        """Move rows out of the line, each with its reason. Their bytes still count."""
        with self._changing(**{counter: count}):
            copy = f"INSERT INTO set_aside ({ROW_COLUMNS}, reason) SELECT {ROW_COLUMNS}, ? FROM rows WHERE seq = ?"
            self._db.executemany(copy, reasons)
            self._db.executemany("DELETE FROM rows WHERE seq = ?", [(seq,) for _, seq in reasons])
            if planned is not None:
                self._db.execute("DELETE FROM files WHERE name = ?", (planned.name,))

    def _number(self, query: str) -> int:
        found = self._db.execute(query).fetchone()
        return int(found[0]) if found else 0


class Pending(NamedTuple):
    """A row that waits for a commit, with its number among the rows of its origin."""

    record: Record
    created_ms: int
    key: str | None
    number: int


def _chunks(group: list[Pending]) -> Iterator[list[Pending]]:
    """Rows in groups of about `CHUNK_BYTES`; one, perhaps empty, at least."""
    size, first = 0, 0
    for position, waiting in enumerate(group):
        size += waiting.record.size_bytes
        if size >= CHUNK_BYTES:
            yield group[first : position + 1]
            size, first = 0, position + 1
    if first < len(group) or not group:
        yield group[first:]


def _marks_of(group: list[Pending]) -> dict[str, bytes]:
    """The number of the last row of each origin, as state."""
    return {MARK_PREFIX + row.key: str(row.number).encode() for row in group if row.key is not None}


class _Change:
    """What one transaction did to the counters."""

    def __init__(self, counted: Counter[str]) -> None:
        self.counted = counted
        self.rows = 0
        self.bytes = 0


def _planned_file(found: tuple[object, ...]) -> PlannedFile:
    return PlannedFile(*found)  # type: ignore[arg-type]


__all__ = ["OnFull", "PlannedFile", "Spool", "SpoolSettings", "SpoolStats", "Ticket"]

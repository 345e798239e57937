"""The spool's database while it is open: its transactions, the counters that they keep,
and the room on the disk.

Every change of rows is one transaction that updates the counters as well; after it the high-water mark is
written. At the next start the mark shows whether committed changes are lost.

The spool recovers from a full disk by itself because of the reserve, a file of `reserve_bytes`: rows are
stored only while it is whole, so that on a full disk the uploader can use its room to delete uploaded rows.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeGuard, TypeVar

from cloud_sync.errors import SpoolError, SpoolFull
from cloud_sync.spool.database import WriterLock, connect, damaged, transaction, translated
from cloud_sync.spool.high_water import HighWater, Mark, mark_path, read_mark
from cloud_sync.spool.reserve import Reserve
from cloud_sync.spool.types import ROW_BYTES, Lost, SpoolSettings

LOG = logging.getLogger("penstock.spool")

T = TypeVar("T")

VACUUM_PAGES = 256
"""The number of free pages given back to the disk at a time."""

SEQ_GAP = 1_000_000
"""The number of sequence numbers left out after a loss: lost rows may have had some of them."""

SEQ_MAX = 2**61
"""The greatest valid sequence number; a greater one is damage."""

HIGHEST_SEQ = (
    "SELECT max(seq) FROM sqlite_sequence WHERE name = 'rows'",
    "SELECT max(seq) FROM rows",
)

UPSERT = "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"


COUNT_ROWS = "SELECT (SELECT count(*) FROM rows) + (SELECT count(*) FROM set_aside)"


def missing(mark: Mark | None, counters: Mapping[str, int], spool_id: str, found: int) -> Lost:
    """The rows that a spool with `found` rows has lost, by its high-water mark and its own counters."""
    rows, uploaded = max(0, counters.get("rows", 0) - found), 0
    if mark is not None and mark.spool_id != spool_id:
        rows = rows if counters.get("changes", 0) else mark.rows  # the mark of a file that is gone
    elif is_behind(mark, counters, spool_id):
        rows += max(0, mark.appended - counters.get("appended", 0))
        uploaded = max(0, mark.uploaded - counters.get("uploaded", 0))
    # The oldest rows are uploaded first: those that are there again, and only then later ones.
    gone = min(rows, max(0, uploaded - found))
    return Lost(rows - gone, uploaded - gone, gone)


def is_behind(mark: Mark | None, counters: Mapping[str, int], spool_id: str) -> TypeGuard[Mark]:
    """True if a spool lacks changes before its own mark."""
    return mark is not None and mark.spool_id == spool_id and mark.changes > counters.get("changes", 0)


class Change:
    """The changes of the counters by one transaction."""

    def __init__(self, counted: Counter[str]) -> None:
        self.counted = counted
        self.rows = 0
        self.bytes = 0


def retried(work: Callable[[], T], make_room: Callable[[], bool]) -> T:
    """The result of work for which the disk may be too full: again after each piece of room that can be made.
    Raises SpoolFull when there is none left."""
    while True:
        try:
            return work()
        except SpoolFull:
            if not make_room():
                raise


class Store:
    """The connection that writes. All methods are thread-safe; `lock` makes several calls one step."""

    def __init__(self, path: Path, gateway: str, settings: SpoolSettings) -> None:
        """Open or create. Raises SpoolBusy, SpoolVersion, SpoolCorrupt, or SpoolError if it is another
        gateway's."""
        self.path = path
        self.gateway = gateway
        self.lock = threading.RLock()
        self.lost: Lost | None = None
        """Rows that were committed once and are gone; set when the spool is opened."""
        self.is_behind = False
        """True if changes that were committed once are gone; set when the spool is opened."""
        self.opened_seq = 0
        """The highest sequence number when the spool was opened."""
        self.opened: Counter[str] = Counter()
        """The counters when the spool was opened."""
        self._counted: Counter[str] = Counter()  # not yet in the database
        self._counted_lock = threading.Lock()
        self._reserve = Reserve(path.with_name(path.name + ".reserve"), settings.reserve_bytes)
        self._first_seq = settings.first_seq
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._writer: WriterLock | None = WriterLock(path)
        with contextlib.ExitStack() as undo:
            undo.callback(self._writer.release)
            self._high_water = HighWater(mark_path(path))
            undo.callback(self._high_water.close)
            # on a full disk SQLite needs some room to open
            self.db = retried(lambda: connect(self.path), self._reserve.free)
            undo.callback(self.db.close)
            self._load()
            undo.pop_all()
        self._reserve.claim()

    # --- contents -------------------------------------------------------------------------------------------

    def _load(self) -> None:
        try:
            with transaction(self.db, self.path):
                self.spool_id = self._identity()
                stored = dict(self.db.execute("SELECT name, value FROM counters").fetchall())
                self.counters = Counter({name: int(value) for name, value in stored.items()})
                self.next_seq = 1 + max(map(self.number, HIGHEST_SEQ))
                if self.next_seq == 1:
                    self.next_seq = self._first_seq
                if self.next_seq > SEQ_MAX:
                    raise ValueError(f"sequence number {self.next_seq}")
                mark = read_mark(self.path)
                self._compare(mark)
                self.opened_seq = self.next_seq - 1
                self.opened = self.counters.copy()
            if mark is None or mark.spool_id != self.spool_id or self.lost is not None:
                self._high_water.begin(self._mark())
        except (TypeError, ValueError) as error:
            raise damaged(self.path, error) from error

    def _identity(self) -> str:
        """The random id given at creation: sequence numbers are unique only within the life of one spool."""
        meta = dict(self.db.execute("SELECT key, value FROM meta").fetchall())
        if meta.get("gateway", self.gateway) != self.gateway and self.number("SELECT count(*) FROM rows"):
            old = meta["gateway"]
            raise SpoolError(
                f"spool {self.path} holds rows of gateway {old!r}, not {self.gateway!r}; upload them under "
                f"the old id first (penstock spool replay --gateway-id {old} TARGET), or move the spool away"
            )
        spool_id = str(meta.get("spool_id") or os.urandom(6).hex())
        # an unchanged spool opens without writing, even on a full disk
        if meta.get("gateway") != self.gateway:
            values = [("gateway", self.gateway), ("spool_id", spool_id)]
            self.db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)
        return spool_id

    def _compare(self, mark: Mark | None) -> None:
        """Compare the database with the high-water mark and its own counters; note and count lost rows."""
        counters = self.counters
        if mark is None and counters["changes"]:
            LOG.warning(
                "spool.no_mark", extra={"note": "whether rows of the spool are lost cannot be told this time"}
            )
        found = self.number(COUNT_ROWS)
        lost = missing(mark, counters, self.spool_id, found)
        if is_behind(mark, counters, self.spool_id):
            self.is_behind = True
            self.leave_out(mark.last_seq)
            counters |= Counter(changes=mark.changes, appended=mark.appended)
        if self.is_behind or lost.is_some or found != counters["rows"]:
            self._correct_counters(found, lost)

    def leave_out(self, last_seq: int) -> None:
        """Within a transaction: rows to come get numbers behind this one and those that may have followed it,
        also after the next start."""
        self.next_seq = max(self.next_seq, last_seq + 1) + SEQ_GAP
        self.db.execute("DELETE FROM sqlite_sequence WHERE name = 'rows'")
        self.db.execute("INSERT INTO sqlite_sequence VALUES ('rows', ?)", (self.next_seq - 1,))

    def _correct_counters(self, found: int, lost: Lost) -> None:
        size = self.number(f"SELECT coalesce(sum({ROW_BYTES}), 0) FROM rows")
        size += self.number(f"SELECT coalesce(sum({ROW_BYTES}), 0) FROM set_aside")
        self.counters.update(lost=lost.rows, uploaded=lost.gone)
        self.counters["rows"], self.counters["bytes"] = found, size
        self.db.executemany("INSERT OR REPLACE INTO counters VALUES (?, ?)", list(self.counters.items()))
        if lost.is_some:
            self.lost = lost
            LOG.error("spool.lost", extra={"rows": lost.rows, "note": str(lost)})

    @property
    def rows(self) -> int:
        """Durable rows, those set aside included."""
        return self.counters["rows"]

    @property
    def bytes(self) -> int:
        """The size of the durable rows."""
        return self.counters["bytes"]

    def totals(self) -> Counter[str]:
        """The counters, those included that the next transaction stores."""
        with self._counted_lock:
            return self.counters + self._counted

    def number(self, query: str, values: tuple[object, ...] = ()) -> int:
        """The first value of a query; 0 if there is none."""
        found = self.db.execute(query, values).fetchone()
        return int(found[0] or 0) if found else 0

    # --- changes --------------------------------------------------------------------------------------------

    def count(self, name: str, count: int = 1) -> None:
        """Add to a counter; the next transaction stores it."""
        if count:
            with self._counted_lock:
                self._counted[name] += count

    @property
    def has_counted(self) -> bool:
        """True if a counter has changed since the last transaction."""
        return bool(self._counted)

    @contextlib.contextmanager
    def changing(self, **counted: int) -> Iterator[Change]:
        """A transaction that keeps the counters in step with the rows, and raises the high-water mark."""
        with self._counted_lock:
            notes, self._counted = self._counted, Counter()
        change = Change(notes + Counter(counted))
        try:
            with transaction(self.db, self.path):
                yield change
                deltas = {**change.counted, "rows": change.rows, "bytes": change.bytes, "changes": 1}
                self.db.executemany(UPSERT, [(name, delta) for name, delta in deltas.items() if delta])
        except BaseException:
            with self._counted_lock:
                self._counted += notes
            raise
        for name, delta in deltas.items():
            self.counters[name] += delta
        self.next_seq += counted.get("appended", 0)
        self._high_water.write(self._mark())

    def _mark(self) -> Mark:
        found = self.counters
        return Mark(
            found["changes"],
            self.next_seq - 1,
            found["appended"],
            found["uploaded"],
            found["rows"],
            self.spool_id,
        )

    # --- room on the disk -----------------------------------------------------------------------------------

    def has_reserve(self) -> bool:
        """True if the reserve is whole, or could be made whole now."""
        return self._reserve.claim()

    def with_reserve(self, write: Callable[[], None]) -> None:
        """Write; on a full disk again with room of the reserve, piece by piece.
        For writes that lead to deletions."""
        retried(write, self._use_reserve)

    def _use_reserve(self) -> bool:
        """Give room of the reserve to the database: the log is emptied into it and can then be written from
        its start without growing. True if there was any."""
        if not self._reserve.free():
            return False
        self.count("reserve_used")
        with contextlib.suppress(SpoolError), translated(self.path):
            self.db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        return True

    def shrink(self) -> None:
        """Give free pages back to the disk, a few at a time, and make the reserve again."""
        with contextlib.suppress(SpoolError), translated(self.path):
            if self.number("PRAGMA freelist_count") > VACUUM_PAGES:
                # `execute` would step once, and so free one page.
                self.db.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")
            if not self._reserve.claim():  # the file becomes shorter when the log is moved into it
                self.db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
                self._reserve.claim()

    def close(self) -> None:
        """Checkpoint and release the file. May be called twice."""
        with self.lock:
            if self._writer is None:
                return
            with contextlib.suppress(SpoolError), translated(self.path):
                self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.db.close()
            self._high_water.close()
            self._writer.release()
            self._writer = None

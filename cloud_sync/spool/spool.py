"""The spool as the gateway uses it: rows are appended in memory, and a commit makes them durable.

* Rows come with numbers that a replay of their inputs reproduces; rows that are stored already are ignored.
* A commit groups all rows appended until then. The owner of the clock calls `commit` at `due_ms`.
* Every row carries a checksum. A row that does not fit its checksum is set aside and counted;
  the others go on.
* The backlog stays on disk: only one file's rows are ever in memory.

`append` may be called while another thread is inside `commit`; all methods are
thread-safe. Time is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cloud_sync.errors import SpoolFull
from cloud_sync.records import RESULTS, Layout, Record
from cloud_sync.spool.database import translated
from cloud_sync.spool.outgoing import Outgoing
from cloud_sync.spool.pending import Pending, PendingRow, chunks, that_fit
from cloud_sync.spool.rows import Rows
from cloud_sync.spool.state import State
from cloud_sync.spool.store import Store
from cloud_sync.spool.types import SPOOL_COUNTERS, Lost, Origin, SpoolSettings, SpoolStats

MARK_PREFIX = "mark:"
"""Keys of the state that hold the number of the last row of an origin."""

ROOM_BYTES = 1_000_000
"""The least number of bytes of rows that `drop_oldest` deletes at a time on a full disk."""


class Spool:
    """One gateway's spool. Close it to release the file for other processes. `outgoing` is for the
    uploader."""

    def __init__(
        self, path: Path, gateway: str, settings: SpoolSettings | None = None, layout: Layout = RESULTS
    ) -> None:
        """Open or create. `layout`: where its rows go in the bucket.
        Raises SpoolBusy, SpoolVersion, SpoolCorrupt, or SpoolError if it is another gateway's."""
        self.path = path
        self.gateway = gateway
        self.settings = settings or SpoolSettings()
        self._store = Store(path, gateway, self.settings)
        self._rows = Rows(self._store)
        self.layout = layout
        self._state = State(self._store)
        self.outgoing = Outgoing(self._store, self._rows, self._state, layout)
        if self._store.is_behind:
            self.outgoing.skip_beats()
        marks = {key.removeprefix(MARK_PREFIX): int(body) for key, body in self.state(MARK_PREFIX).items()}
        self.pending = Pending(marks)
        self._is_disk_full = False

    @property
    def spool_id(self) -> str:
        """The random id given at creation: sequence numbers are unique only within the life of one spool."""
        return self._store.spool_id

    @property
    def highest_seq(self) -> int:
        """The sequence number of the newest row, 0 before the first."""
        return self._store.next_seq - 1

    @property
    def lost(self) -> Lost | None:
        """Rows that had been committed and were missing when the spool was opened."""
        return self._store.lost

    # --- writing --------------------------------------------------------------------------------------------

    def mark(self, key: str) -> int:
        """The number of the last row taken from an origin; 0 if there is none."""
        return self.pending.mark(key)

    def append(self, records: Sequence[Record], now_ms: int, origin: Origin | None = None) -> None:
        """Take rows for the next commit, all or (raising SpoolFull) none. Only memory is touched.

        Rows of an `origin` that were taken before are ignored. Raises ValueError for a record that is larger
        than the whole spool may be.
        """
        key, first, last = None, 0, 0
        if origin is not None:
            key, last = origin.key, origin.first + len(records) - 1
            first = max(origin.first, self.mark(key) + 1)
            records = records[first - origin.first :]
        bytes_max = self.settings.bytes_max
        for record in records:
            if record.size_bytes > bytes_max:
                raise ValueError(
                    f"a row of {record.size_bytes} bytes cannot enter a spool of {bytes_max} bytes"
                )
        self.pending.add(self._admitted(records), now_ms, key, first, last)

    def _admitted(self, records: Sequence[Record]) -> Sequence[Record]:
        """The rows that the settings let in. Raises SpoolFull."""
        settings = self.settings
        used = self._store.bytes + self.pending.bytes
        if used + sum(record.size_bytes for record in records) <= settings.bytes_max:
            return records
        if settings.on_full == "drop_newest":
            kept = that_fit(records, settings.bytes_max - used)
            self._store.count("dropped_newest", len(records) - len(kept))
            return kept
        if settings.on_full == "block" and self._store.bytes:
            # An empty spool takes even more than the cap: refusing could never end, as
            # nothing can be uploaded.
            raise SpoolFull(
                f"spool {self.path} is full: {used} of {settings.bytes_max} bytes; "
                "rows are refused until some are uploaded"
            )
        return records

    @property
    def due_ms(self) -> int | None:
        """The time at which `commit` should be called for pending rows: in the past if the group is full;
        None if empty."""
        return self.pending.due_ms(self.settings.group_rows, self.settings.group_wait_ms)

    @property
    def pending_rows(self) -> int:
        """Rows that wait for `commit`."""
        return len(self.pending)

    def commit(
        self, now_ms: int, state: Mapping[str, bytes | None] | None = None, rows_max: int | None = None
    ) -> int:
        """Make pending rows (the first `rows_max`) and `state` durable in one transaction;
        returns the number of rows.

        `state` holds values by key; None deletes a key. A large group takes several transactions, each with
        the numbers of its rows, because the log of a single one needs more room than a full disk has. When
        this raises, what was not stored is still pending: SpoolFull (disk full) may pass when the uploader
        has made room.
        """
        with self._store.lock:
            group = self.pending.take(rows_max)
            done = 0
            try:
                if group or state or self._store.has_counted or self.settings.age_max_ms is not None:
                    for chunk in chunks(group):
                        self._store_with_room(chunk, now_ms, {} if done else state or {})
                        done += len(chunk)
            except BaseException:
                self.pending.give_back(group[done:])
                raise
            finally:
                self.pending.settle()
        return len(group)

    def _store_with_room(
        self, group: list[PendingRow], now_ms: int, state: Mapping[str, bytes | None]
    ) -> None:
        """Store while the reserve is whole: so on a full disk the uploader can still delete uploaded rows."""
        try:
            while self._store.rows and not self._store.has_reserve():
                self._make_room(group)
            try:
                self._insert(group, now_ms, state)
            except SpoolFull:
                self._make_room(group)
                self._insert(group, now_ms, state)
        except SpoolFull:
            self._is_disk_full = True
            if state or self.settings.on_full != "drop_newest":
                raise
            self._store.count("dropped_newest", len(group))
        else:
            self._is_disk_full = False

    def _make_room(self, group: list[PendingRow]) -> None:
        """On a full disk: drop the oldest rows. Raises SpoolFull if the settings or the rows do not allow
        it."""
        store, before = self._store, self._store.rows
        if self.settings.on_full == "drop_oldest":
            excess = max(ROOM_BYTES, sum(waiting.record.size_bytes for waiting in group))
            store.with_reserve(lambda: self._drop_oldest(excess))
            store.shrink()
        if store.rows == before:
            raise SpoolFull(
                f"the disk of spool {self.path} is full; free space, or wait for uploads to make room"
            )

    def _drop_oldest(self, excess: int) -> None:
        with self._store.changing() as change:
            self._rows.delete_oldest(change, excess)

    def _insert(self, group: list[PendingRow], now_ms: int, state: Mapping[str, bytes | None]) -> None:
        settings, store = self.settings, self._store
        schemas = self._state.schemas_of(group)
        with store.changing(appended=len(group)) as change:
            self._rows.insert(change, group)
            self._state.write({**state, **schemas, **_marks_of(group)})
            if settings.age_max_ms is not None:
                self._rows.delete_expired(change, now_ms - settings.age_max_ms)
            if settings.on_full == "drop_oldest":
                self._rows.delete_oldest(change, excess=store.bytes + change.bytes - settings.bytes_max)
        self._state.stored(schemas)

    # --- state ----------------------------------------------------------------------------------------------

    def state(self, prefix: str = "") -> dict[str, bytes]:
        """The stored state by key, for keys that begin with `prefix`. A damaged entry is
        left out and counted."""
        return self._state.read(prefix)

    # --- the whole ------------------------------------------------------------------------------------------

    def restore_set_aside(self) -> int:
        """Move intact rows that were set aside back to the waiting ones, for `replay`; their number. Damaged
        ones stay."""
        return self._rows.restore_set_aside()

    def stats(self) -> SpoolStats:
        """Present sizes and the counters since the spool was created."""
        store = self._store
        with store.lock, translated(self.path):
            totals = store.totals()
            set_aside = store.number("SELECT count(*) FROM set_aside")
        counters = {name: totals[name] for name in SPOOL_COUNTERS}
        return SpoolStats(
            store.rows, store.bytes, set_aside, len(self.pending), self.settings.bytes_max, counters
        )

    @property
    def is_pressed(self) -> bool:
        """True if more than half full, or on a full disk: the uploader should not wait for files to fill."""
        return self._is_disk_full or 2 * (self._store.bytes + self.pending.bytes) > self.settings.bytes_max

    @property
    def waiting_rows(self) -> int:
        """Durable rows, those set aside included."""
        return self._store.rows

    def close(self) -> None:
        """Checkpoint and release the file. Pending rows are not committed. May be called twice."""
        self._store.close()


def _marks_of(group: list[PendingRow]) -> dict[str, bytes]:
    """The number of the last row of each origin, as state."""
    return {MARK_PREFIX + row.key: str(row.number).encode() for row in group if row.key is not None}

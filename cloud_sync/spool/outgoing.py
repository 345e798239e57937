"""The side of the spool that the uploader uses: take the next rows, plan their file, acknowledge its upload.

first -> take -> plan (durable) -> ... uploaded ... -> acknowledge (rows deleted, durable)
"""

from __future__ import annotations

from dataclasses import astuple

import msgspec

from cloud_sync.records import Layout, SpooledRow
from cloud_sync.spool.branch import Branch, LeftOut, taken_over
from cloud_sync.spool.database import damaged, transaction, translated
from cloud_sync.spool.rows import OF_FILE, Rows
from cloud_sync.spool.state import State
from cloud_sync.spool.store import SEQ_GAP, Store
from cloud_sync.spool.types import FILE_COLUMNS, PlannedFile

DELETED_BYTES = 1_000_000
"""The bytes of rows deleted in one transaction."""

ANY_SEQ = 2**62

BEAT = "beat"
"""The key of the state that holds the number of the last heartbeat."""

LEFT_OUT = "left_out"
"""The key of the state that holds the numbers which were left out for other branches."""

COMMON = "SELECT (SELECT count(*) FROM rows WHERE seq <= ?) + (SELECT count(*) FROM set_aside WHERE seq <= ?)"
"""The number of rows up to a sequence number."""


class Outgoing:
    """The rows to upload, and the file whose upload was begun. Thread-safe."""

    def __init__(self, store: Store, rows: Rows, state: State, layout: Layout) -> None:
        self._store = store
        self._rows = rows
        self._state = state
        self._layout = layout

    def oldest(self) -> SpooledRow | None:
        """The row that has waited longest; the next file is that of its rule and date."""
        return self._rows.first()

    def take(
        self, rule: str, date: str, rows_max: int, bytes_max: int, last_seq: int = ANY_SEQ, schema: str = ""
    ) -> list[SpooledRow]:
        """The first intact rows of one rule, date and schema up to `last_seq`, not more than the
        bounds (but at least one)."""
        return self._rows.take((rule, date, schema), rows_max, bytes_max, last_seq)

    def check_left(self, row: SpooledRow) -> None:
        """Raises SpoolCorrupt if this row, of whose file nothing was found, still waits: the index has lost
        it."""
        left = self.oldest()
        if left is not None and left.seq == row.seq:
            raise damaged(self._store.path, f"its index does not have row {row.seq}")

    def schema(self, key: str) -> bytes | None:
        """The content of a schema that rows name; None if it is damaged."""
        return self._state.schema(key)

    def planned(self) -> PlannedFile | None:
        """The file whose upload was begun and is not acknowledged yet. A damaged plan is
        forgotten: its rows wait."""
        store = self._store
        with store.lock:
            with translated(store.path):
                found = store.db.execute(f"SELECT {FILE_COLUMNS} FROM files ORDER BY rowid").fetchall()
            for values in found:
                planned = PlannedFile(*values)
                if self._is_intact(planned):
                    return planned
                self.cancel(planned)
        return None

    def plan(self, planned: PlannedFile, instead_of: PlannedFile | None = None) -> bool:
        """Make the boundaries of a file durable, before any byte of it is sent. From then on
        no row of it is dropped.

        False, and nothing is planned, if a full spool has dropped some of the rows since they were taken:
        they are counted as dropped, so they may not be uploaded.
        """
        store = self._store
        with store.lock:
            with translated(store.path):
                found = store.number(f"SELECT count(*) FROM rows WHERE {OF_FILE}", planned.span())
            if instead_of is None and found != planned.rows:
                return False
            store.with_reserve(lambda: self._plan(planned, instead_of))
        return True

    def _plan(self, planned: PlannedFile, instead_of: PlannedFile | None) -> None:
        db = self._store.db
        with transaction(db, self._store.path):
            if instead_of is not None:
                db.execute("DELETE FROM files WHERE name = ?", (instead_of.name,))
            db.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(planned))

    def acknowledge(self, planned: PlannedFile) -> None:
        """The target has the file and its manifest: delete its rows. Doing it twice does nothing.

        The rows go in several transactions, the plan in the last one: a single large one would need more room
        in the log than a full disk has. After a crash in between, the uploader finds the file in place and
        acknowledges again.
        """
        while True:
            with self._store.lock:
                last_seq = self._rows.end_of_chunk(planned.span(), DELETED_BYTES)
                # The lambda is called at once.
                self._store.with_reserve(lambda: self._delete(planned, last_seq))  # noqa: B023
                self._store.shrink()
                if last_seq == planned.last_seq:
                    return

    def _delete(self, planned: PlannedFile, last_seq: int) -> None:
        with self._store.changing() as change:
            change.counted["uploaded"] += self._rows.delete(change, "rows", OF_FILE, planned.span(last_seq))
            if last_seq == planned.last_seq:
                self._store.db.execute("DELETE FROM files WHERE name = ?", (planned.name,))

    def set_aside(self, planned: PlannedFile, reason: str, **counted: int) -> None:
        """The target will not take this file: set its rows aside, so that the others can go on."""
        with self._store.lock:
            with translated(self._store.path):
                query = f"SELECT seq FROM rows WHERE {OF_FILE}"
                found = self._store.db.execute(query, planned.span()).fetchall()
            self._rows.set_aside([(reason, seq) for (seq,) in found], forget=planned.name, **counted)

    def cancel(self, planned: PlannedFile) -> None:
        """Forget a plan."""
        with self._store.lock, transaction(self._store.db, self._store.path):
            self._store.db.execute("DELETE FROM files WHERE name = ?", (planned.name,))

    def beat(self) -> int:
        """The number of the last heartbeat; 0 before the first."""
        return int(self._state.read(BEAT).get(BEAT, b"0"))

    def next_beat(self) -> int:
        """The number of the next heartbeat, durable before that is written."""
        beat = self.beat() + 1
        with self._store.lock:
            self._store.with_reserve(lambda: self._note_beat(beat))
        return beat

    def skip_beats(self) -> None:
        """Leave out the numbers of heartbeats that are lost, so that one of them is not taken for that of
        another branch."""
        self._store.with_reserve(lambda: self._note_beat(self.beat() + SEQ_GAP))

    def _note_beat(self, beat: int) -> None:
        with self._store.changing():
            self._state.write({BEAT: str(beat).encode()})

    def leave_out(self, other: Branch) -> None:
        """Give rows that were stored since the spool was opened, and those to come, numbers behind those of
        another branch of this spool, of which it may have given more than it has told. Earlier rows keep
        theirs, because the other branch has them too. The counters are those of both branches from now on."""
        store = self._store
        with store.lock:
            last_seq = store.next_seq - 1
            store.with_reserve(lambda: self._leave_out(other))
            store.with_reserve(lambda: self._rows.renumber(store.opened_seq, last_seq))
            store.with_reserve(lambda: self._note_beat(other.beat))

    def _leave_out(self, other: Branch) -> None:
        store, known = self._store, self.left_out()
        with store.changing() as change:
            store.leave_out(other.highest_seq)
            common = store.number(COMMON, (store.opened_seq, store.opened_seq))
            change.counted.update(taken_over(other, store.counters, store.opened, common))
            # A kill before the heartbeat was noted comes here again: what it left out then holds all of this.
            if all(left.beat != other.beat for left in known):
                known.append(LeftOut(other.highest_seq, store.next_seq, other.beat))
                self._state.write({LEFT_OUT: msgspec.json.encode(known)})

    def left_out(self) -> list[LeftOut]:
        """The numbers that were left out for other branches of this spool, from the first one."""
        return msgspec.json.decode(self._state.read(LEFT_OUT).get(LEFT_OUT, b"[]"), type=list[LeftOut])

    def _is_intact(self, planned: PlannedFile) -> bool:
        """True if the name, which follows from the other fields, is the planned one."""
        rule, date, _, first_seq, last_seq = planned.span()
        try:
            name = self._layout.file(self._store.gateway, rule, date, first_seq, last_seq, planned.sha256)
        except (TypeError, AttributeError, ValueError):
            return False
        return planned.name == name

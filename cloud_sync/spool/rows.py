"""The tables of rows and of rows set aside, within the transactions of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, replace

from cloud_sync.records import ROW_OVERHEAD_BYTES, Record, SpooledRow, checksum
from cloud_sync.spool.database import translated
from cloud_sync.spool.pending import PendingRow
from cloud_sync.spool.store import Change, Store
from cloud_sync.spool.types import ROW_BYTES, ROW_COLUMNS

DAMAGED = "checksum does not fit"

OF_FILE = "rule = ? AND date = ? AND schema = ? AND seq BETWEEN ? AND ?"
"""The rows of a file: the parameters are its `PlannedFile.span`."""

NOT_PLANNED = (
    "NOT EXISTS (SELECT 1 FROM files f WHERE f.rule = t.rule AND f.date = t.date AND f.schema = t.schema "
    "AND t.seq BETWEEN f.first_seq AND f.last_seq)"
)


MOVED_ROWS = 500
"""The number of rows that get other sequence numbers in one transaction."""


class Rows:
    """The operations on stored rows. Methods with a `change` are called inside its transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def insert(self, change: Change, group: Sequence[PendingRow]) -> None:
        """Store rows with the next sequence numbers."""
        values = [
            _stored(seq, record, created_ms)
            for seq, (record, created_ms, _, _) in enumerate(group, self._store.next_seq)
        ]
        self._store.db.executemany(f"INSERT INTO rows ({ROW_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        change.rows += len(values)
        change.bytes += sum(waiting.record.size_bytes for waiting in group)

    def renumber(self, after_seq: int, last_seq: int) -> None:
        """Give intact rows in a range the next sequence numbers, but none of a planned file: parts of that
        may be in the cloud."""
        query = f"SELECT {ROW_COLUMNS} FROM rows t WHERE seq BETWEEN ? AND ? AND {NOT_PLANNED} ORDER BY seq"
        while after_seq < last_seq:
            with translated(self._store.path):
                found = self._store.db.execute(query, (after_seq + 1, last_seq)).fetchmany(MOVED_ROWS)
            rows = [SpooledRow(*values) for values in found]
            self._move([row for row in rows if row.is_intact])
            after_seq = rows[-1].seq if rows else last_seq

    def _move(self, rows: Sequence[SpooledRow]) -> None:
        store = self._store
        with store.changing():
            moved = [astuple(_renumbered(row, seq)) for seq, row in enumerate(rows, store.next_seq)]
            store.db.executemany(f"INSERT INTO rows ({ROW_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", moved)
            store.db.executemany("DELETE FROM rows WHERE seq = ?", [(row.seq,) for row in rows])
            store.next_seq += len(rows)

    def delete(self, change: Change, table: str, condition: str, values: tuple[object, ...]) -> int:
        """Delete rows of a table, which the condition calls `t`; the number deleted."""
        measure = f"SELECT count(*), coalesce(sum({ROW_BYTES}), 0) FROM {table} AS t WHERE {condition}"
        rows, size = self._store.db.execute(measure, values).fetchone()
        self._store.db.execute(f"DELETE FROM {table} AS t WHERE {condition}", values)
        change.rows -= rows
        change.bytes -= size
        return int(rows)

    def delete_expired(self, change: Change, before_ms: int) -> None:
        """Delete rows that were stored before an instant, but none of a planned file."""
        for table in ("rows", "set_aside"):
            condition = f"created_ms < ? AND {NOT_PLANNED}"
            change.counted["expired"] += self.delete(change, table, condition, (before_ms,))

    def delete_oldest(self, change: Change, excess: int) -> None:
        """Make room for `excess` bytes: delete first rows set aside, then the oldest rows, but none of a
        planned file."""
        for table in ("set_aside", "rows"):
            if excess <= 0:
                return
            doomed: list[tuple[int]] = []
            query = f"SELECT seq, {ROW_BYTES} FROM {table} t WHERE {NOT_PLANNED} ORDER BY seq"
            for seq, size in self._store.db.execute(query):
                doomed.append((seq,))
                excess -= size
                change.bytes -= size
                if excess <= 0:
                    break
            self._store.db.executemany(f"DELETE FROM {table} WHERE seq = ?", doomed)
            change.rows -= len(doomed)
            change.counted["dropped_oldest"] += len(doomed)

    def first(self) -> SpooledRow | None:
        """The row that has waited longest. Damaged ones before it are set aside."""
        query = f"SELECT {ROW_COLUMNS} FROM rows ORDER BY seq LIMIT 1"
        with self._store.lock:
            while True:
                with translated(self._store.path):
                    found = self._store.db.execute(query).fetchone()
                if found is None or (row := SpooledRow(*found)).is_intact:
                    return None if found is None else row
                self.set_aside([(DAMAGED, found[0])], corrupt_rows=1)

    def take(
        self, of: tuple[str, str, str], rows_max: int, bytes_max: int, last_seq: int
    ) -> list[SpooledRow]:
        """The first intact rows of one rule, date and schema up to `last_seq`, not more than the
        bounds (but at least one).

        Damaged ones are set aside and counted.
        """
        query = (
            f"SELECT {ROW_COLUMNS} FROM rows WHERE rule = ? AND date = ? AND schema = ? "
            "AND seq <= ? ORDER BY seq"
        )
        taken: list[SpooledRow] = []
        damaged: list[tuple[str, int]] = []
        size = 0
        with self._store.lock:
            with translated(self._store.path):
                for found in self._store.db.execute(query, (*of, last_seq)):
                    row = SpooledRow(*found)
                    if not row.is_intact:
                        damaged.append((DAMAGED, row.seq))
                        continue
                    size += len(row.body)
                    if taken and (size > bytes_max or len(taken) == rows_max):
                        break
                    taken.append(row)
            if damaged:
                self.set_aside(damaged, corrupt_rows=len(damaged))
        return taken

    def end_of_chunk(self, span: tuple[str, str, str, int, int], bytes_max: int) -> int:
        """The last sequence number of a file's first rows that take `bytes_max` bytes;
        its last one if all fit."""
        query = f"SELECT seq, length(body) FROM rows WHERE {OF_FILE} ORDER BY seq"
        size = 0
        with translated(self._store.path):
            for seq, length in self._store.db.execute(query, span):
                size += length + ROW_OVERHEAD_BYTES
                if size >= bytes_max:
                    return int(seq)
        return span[-1]

    def set_aside(
        self, reasons: Sequence[tuple[str, int]], forget: str | None = None, **counted: int
    ) -> None:
        """Move rows aside, each with its reason, and forget a planned file. Their bytes still count."""
        db = self._store.db
        with self._store.lock, self._store.changing(**counted):
            into = f"INSERT OR REPLACE INTO set_aside ({ROW_COLUMNS}, reason)"
            copy = f"{into} SELECT {ROW_COLUMNS}, ? FROM rows WHERE seq = ?"
            db.executemany(copy, reasons)
            db.executemany("DELETE FROM rows WHERE seq = ?", [(seq,) for _, seq in reasons])
            if forget is not None:
                db.execute("DELETE FROM files WHERE name = ?", (forget,))

    def restore_set_aside(self) -> int:
        """Move intact rows that were set aside back to the waiting ones; their number. Damaged ones stay."""
        db = self._store.db
        with self._store.lock, self._store.changing():
            found = [
                SpooledRow(*row) for row in db.execute(f"SELECT {ROW_COLUMNS} FROM set_aside ORDER BY seq")
            ]
            intact = [(row.seq,) for row in found if row.is_intact]
            copy = (
                f"INSERT OR REPLACE INTO rows ({ROW_COLUMNS}) SELECT {ROW_COLUMNS} "
                "FROM set_aside WHERE seq = ?"
            )
            db.executemany(copy, intact)
            db.executemany("DELETE FROM set_aside WHERE seq = ?", intact)
        return len(intact)


def _renumbered(row: SpooledRow, seq: int) -> SpooledRow:
    return replace(row, seq=seq, checksum=checksum(seq, row.rule, row.date, row.body, row.schema))


def _stored(seq: int, record: Record, created_ms: int) -> tuple[object, ...]:
    """The values of a row, in the order of ROW_COLUMNS."""
    schema = "" if record.schema is None else record.schema.key
    check = checksum(seq, record.rule, record.date, record.body, schema)
    return seq, record.rule, record.date, created_ms, record.body, check, schema

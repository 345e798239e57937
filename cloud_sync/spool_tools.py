"""`penstock spool ls | verify | export | replay`: inspect a spool, and send rows that were set aside.

`ls`, `verify` and `export` open the file read-only and work beside a running gateway. `replay` writes, so the
gateway must be stopped (SpoolBusy otherwise); so does `cloud_sync.spool.repair`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cloud_sync.heartbeat import Pulse
from cloud_sync.records import RESULTS, Layout, SpooledRow
from cloud_sync.spool import Spool
from cloud_sync.spool.database import connect_read_only, rows_of, translated
from cloud_sync.spool.high_water import read_mark
from cloud_sync.spool.state import is_intact_state
from cloud_sync.spool.store import missing
from cloud_sync.spool.types import ROW_BYTES, ROW_COLUMNS, Lost
from cloud_sync.targets.base import Target
from cloud_sync.uploader import Uploader, UploadSettings


@dataclass(frozen=True, slots=True)
class Group:
    """The waiting rows of one rule and UTC date."""

    rule: str
    date: str
    rows: int
    bytes: int
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The findings of `verify`. `is_sound` requires all of them to be right."""

    rows: int
    damaged_rows: tuple[int, ...]
    damaged_state: tuple[str, ...]
    set_aside: tuple[tuple[int, str], ...]
    structure: tuple[str, ...]
    lost: Lost | None = None

    @property
    def is_sound(self) -> bool:
        """True if nothing is damaged; rows set aside for another reason do not count."""
        return not (self.damaged_rows or self.damaged_state or self.structure or self.lost)


def ls(path: Path) -> list[Group]:
    """The waiting rows by rule and date, oldest first."""
    query = (
        f"SELECT rule, date, count(*), sum({ROW_BYTES}), min(seq), max(seq) "
        "FROM rows GROUP BY rule, date ORDER BY min(seq)"
    )
    with closing(connect_read_only(path)) as db, translated(path):
        return [Group(*found) for found in db.execute(query)]


def verify(path: Path) -> Verdict:
    """Check the structure of the file and every checksum, without changing anything."""
    structure: list[str] = []
    mark = read_mark(path)  # before the database, which may go on meanwhile
    with closing(connect_read_only(path)) as db:
        structure += [
            text for (text,) in rows_of(db, "PRAGMA integrity_check(20)", structure) if text != "ok"
        ]
        rows, damaged = 0, []
        for found in rows_of(db, f"SELECT {ROW_COLUMNS} FROM rows ORDER BY seq", structure):
            rows += 1
            if not SpooledRow(*found).is_intact:
                damaged.append(found[0])
        state = rows_of(db, "SELECT key, body, checksum FROM state", structure)
        wrong = tuple(str(key) for key, body, check in state if not is_intact_state(key, body, check))
        aside = tuple(
            (seq, reason) for seq, reason in rows_of(db, "SELECT seq, reason FROM set_aside", structure)
        )
        counters = dict(rows_of(db, "SELECT name, value FROM counters", structure))
        spool_id = dict(rows_of(db, "SELECT key, value FROM meta", structure)).get("spool_id", "")
    lost = missing(mark, counters, spool_id, rows + len(aside))
    is_told = lost.is_some and not structure
    return Verdict(rows, tuple(damaged), wrong, aside, tuple(structure), lost if is_told else None)


def export(
    path: Path, out: IO[bytes], *, rule: str | None = None, set_aside: bool = False, layout: Layout = RESULTS
) -> int:
    """Write intact waiting rows (or those set aside) as the JSON lines an upload would hold; the number of
    rows."""
    table = "set_aside" if set_aside else "rows"
    written = 0
    with closing(connect_read_only(path)) as db, translated(path):
        meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
        query = f"SELECT {ROW_COLUMNS} FROM {table} WHERE ? IS NULL OR rule = ? ORDER BY seq"
        for found in db.execute(query, (rule, rule)):
            row = SpooledRow(*found)
            if row.is_intact:
                out.write(layout.line(row, meta.get("gateway", ""), meta.get("spool_id", "")))
                written += 1
    return written


def replay(
    path: Path, gateway: str, target: Target, now_ms: int, sign_key: str = "", layout: Layout = RESULTS
) -> int:
    """Move intact rows that were set aside back to the waiting ones and upload all now; the number of rows
    uploaded. `sign_key` signs the manifests.

    Raises TargetError when the target fails; the files uploaded until then are acknowledged.
    """
    spool = Spool(path, gateway, layout=layout)
    try:
        spool.restore_set_aside()
        uploader = Uploader(spool, target, UploadSettings(sign_key=sign_key))
        uploader.drain(now_ms)
        Pulse(spool, target, 0).beat(now_ms)
        return uploader.stats.rows
    finally:
        spool.close()

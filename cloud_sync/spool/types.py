"""The spool's settings, the values it returns, and its statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cloud_sync.records import ROW_OVERHEAD_BYTES

OnFull = Literal["block", "drop_oldest", "drop_newest"]

SPOOL_COUNTERS = (
    "appended",
    "uploaded",
    "dropped_oldest",
    "dropped_newest",
    "expired",
    "corrupt_rows",
    "corrupt_state",
    "conflicts",
    "reserve_used",
    "lost",
)

ROW_BYTES = f"length(body) + {ROW_OVERHEAD_BYTES}"
"""The size of a row, in SQL."""

FILE_COLUMNS = "name, rule, date, first_seq, last_seq, rows, bytes, sha256, schema"

ROW_COLUMNS = "seq, rule, date, created_ms, body, checksum, schema"


@dataclass(frozen=True, slots=True)
class SpoolSettings:
    """The spool's bounds.

    `bytes_max`: rows waiting, in bytes; at the bound `on_full` decides: `block` refuses new rows (SpoolFull)
    until the uploader has made room, `drop_oldest` deletes the oldest rows, `drop_newest` does not take the
    new ones; both count what they drop. `age_max_ms`: rows older than this are deleted and counted; None
    keeps them for ever. `group_rows`, `group_wait_ms`: a commit is due when that number of rows wait, or the
    first has waited that time. `reserve_bytes`: size of a file that gives up its room when the disk is full,
    so that acknowledged rows can be deleted. `first_seq`:
    the sequence number of the first row of a new spool.
    """

    bytes_max: int = 512_000_000
    on_full: OnFull = "block"
    age_max_ms: int | None = None
    group_rows: int = 500
    group_wait_ms: int = 10
    reserve_bytes: int = 4_000_000
    first_seq: int = 1


class Origin(NamedTuple):
    """The origin of appended rows: a key, and the number of the first of them among all rows of that key.

    Rows whose number the spool has stored already are ignored, so a replay may append them again.
    """

    key: str
    first: int


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file whose boundaries, content hash and name were made durable before its upload begins.
    `schema` is that of all of its rows, as in `SpooledRow`."""

    name: str
    rule: str
    date: str
    first_seq: int
    last_seq: int
    rows: int
    bytes: int
    sha256: str
    schema: str = ""

    def span(self, last_seq: int | None = None) -> tuple[str, str, str, int, int]:
        """The rows of the file, up to `last_seq`: rule, date, schema, first and last sequence number."""
        return self.rule, self.date, self.schema, self.first_seq, last_seq or self.last_seq


@dataclass(frozen=True, slots=True)
class SpoolStats:
    """`rows` and `bytes` wait for upload or are set aside (`set_aside` of them); `counters` are since
    creation."""

    rows: int
    bytes: int
    set_aside: int
    pending: int
    bytes_max: int
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Lost:
    """Rows that were committed and are gone; `uploaded` were deleted because the cloud has
    them, and may be back. `gone` ones too, and are not back: the cloud alone has them."""

    rows: int
    uploaded: int
    gone: int

    @property
    def is_some(self) -> bool:
        """True if rows are lost, or may be uploaded twice."""
        return bool(self.rows or self.uploaded)

    def __str__(self) -> str:
        return (
            f"{self.rows} rows that were stored are gone, and the deletion of {self.uploaded} uploaded ones: "
            "the file or its log was damaged or removed. "
            "Rows whose inputs the journal still has are made again; "
            "check the disk"
        )

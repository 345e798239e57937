"""Rows for the cloud in their three forms: offered by a rule, stored in the spool, one line of an uploaded
file."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from cloud_sync.names import archive_heartbeat_name, archive_name, arrival_name, file_name, heartbeat_name
from cloud_sync.schemas import SchemaFile

ROW_OVERHEAD_BYTES = 64
"""The size of a row beside its body, for the cap of the spool."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row for the cloud. `body` is a JSON object without the identity that the spool gives it; `date` is
    the UTC date (`2026-11-21`) under which it is filed; `schema` says what its columns mean."""

    rule: str
    date: str
    body: bytes
    schema: SchemaFile | None = None

    @property
    def size_bytes(self) -> int:
        """The size by which this record counts against the spool's cap."""
        return len(self.body) + ROW_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class SpooledRow:
    """A record in the spool. `seq` is never used twice in the life of one spool.
    `schema` is the hash of its rule and the id of its schema, `<rule hash>-<schema>`; empty for none."""

    seq: int
    rule: str
    date: str
    created_ms: int
    body: bytes
    checksum: int
    schema: str = ""

    @property
    def is_intact(self) -> bool:
        """True if the checksum fits the row that was read."""
        texts = all(isinstance(text, str) for text in (self.rule, self.date, self.schema))
        types = texts and isinstance(self.body, bytes) and isinstance(self.created_ms, int)
        return types and self.checksum == checksum(self.seq, self.rule, self.date, self.body, self.schema)


def checksum(seq: int, rule: str, date: str, body: bytes, schema: str = "") -> int:
    """CRC-32 over everything that is uploaded of a row, so that bodies swapped between
    rows are noticed as well."""
    head = f"{seq}\0{rule}\0{date}\0{schema}".encode()
    return zlib.crc32(body, zlib.crc32(head))


def line(row: SpooledRow, gateway: str, spool_id: str) -> bytes:
    r"""One line of an uploaded file: the row's identity, then its body.

    >>> line(SpooledRow(7, "hot", "2026-11-21", 0, b'{"window":60000}', 0), "gw1", "a1b2")
    b'{"gateway":"gw1","spool":"a1b2","rule":"hot","seq":7,"window":60000}\n'
    """
    identity = msgspec.json.encode({"gateway": gateway, "spool": spool_id, "rule": row.rule, "seq": row.seq})
    rest = row.body[1:]
    return identity[:-1] + (b"," if rest != b"}" else b"") + rest + b"\n"


def body_line(row: SpooledRow, gateway: str, spool_id: str) -> bytes:
    """One line of an uploaded file of archived events: the row's body, without its identity."""
    return row.body + b"\n"


class Layout(NamedTuple):
    """The place and the form of a spool's rows in the bucket.

    `file` names a data file by gateway, rule, date, first and last sequence number and SHA-256;
    `line` writes a row of it; `manifest` names its manifest by the instant of the upload, None for files that
    need none;
    `heartbeat` names that of a gateway's spool.
    """

    file: Callable[[str, str, str, int, int, str], str]
    line: Callable[[SpooledRow, str, str], bytes]
    manifest: Callable[[str, int], str] | None
    heartbeat: Callable[[str, str], str]


RESULTS = Layout(file_name, line, arrival_name, heartbeat_name)
"""Rows for the fleet's tables."""
ARCHIVE = Layout(archive_name, body_line, None, archive_heartbeat_name)
"""Raw events, as `penstock cloud backfill` reads them: in the order of arrival, whatever rule sent them."""

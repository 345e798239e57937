"""Rows for the cloud in their three forms: offered by a rule, stored in the spool, one line of an uploaded
file."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import msgspec

ROW_OVERHEAD_BYTES = 64
"""The size of a row beside its body, for the cap of the spool."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row for the cloud. `body` is a JSON object without the identity that the spool gives it; `date` is
    the UTC date (`2026-11-21`) under which it is filed."""

    rule: str
    date: str
    body: bytes

    @property
    def size_bytes(self) -> int:
        """The size by which this record counts against the spool's cap."""
        return len(self.body) + ROW_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class SpooledRow:
    """A record in the spool. `seq` is never used twice in the life of one spool."""

    seq: int
    rule: str
    date: str
    created_ms: int
    body: bytes
    checksum: int

    @property
    def is_intact(self) -> bool:
        """True if the checksum fits the row that was read."""
        types = isinstance(self.rule, str) and isinstance(self.date, str) and isinstance(self.body, bytes)
        is_instant = isinstance(self.created_ms, int)
        return types and is_instant and checksum(self.seq, self.rule, self.date, self.body) == self.checksum


def checksum(seq: int, rule: str, date: str, body: bytes) -> int:
    """CRC-32 over everything that is uploaded of a row, so that bodies swapped between
    rows are noticed as well."""
    head = f"{seq}\0{rule}\0{date}\0".encode()
    return zlib.crc32(body, zlib.crc32(head))


def line(row: SpooledRow, gateway: str, spool_id: str) -> bytes:
    r"""One line of an uploaded file: the row's identity, then its body.

    >>> line(SpooledRow(7, "hot", "2026-11-21", 0, b'{"window":60000}', 0), "gw1", "a1b2")
    b'{"gateway":"gw1","spool":"a1b2","rule":"hot","seq":7,"window":60000}\n'
    """
    identity = msgspec.json.encode({"gateway": gateway, "spool": spool_id, "rule": row.rule, "seq": row.seq})
    rest = row.body[1:]
    return identity[:-1] + (b"," if rest != b"}" else b"") + rest + b"\n"

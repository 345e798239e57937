"""The high-water mark: the counters of a spool's last commit, in a small file beside it.

SQLite ignores the end of a damaged log, and all of a missing one, without an error: the database is then an
older one. The mark shows it, because it is written after each transaction and holds the counters of that
moment. It is behind the database after a crash between the two, never ahead of it; if it is ahead, committed
changes are lost.

Two slots are written in turn, each with a checksum, so a torn write leaves the other one. The mark is not
synced: a power cut may leave one that is half a minute old, which misses losses, but never reports a false
one.
"""

from __future__ import annotations

import logging
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

from rules.problems import in_words

LOG = logging.getLogger("penstock.spool")

_SLOT = struct.Struct("<8sQQQQQ12s")
_MAGIC = b"penstkM1"
_CHECK = struct.Struct("<I")
SLOT_BYTES = 512

UNWRITTEN = (
    "rows of the spool that are lost meanwhile cannot be told; free space, or give the right to the file"
)
"""The effect of a mark that is not written, and the remedy."""


class Mark(NamedTuple):
    """The counters of a spool after a transaction; see `cloud_sync.spool.store.Store`.

    changes    transactions since the spool was created
    last_seq   the highest sequence number given
    appended   rows stored since the spool was created
    uploaded   rows deleted because the cloud has them
    rows       rows that wait or are set aside
    """

    changes: int
    last_seq: int
    appended: int
    uploaded: int
    rows: int
    spool_id: str


class HighWater:
    """The file of the mark. Never raises: a gateway that cannot write the mark must still run. The log has
    the first of several failures."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._is_failing = False

    def write(self, mark: Mark) -> None:
        """Replace the older of the two marks."""
        self._put(mark, mark.changes % 2)

    def _put(self, mark: Mark, slot: int) -> None:
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._descriptor, encode(mark), slot * SLOT_BYTES)
        except OSError as error:
            if not self._is_failing:
                LOG.warning("spool.mark_unwritten", extra={"error": in_words(error), "note": UNWRITTEN})
            self._is_failing = True
        else:
            self._is_failing = False

    def begin(self, mark: Mark) -> None:
        """Replace both slots by this mark."""
        self._put(mark, 0)
        self._put(mark, 1)

    def close(self) -> None:
        """Release the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def mark_path(spool: Path) -> Path:
    """The path of a spool's mark."""
    return spool.with_name(spool.name + ".mark")


def read_mark(spool: Path) -> Mark | None:
    """The newest mark of a spool; None if none can be read."""
    try:
        data = mark_path(spool).read_bytes()
    except OSError:
        return None
    return max(filter(None, (decode(data), decode(data[SLOT_BYTES:]))), default=None)


def encode(mark: Mark) -> bytes:
    """A mark as a slot."""
    body = _SLOT.pack(_MAGIC, *mark[:5], mark.spool_id.encode())
    return (body + _CHECK.pack(zlib.crc32(body))).ljust(SLOT_BYTES, b"\0")


def decode(slot: bytes) -> Mark | None:
    """The mark in a slot; None if there is none, or a damaged one."""
    body, check = slot[: _SLOT.size], slot[_SLOT.size : _SLOT.size + _CHECK.size]
    if len(check) < _CHECK.size or _CHECK.unpack(check)[0] != zlib.crc32(body) or not body.startswith(_MAGIC):
        return None
    _, changes, last_seq, appended, uploaded, rows, spool_id = _SLOT.unpack(body)
    return Mark(
        changes, last_seq, appended, uploaded, rows, spool_id.rstrip(b"\0").decode("ascii", "replace")
    )

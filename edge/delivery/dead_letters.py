"""Input that could not be processed, kept readable: one JSON line each, with the reason and the payload.

    {"at_ms": 1767225600000, "reason": "not JSON: …", "topic": "plant/7/temp", …, "payload": "bm90IGpzb24="}

Bounded: the file is rotated at `bytes_max`, and at most `files_max` files are kept; the oldest is deleted and
counted. Sources use `keep`, which never fails, for a broken disk must not stop the gateway; sinks use
`write`, and try again. A large letter that is kept waits for `sync`: writing a megabyte would hold the
gateway's loop.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from edge.delivery.letters import FILE
from rules.problems import in_words
from sinks.durable import append_durably

log = logging.getLogger("penstock.dead_letters")

LARGE_BYTES = 50_000
"""A payload from which on a kept letter waits for `sync`."""


PIECE_BYTES = 48_000
"""The part of a payload that is encoded at once: a multiple of 3, and 0.1 ms."""


class DeadLetters:
    """An append-only JSON lines file with rotation; may be used from any thread.

    bytes_max   size of one file, in bytes, at which the next one is begun
    files_max   how many files are kept, the current one included
    """

    def __init__(self, directory: Path, bytes_max: int = 16_000_000, files_max: int = 4) -> None:
        self.path = directory / FILE
        self.bytes_max = bytes_max
        self.files_max = files_max
        self.written = 0
        self.lost = 0
        self.is_muted = False
        """True while nothing is written: a replay repeats input whose letters were written before."""
        self.on_letter: Callable[[dict[str, Any], bytes | None], None] | None = None
        """Called with each letter and its payload, on the thread that writes it."""
        self._descriptor: int | None = None
        self._bytes = 0
        self._dirty = False
        self._is_syncing = False
        self._waiting: list[Callable[[], None]] = []
        self.waiting_bytes = 0
        """Payload bytes of large letters that `sync` will write."""
        self._lock = threading.Lock()

    def write(
        self, at_ms: int, reason: str, topic: str = "", payload: bytes | None = None, **fields: Any
    ) -> None:
        """Keep one letter with further JSON `fields`: the rule, the sink, the row. Raises
        OSError, leaving no trace."""
        letter = {"at_ms": at_ms, "reason": reason, "topic": topic} | fields
        if self.on_letter is not None:
            self.on_letter(letter, payload)
        if self.is_muted:
            return
        line = line_of(letter, payload)
        with self._lock:
            descriptor = self._room_for(len(line))
            append_durably(descriptor, line, sync=False)
            self._bytes += len(line)
            self._dirty = True
            self.written += 1

    def keep(
        self, at_ms: int, reason: str, topic: str = "", payload: bytes | None = None, **fields: Any
    ) -> None:
        """`write`, now or with the next `sync`, but a failed write is counted in `lost` and logged."""
        size = 0 if payload is None or self.is_muted else len(payload)
        write = partial(self._keep, at_ms, reason, topic, payload, fields, size if size >= LARGE_BYTES else 0)
        if size < LARGE_BYTES:
            write()
            return
        with self._lock:
            self.waiting_bytes += size
            self._waiting.append(write)

    def _keep(
        self,
        at_ms: int,
        reason: str,
        topic: str,
        payload: bytes | None,
        fields: dict[str, Any],
        waited_bytes: int,
    ) -> None:
        try:
            self.write(at_ms, reason, topic, payload, **fields)
        except OSError as error:
            self.lost += 1
            log.error("dead_letter.lost", extra={"reason": reason, "error": in_words(error)})
        with self._lock:
            self.waiting_bytes -= waited_bytes

    @property
    def is_synced(self) -> bool:
        """True if all letters are durable."""
        return not (self._is_syncing or self._dirty or self._waiting)

    def sync(self) -> None:
        """Write waiting letters, make everything so far durable; called before the messages are acknowledged.

        Others may write meanwhile. Raises OSError.
        """
        self._is_syncing = True
        try:
            self._write_waiting()
            self._sync_file()
        finally:
            self._is_syncing = False

    def _sync_file(self) -> None:
        with self._lock:
            if self._descriptor is None or not self._dirty:
                return
            descriptor = os.dup(self._descriptor)
            self._dirty = False
        try:
            os.fsync(descriptor)
        except OSError:
            self._dirty = True
            raise
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Make everything durable and close the file; a later write opens it again."""
        self._write_waiting()
        with self._lock:
            self._close()

    def _write_waiting(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for write in waiting:
            write()

    def _room_for(self, size: int) -> int:
        """The descriptor of the file that takes `size` more bytes."""
        if self._descriptor is None:
            self._open()
        elif self._bytes + size > self.bytes_max:
            self._rotate()
        assert self._descriptor is not None
        return self._descriptor

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
        self._bytes = os.fstat(self._descriptor).st_size

    def _rotate(self) -> None:
        """dead-letters.jsonl becomes .1, .1 becomes .2, and so on; the oldest is deleted."""
        self._close()
        self._numbered(self.files_max - 1).unlink(missing_ok=True)
        for number in range(self.files_max - 2, -1, -1):
            if self._numbered(number).exists():
                self._numbered(number).rename(self._numbered(number + 1))
        self._open()

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path

    def _close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            self._dirty = False
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def line_of(letter: dict[str, Any], payload: bytes | None) -> bytes:
    """A letter as a line of JSON. The payload is encoded in pieces, between which other threads may run."""
    line = json.dumps(letter, default=str, ensure_ascii=False).encode("utf-8", "backslashreplace")
    if payload is None:
        return line + b"\n"
    starts = range(0, len(payload), PIECE_BYTES)
    pieces = [base64.b64encode(payload[start : start + PIECE_BYTES]) for start in starts]
    return b"".join((line[:-1], b', "payload": "', *pieces, b'"}\n'))

"""Writing the journal: records are gathered in memory, and one `sync` makes them durable, as one frame.

A segment is reserved on the disk as a whole when it is begun, so a full disk is met there and not in the
middle. The next one is reserved then as well (`spare`): when there is no room for it the gateway stops taking
in, and what it has taken in already still has room. What `sync` could not write stays in memory and is
written by the next one.

Appending is the loop's. Writing may be another thread's: `begin` hands over what has gathered, `write` stores
it, and records may be appended meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from edge.base.message import Message, payload_bytes
from edge.journal.disk import Disk
from edge.journal.frame import compressor, encode
from edge.journal.reader import SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, SUFFIX, segments
from edge.journal.record import Record, Topics, pack

FRAME_BYTES = 50_000
"""A frame ends when its messages take so much memory: making it holds up the loop for half a millisecond."""

NAMED_BYTES = 50_000
"""The bytes after which topics are named anew: behind a damaged frame, messages whose topics it named cannot
be read."""

MESSAGE_BYTES = 100
"""The memory of a message beside its payload."""

BATCH_BYTES = 500
"""The memory of a batch beside its messages; packing a batch takes as long as packing three messages."""


@dataclass(slots=True)
class _Open:
    """The segment that is written: its durable part, the part being written, and the part that waits.

    `end` and `waiting` change when records are appended, `durable` and `writing` when they are written.
    The topics of frames from `named_from` on are named there.
    """

    start: int
    durable: int
    end: int
    writing: bytes = b""
    waiting: bytearray = field(default_factory=bytearray)
    topics: Topics = field(default_factory=Topics)
    named_from: int = 0


class _Messages(msgspec.Struct, frozen=True):
    """Messages as they came. They are packed with the others of their frame: packing each batch as it comes
    takes three times as long."""

    at_ms: int
    messages: Sequence[Message]
    connection: str


class Journal:
    """The end of the journal. Used by the gateway loop only, except `write`."""

    def __init__(
        self, directory: Path, end: int, *, segment_bytes: int, compression: str, disk: Disk | None = None
    ):
        """Write behind position `end`, which `read` found. Raises OSError, ImportError without the
        compressor."""
        self.directory = directory
        self.written_bytes = 0
        """Bytes written since the start."""
        self.syncs = 0
        self._disk = disk or Disk()
        self._segment_bytes = segment_bytes
        self._compress = compressor(compression)
        self._disk.make_folder(directory)
        self._full: list[_Open] = []
        """Segments that are complete but not durable yet."""
        self._segment = _Open(end, end, end)
        self._gathered: list[Record | _Messages] = []
        """The records of the next frame, and how much memory their messages take."""
        self._gathered_bytes = 0
        self.durable = end
        """Up to where the journal survives a power cut."""
        self._descriptor: int | None = None
        self._spare = directory / "spare"
        self.is_short = False
        """There was no room for the next segment."""
        cut(directory, end, self._disk)
        self.try_spare()

    @property
    def position(self) -> int:
        """The end of the frames, including those that wait in memory.
        The records that gather for the next one come behind it."""
        return self._segment.end

    @property
    def is_written(self) -> bool:
        """True if all records are durable."""
        return not self._gathered and self.durable == self.position

    def append(self, record: Record) -> None:
        """Add a record; only memory is touched."""
        self._gathered.append(record)

    def append_batch(self, at_ms: int, messages: Sequence[Message], connection: str = "") -> None:
        """Add messages of one connection; only memory is touched."""
        self._gathered.append(_Messages(at_ms, messages, connection))
        self._gathered_bytes += payload_bytes(messages) + MESSAGE_BYTES * len(messages) + BATCH_BYTES
        if self._gathered_bytes >= FRAME_BYTES:
            self.end_frame()

    def end_frame(self) -> int:
        """Make a frame of what has gathered; the end of it, behind all records until now."""
        if self._gathered:
            segment = self._segment_of_frame()
            gathered, self._gathered = self._gathered, []
            self._gathered_bytes = 0
            records = [
                pack(item.at_ms, item.messages, segment.topics, item.connection)
                if isinstance(item, _Messages)
                else item
                for item in gathered
            ]
            if segment.end == segment.start:
                self._put(segment, SEGMENT_MAGIC)
            self._put(segment, encode(records, segment.end, self.durable, self._compress))
        return self._segment.end

    def _put(self, segment: _Open, data: bytes) -> None:
        segment.waiting += data
        segment.end += len(data)

    def _segment_of_frame(self) -> _Open:
        """The segment that takes the frame that gathers: a new one where the present one has reached its
        size."""
        segment = self._segment
        if segment.end - segment.start >= self._segment_bytes:
            self._full.append(segment)
            segment = self._segment = _Open(segment.end, segment.end, segment.end)
        if segment.end - segment.named_from >= NAMED_BYTES:
            segment.topics.name_anew()
            segment.named_from = segment.end
        return segment

    def sync(self) -> None:
        """Make everything durable. Raises OSError; then nothing is lost, and the next call tries again."""
        self.write(self.begin())

    def begin(self) -> list[_Open]:
        """Hand what has gathered to `write`. Until that has ended only methods that append may be called."""
        self.end_frame()
        handed = [*self._full, self._segment]
        for segment in handed:
            segment.writing += bytes(segment.waiting)
            segment.waiting.clear()
        return handed

    def write(self, handed: list[_Open]) -> None:
        """Make durable what `begin` handed over; on any thread. Raises OSError as `sync` does."""
        *complete, last = handed
        for segment in complete:
            self._write(segment)
            self._end_file(segment)
            del self._full[0]
        self._write(last)
        if self.is_short:
            self.try_spare()

    def _write(self, segment: _Open) -> None:
        data = segment.writing
        if not data:
            return
        if self._descriptor is None:
            self._descriptor = self._begin_file(segment)
        self._disk.write(self._descriptor, data, segment.durable - segment.start)
        self._disk.sync(self._descriptor)
        segment.writing = b""
        segment.durable += len(data)
        self.durable = segment.durable
        self.written_bytes += len(data)
        self.syncs += 1

    def _begin_file(self, segment: _Open) -> int:
        """The file of a segment: the spare one, or one made now."""
        path, size = self._path(segment.start), segment.durable - segment.start + len(segment.writing)
        if size <= self._segment_bytes and self._spare.exists():
            self._disk.rename(self._spare, path)
            descriptor = self._disk.reopen(path, 0, self._segment_bytes)
        else:
            descriptor = self._disk.create(path, max(self._segment_bytes, size))
        self.try_spare()
        return descriptor

    def try_spare(self) -> None:
        """Reserve the next segment, if there is room."""
        try:
            if not self._spare.exists():
                os.close(self._disk.create(self._spare, self._segment_bytes))
            self.is_short = False
        except OSError:
            self.is_short = True

    def _end_file(self, segment: _Open) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._disk.close(descriptor, segment.durable - segment.start)

    def forget(self, before: int) -> int:
        """Delete the segments that end at or before a position; returns the bytes that are left."""
        listed = segments(self.directory)
        for number, segment in enumerate(listed):
            end = listed[number + 1].start if number + 1 < len(listed) else self.position
            if end <= before and segment.start != self._segment.start:
                self._disk.remove(segment.path)
        return sum(segment.path.stat().st_size for segment in segments(self.directory))

    def close(self) -> None:
        """End the file where its records end; what waits in memory is not written."""
        self._end_file(self._full[0] if self._full else self._segment)

    def _path(self, start: int) -> Path:
        return self.directory / f"{start:020}{SUFFIX}"


def cut(directory: Path, end: int, disk: Disk) -> None:
    """End a journal at a position: what stands behind it is removed. A new run begins a
    segment of its own there."""
    for segment in segments(directory):
        if segment.start >= end:
            disk.remove(segment.path)
        elif segment.start + segment.path.stat().st_size > end:
            disk.close(
                disk.reopen(segment.path, end - segment.start, end - segment.start), end - segment.start
            )


__all__ = ["SEGMENT_HEADER_BYTES", "Journal", "cut"]

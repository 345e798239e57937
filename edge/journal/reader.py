"""Reading the journal: segments in order, records one by one, and damaged or missing parts among them.

A segment is a file named by the position of its first byte. A new one is begun only when the one before it is
durable, so within the last segment the records behind a bad one decide: if one of them was written when the
bad one was durable already, the bad one is damage; otherwise it is the torn tail of a power cut, whose
messages the broker sends again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from edge.base.errors import UsageError
from edge.base.message import Message
from edge.journal.frame import MAGIC, UnknownForm, decode
from edge.journal.record import Batch, Record, unpack

SUFFIX = ".journal"
SEGMENT_MAGIC = b"penstock journal 1\n\0\0\0\0\0"
SEGMENT_HEADER_BYTES = len(SEGMENT_MAGIC)


TORN_NOTE = (
    "a power cut in the middle of a write leaves such an end, and the broker sends its messages again; "
    "damage to what was written last looks alike, and those messages are gone if they were acknowledged"
)
"""Damage at the end that may be a torn tail: no later record shows whether it was durable."""


def newer(path: Path, what: str) -> UsageError:
    """The refusal of a file that a newer version wrote, with the remedy."""
    return UsageError(
        f"{path} was written by a newer version of penstock ({what}): start that version; or move the "
        f"folders journal and snapshots of {path.parent.parent} away, and rules begin anew"
    )


class Segment(NamedTuple):
    """A segment file: where it begins in the journal, and its path."""

    start: int
    path: Path


class FramedRecord(NamedTuple):
    """A record, where its frame begins and ends, and the messages of a batch."""

    position: int
    end: int
    record: Record
    messages: list[Message]


@dataclass(slots=True)
class Damage:
    """Bytes of the journal that cannot be read although they were durable once: in a file, or in the folder
    where a file is missing."""

    position: int
    bytes: int
    path: Path

    def __str__(self) -> str:
        return f"{self.path}: {self.bytes} bytes at position {self.position} are damaged or missing"


@dataclass(slots=True)
class JournalPass:
    """Findings of a pass over the journal: end of the intact part (the start of the pass where nothing
    reaches it), end of the last intact record, damage, length of the torn tail, and the messages in intact
    records whose topic a damaged one named."""

    end: int = 0
    reached: int = 0
    damage: list[Damage] = field(default_factory=list)
    torn_bytes: int = 0
    without_topic: int = 0

    def must_reach(self, position: int, directory: Path) -> None:
        """Note what is missing before the position of a snapshot: the journal was durable up to there."""
        if self.reached < position:
            self.damage.append(Damage(self.reached, position - self.reached, directory))

    def problems(self) -> list[str]:
        """A sentence for each damage."""
        found = [str(damage) for damage in self.damage]
        if self.without_topic:
            found.append(f"{self.without_topic} messages are left out: a damaged part named their topics")
        return found


def segments(directory: Path) -> list[Segment]:
    """The segments of a journal, in order."""
    found = [Segment(int(path.stem), path) for path in directory.glob(f"*{SUFFIX}") if path.stem.isdigit()]
    return sorted(found)


def first_position(directory: Path) -> int:
    """The position at which the oldest segment of a journal begins."""
    return min((segment.start for segment in segments(directory)), default=0)


def read(directory: Path, start: int, reading: JournalPass) -> Iterator[FramedRecord]:
    """Every intact record from position `start` on; `reading` describes the rest once all are read.

    Raises UsageError for a record of a newer version: it is not damaged, and to leave it out would lose it.
    """
    listed = segments(directory)
    reading.end = start
    for number, segment in enumerate(listed):
        following = listed[number + 1] if number + 1 < len(listed) else None
        if following is not None and following.start <= start:
            continue
        expected = max(reading.end, start)
        if segment.start > expected:
            reading.damage.append(Damage(expected, segment.start - expected, directory))
        try:
            yield from _records(segment, following, start, reading)
        except UnknownForm as error:
            raise newer(segment.path, str(error)) from None
    reading.must_reach(start, directory)


def _records(
    segment: Segment, following: Segment | None, start: int, reading: JournalPass
) -> Iterator[FramedRecord]:
    data = segment.path.read_bytes()
    topics: dict[int, str] = {}
    offset = min(SEGMENT_HEADER_BYTES, len(data))
    while offset < len(data):
        position = segment.start + offset
        frame = decode(data, offset, position)
        if frame is None:
            found = _next_intact(data, offset, segment.start, is_last=following is None)
            if found is None:
                reading.torn_bytes = len(data[offset:].rstrip(b"\0")) if following is None else 0
                break
            reading.damage.append(Damage(position, found - offset, segment.path))
            offset = found
            continue
        offset = frame.end
        for record in frame.records:
            messages = unpack(record, topics) if isinstance(record, Batch) else []
            if position >= start:
                if isinstance(record, Batch):
                    reading.without_topic += len(record.topics) - len(messages)
                yield FramedRecord(position, segment.start + offset, record, messages)
    reading.reached = segment.start + offset
    reading.end = max(reading.end, reading.reached)


def _next_intact(data: bytes, bad: int, start: int, *, is_last: bool) -> int | None:
    """The start of the first intact record behind a bad one; None if the bad one is part of a torn tail.

    It is not if any record behind it was written when it was durable: the first ones may be of the same sync.
    """
    first: int | None = None
    offset = data.find(MAGIC, bad + 1)
    while offset >= 0:
        frame = decode(data, offset, start + offset)
        if frame is not None:
            first = offset if first is None else first
            if not is_last or frame.durable > start + bad:
                return first
        offset = data.find(MAGIC, frame.end if frame is not None else offset + 1)
    return None

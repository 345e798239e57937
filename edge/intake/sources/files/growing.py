"""A file that grows: its whole lines from a place on, and what has become of it.

A file is recognised by its inode and its first bytes. Where the inode is another one, as after a copy or on a
file system that numbers its files anew, the bytes decide, if there are enough of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from edge.intake.sources.files.position import FilePlace
from edge.intake.sources.files.records import LINE_BYTES_MAX, lines_of

HEAD_BYTES = 4_096
"""The first bytes by which a file is recognised."""

SURE_BYTES = 256
"""The number of first bytes that recognise a file without its inode: two files of rows rarely begin with the
same rows."""

ROTATED = re.compile(r"[.-]\d[\d.-]*")
"""What rotation appends to the name of a file."""


class GrowingFile:
    """An open file. `is_ended`: nothing is appended any more, so the last line needs no end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_ended = False
        self._file = path.open("rb")
        self._head = b""
        status = os.fstat(self._file.fileno())
        self.device, self.inode = status.st_dev, status.st_ino

    def close(self) -> None:
        self._file.close()

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    @property
    def written_ns(self) -> int:
        """When it was last written."""
        return os.fstat(self._file.fileno()).st_mtime_ns

    def lines(self, offset: int) -> Iterator[bytes]:
        """The whole lines from `offset` on, with their ends."""
        self._file.seek(offset)
        for line in lines_of(self._file):
            if line.endswith(b"\n") or self.is_ended or len(line) == LINE_BYTES_MAX:
                yield line

    def note(self, offset: int) -> None:
        """Remember the first bytes, once the file has been read up to `offset`."""
        if len(self._head) < min(offset, HEAD_BYTES):
            self._head = self._bytes(offset)

    def place(self, rows: int, offset: int) -> FilePlace:
        """A place up to which the file was read, and noted."""
        head = blake2b(self._head[:offset], digest_size=8).hexdigest()
        return FilePlace(rows, offset, self.inode, head)

    def has(self, place: FilePlace) -> bool:
        """True if this is the file of a place."""
        head = self._bytes(place.offset)
        return (
            (place.inode == self.inode or place.offset >= SURE_BYTES)
            and self.size >= place.offset
            and blake2b(head, digest_size=8).hexdigest() == place.head
        )

    def is_cut_off(self, offset: int) -> bool:
        """True if the file is shorter than what was read of it, or begins in another way."""
        return self.size < offset or self._bytes(len(self._head)) != self._head

    def is_replaced(self, path: Path) -> bool:
        """True if another file is at the path now."""
        try:
            status = path.stat()
        except FileNotFoundError:
            return False
        return (status.st_dev, status.st_ino) != (self.device, self.inode)

    def _bytes(self, count: int) -> bytes:
        return os.pread(self._file.fileno(), min(count, HEAD_BYTES), 0)


def file_of(path: Path, place: FilePlace) -> GrowingFile:
    """The file to go on with: that of the place, also where it was renamed or copied within its folder; else
    the one at the path. Raises OSError."""
    try:
        here = GrowingFile(path)
    except FileNotFoundError:
        if (moved := _moved(path, place)) is None:
            raise
        return moved
    if here.has(place) or (moved := _moved(path, place)) is None:
        return here
    here.close()
    return moved


def _moved(path: Path, place: FilePlace) -> GrowingFile | None:
    """The longest of the other files in the folder that are the file of the place."""
    best: GrowingFile | None = None
    for entry in os.scandir(path.parent) if place.inode else ():
        if entry.name == path.name or not entry.is_file(follow_symlinks=False):
            continue
        if entry.stat().st_size < (place.offset if best is None else best.size + 1):
            continue
        with suppress(OSError):  # it may have gone, or may not be readable
            file = GrowingFile(Path(entry.path))
            left = file
            if file.has(place):
                best, left = file, best
            if left is not None:
                left.close()
    return best


def file_after(path: Path, written_ns: int) -> GrowingFile:
    """The file to go on with behind one that was rotated and last written then: the next of those that were
    rotated later, which have its name and a number or a date, or else the one at the path. Raises OSError."""
    later = [
        (entry.stat().st_mtime_ns, entry.path)
        for entry in os.scandir(path.parent)
        if entry.name.startswith(path.name)
        and ROTATED.fullmatch(entry.name, len(path.name))
        and entry.is_file(follow_symlinks=False)
    ]
    following = min((found for found in later if found[0] > written_ns), default=(0, path))
    return GrowingFile(Path(following[1]))

"""All file operations of `cloud_sync`, behind one interface, so that tests can stop the
world after each of them.

Only SQLite writes past this interface; it brings its own journal. The rules that make a file survive a power
cut: write a new temporary file, fsync it, link it to its final name (which fails if the name exists), fsync
the folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol


class Files(Protocol):
    """The operations that change or read files. Each raises OSError as the operating system does."""

    def make_folder(self, path: Path) -> None:
        """Make a folder and its parents; does nothing if it exists. Durable when this returns."""

    def write(self, path: Path, data: bytes) -> None:
        """Write a whole file, replacing an earlier one. Not durable before `sync`."""

    def sync(self, path: Path) -> None:
        """Make the content of a file durable."""

    def link(self, source: Path, path: Path) -> None:
        """Give a file a second name. Raises FileExistsError if the name is taken. Not durable before
        `sync_folder`."""

    def replace(self, source: Path, path: Path) -> None:
        """Rename a file; an earlier one of that name is gone. Not durable before `sync_folder`."""

    def remove(self, path: Path) -> None:
        """Remove a name; does nothing if it is gone."""

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder durable."""

    def read(self, path: Path) -> bytes | None:
        """The content, or None if there is no such file."""


class DiskFiles:
    """The real file system."""

    def make_folder(self, path: Path) -> None:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            self.sync_folder(folder.parent)

    def write(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)

    def sync(self, path: Path) -> None:
        self._sync(path, os.O_RDWR)

    def link(self, source: Path, path: Path) -> None:
        path.hardlink_to(source)

    def replace(self, source: Path, path: Path) -> None:
        source.replace(path)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def sync_folder(self, path: Path) -> None:
        self._sync(path, os.O_RDONLY)

    def read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None

    def _sync(self, path: Path, flags: int) -> None:
        descriptor = os.open(path, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


PIECE_BYTES = 1_200_000
"""Room that a reserve gives back at a time: enough for the log of the spool,
and too little for the next segment of the journal (2 MB by default), which waits for room as well."""


class Reserve:
    """Disk space kept for a full disk: a file that becomes shorter then, so that others can be cleaned up.
    It gives its space back in pieces, because other files of the gateway wait for room as well."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._size_bytes = size_bytes

    def claim(self) -> bool:
        """Make the file as large as it is to be; False if the disk has no room for that,
        and nothing has changed. A size of 0 claims nothing."""
        found = self._found_bytes()
        if found >= self._size_bytes:
            return True
        try:
            with self._path.open("ab") as file:
                os.posix_fallocate(file.fileno(), found, self._size_bytes - found)
        except OSError:
            self._cut(found)
            return False
        return True

    def free(self) -> bool:
        """Give a piece of the space back; True if there was any."""
        found = self._found_bytes()
        self._cut(max(0, found - PIECE_BYTES))
        return found > 0

    def _found_bytes(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def _cut(self, size_bytes: int) -> None:
        if size_bytes:
            os.truncate(self._path, size_bytes)
        else:
            self._path.unlink(missing_ok=True)

"""The file operations of a directory as a target, behind one interface, so that tests can stop the world
after each of them.

The rules that make a file survive a power cut: write a new temporary file, fsync it, link it to its final
name (which fails if the name exists), fsync the folder.
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

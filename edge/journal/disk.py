"""The file operations of the journal, in one place, so that tests can stop the world
between any two of them."""

from __future__ import annotations

import os
from pathlib import Path


class Disk:
    """The real file system. Each method raises OSError as the operating system does."""

    def make_folder(self, path: Path) -> None:
        """Make a folder that only its owner can enter."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(self, path: Path, size: int) -> int:
        """A file of zeros with room for `size` bytes, opened for writing; its name is durable."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
            os.fsync(descriptor)
            self.sync_folder(path.parent)
        except BaseException:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        return descriptor

    def reopen(self, path: Path, used: int, size: int) -> int:
        """An existing file for writing behind its first `used` bytes; what stood there becomes zeros."""
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_size != size or used:  # else it is a spare one, of zeros
                os.ftruncate(descriptor, used)
                os.posix_fallocate(descriptor, 0, max(size, used, 1))
            os.fsync(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        """Write all of `data`; not durable before `sync`."""
        done = 0
        while done < len(data):
            done += os.pwrite(descriptor, data[done:], offset + done)

    def sync(self, descriptor: int) -> None:
        """Make the written bytes durable."""
        os.fdatasync(descriptor)

    def close(self, descriptor: int, used: int) -> None:
        """Give back the room that was not used, and close."""
        try:
            os.ftruncate(descriptor, used)
        finally:
            os.close(descriptor)

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder durable."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def write_file(self, path: Path, data: bytes) -> None:
        """Write a whole file and make it durable, under a name that is not read yet."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def rename(self, source: Path, target: Path) -> None:
        """Give a durable file its name, durably."""
        source.replace(target)
        self.sync_folder(target.parent)

    def remove(self, path: Path) -> None:
        """Remove a file; does nothing if it is gone."""
        path.unlink(missing_ok=True)

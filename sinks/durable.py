"""Append to files so that a crash or a full disk leaves whole records only."""

from __future__ import annotations

import os


def append_durably(descriptor: int, data: bytes, *, sync: bool = True) -> None:
    """Append all of `data` to an open file, or nothing of it: a partial write is cut off
    before OSError is raised.

    With `sync`, the data are on the disk when this returns.
    """
    size = os.fstat(descriptor).st_size
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if sync:
            os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise

"""Write files so that a crash or a full disk leaves whole records, and whole texts, only."""

from __future__ import annotations

import os
from pathlib import Path


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


def replace_file(path: Path, text: str, mode: int = 0o666) -> None:
    """Put a text in the place of a file's: whatever happens, the file has the old text or the new one.
    Raises OSError.

    mode   the permissions of a new file, as far as the umask lets them; an old one keeps its own
    """
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        if path.exists():
            os.fchmod(descriptor, path.stat().st_mode & 0o777)
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

"""Open files that are certain to lie below one folder.

Paths may contain values from devices, and others may write to the folder. So every component is opened
relative to its parent and no symbolic link below the folder is followed; there is no moment between check and
use.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def check_relative(path: str) -> str:
    """`path` if it names a file below a folder; raises ValueError that says what is not allowed."""
    pure = PurePosixPath(path)
    if not path or path.endswith("/") or "\x00" in path:
        raise ValueError("the path names no file")
    if pure.is_absolute() or path.startswith("~"):
        raise ValueError(
            "the path is absolute; file sinks write below the data folder, so give a relative path"
        )
    if ".." in pure.parts or not pure.name:
        raise ValueError("the path leaves the data folder; '..' is not allowed")
    return path


def open_folder(root: Path, relative: str) -> int:
    """A descriptor of the folder that holds file `relative` of `root`; missing folders are made.

    Raises OSError, among others when a component is a symbolic link.
    """
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in PurePosixPath(check_relative(relative)).parts[:-1]:
            if part not in _entries(descriptor, part):
                os.mkdir(part, 0o750, dir_fd=descriptor)
            child = os.open(part, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = child
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _entries(folder: int, name: str) -> tuple[str, ...]:
    """`name` as a tuple if the folder has such an entry, of any kind; else an empty one."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return ()
    return (name,)


def open_append(folder: int, name: str) -> int:
    """A descriptor of regular file `name` in an open folder, at its end; made when
    missing. Raises OSError."""
    return os.open(name, _APPEND, 0o640, dir_fd=folder)

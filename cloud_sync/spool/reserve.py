"""Disk space kept for a full disk."""

from __future__ import annotations

import os
from pathlib import Path

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

"""The place up to which rows of a file are safe, kept on the disk over restarts, kills and power cuts.

The place is written over the one before, into a file that was made durable once, and lies within one sector:
a power cut leaves the old place or the new one. The loop stores a place without a sync, and a kill does not
lose it; a thread that may wait syncs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rules.problems import in_words
from sinks.durable import replace_file

DIGITS = 20


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A place in a file.

    rows    rows before it
    offset  bytes before it; 0 where rows are counted only
    inode   of the file; 0 where rows are counted only
    head    a digest of the first bytes before it
    """

    rows: int = 0
    offset: int = 0
    inode: int = 0
    head: str = ""


class FilePosition:
    """The position of one source. `on_failure` gets each failure, and the next call tries again."""

    def __init__(self, path: Path, file: Path, on_failure: Callable[[str], None]) -> None:
        """`path`: where it is kept. `file`: the file that is read; the position in another one is 0."""
        self._path = path
        self._file = str(file)
        self._on_failure = on_failure
        self._is_laid_out = False
        self._is_synced = True
        self._not_stored: FilePlace | None = None

    @property
    def is_stored(self) -> bool:
        """False after a place could not be stored; `sync` tries again."""
        return self._not_stored is None

    def read(self) -> FilePlace:
        """The place stored last; the beginning without one."""
        try:
            saved = json.loads(self._path.read_text("utf-8"))
            if saved["file"] != self._file:
                return FilePlace()
            rows, offset, inode = (int(saved.get(name, 0)) for name in ("rows", "offset", "inode"))
            return FilePlace(rows, offset, inode, str(saved.get("head", "")).strip())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return FilePlace()

    def store(self, place: FilePlace) -> None:
        """Store a place, so that the end of the process does not lose it."""
        numbers = f'"rows": {place.rows:{DIGITS}}, "offset": {place.offset:{DIGITS}}'
        file = f'"inode": {place.inode:{DIGITS}}, "head": "{place.head:16}", "file": {json.dumps(self._file)}'
        record = f"{{{numbers}, {file}}}"
        self._not_stored = None
        try:
            if self._is_laid_out:
                self._is_synced = False
                with self._path.open("r+b", buffering=0) as kept:
                    kept.write(record.encode())
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._path, record, 0o600)
            self._is_laid_out = True
        except OSError as error:
            self._is_laid_out = False  # somebody may have removed the file
            self._not_stored = place
            self._on_failure(f"the position in the file is not stored: {in_words(error)}")

    def sync(self) -> None:
        """Make the place stored last survive a power cut."""
        if self._not_stored is not None:
            self.store(self._not_stored)
        if self._is_synced:
            return
        self._is_synced = True  # first, for another place may be stored meanwhile
        try:
            with self._path.open("rb") as kept:
                os.fdatasync(kept.fileno())
        except OSError as error:
            self._is_synced = False
            self._on_failure(f"the position in the file is not on the disk: {in_words(error)}")

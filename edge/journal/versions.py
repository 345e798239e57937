"""Refusal of a journal, snapshot or cache that a newer version wrote, before it is taken for a damaged one.

Recovery goes on behind damage and passes over a snapshot that cannot be read. After a rollback that would
drop state which the newer version can still read.
"""

from __future__ import annotations

import re
from pathlib import Path

from edge.base.errors import UsageError
from edge.journal.reader import newer, segments
from edge.journal.snapshots import snapshot_files
from sinks.cache import is_newer

KNOWN = {re.compile(rb"penstock journal (\d+)\n"): (b"1",), re.compile(rb"penstkS(\d)"): (b"1", b"2", b"3")}
"""The first bytes of segments and snapshots, with the numbers of the forms that this version reads."""

HEAD_BYTES = 32


def check_versions(data: Path) -> None:
    """Raises UsageError for the first file below the data directory whose form this version does not know."""
    listed = [segment.path for segment in segments(data / "journal")]
    for path in [*listed, *(path for _, path in snapshot_files(data / "snapshots"))]:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        for form, known in KNOWN.items():
            found = form.match(head)
            if found is not None and found[1] not in known:
                raise newer(path, f"form {found[1].decode()}")
    for path in (data / "cache").glob("*.db"):
        if is_newer(path):
            raise UsageError(
                f"{path} was written by a newer version of penstock: start that version, which sends the "
                "results in the file; or move the file away, and they are not sent"
            )

"""The audit log of changes: a line of JSON with time and origin for each request for a change, also
for one that was refused."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from edge.clock import Clock
from rules.problems import in_words

log = logging.getLogger("penstock.audit")

BYTES_MAX = 4_000_000
"""At this size the file is kept as `audit.log.1`, and a new one begun."""


class Audit:
    """Appends to a file in the data directory. A full disk stops no request, and is logged."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def note(self, who: str, method: str, what: str, status: int) -> None:
        """Write one line."""
        entry = {"at_ms": self._clock.now_ms(), "who": who, "method": method, "what": what, "status": status}
        log.info("manage.request", extra=entry)
        try:
            if self._path.exists() and self._path.stat().st_size > BYTES_MAX:
                self._path.replace(self._path.with_suffix(".log.1"))
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            log.error("manage.audit_failed", extra={"error": in_words(error)})

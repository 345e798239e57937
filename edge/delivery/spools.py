"""The spools of a gateway: that of results, and that of archived events,
which is opened when a rule archives."""

from __future__ import annotations

from collections.abc import Callable

from cloud_sync.spool import Spool

RESULTS_FILE = "spool.db"
ARCHIVE_FILE = "archive.db"


class Spools:
    """Used by the gateway loop only."""

    def __init__(self, results: Spool, open_archive: Callable[[], Spool]) -> None:
        self.results = results
        self._open_archive = open_archive
        self.opened: tuple[Spool, ...] = (results,)
        """The spools that are open; one that is opened later comes last."""

    def archive(self) -> Spool:
        """The spool of archived events; it is opened by the first call. Raises SpoolError."""
        if len(self.opened) == 1:
            self.opened = (self.results, self._open_archive())
        return self.opened[1]

    def close(self) -> None:
        """Release their files."""
        for spool in self.opened:
            spool.close()

"""Notices that something in the rule directory changed, and says so once the writing has come to rest.

With `watchfiles` the operating system tells at once. Every `POLL_MS` the directory is looked at as well: notices are
lost before the watch is in place, on some file systems, and without `watchfiles` there are none. What changed is not
told, for the manager compares anyway.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from rules.loader import rule_files

log = logging.getLogger("penstock.watch")

POLL_MS = 1_000
"""How often the directory is looked at, whatever the operating system tells."""

REST_MS = 50
"""Changes this close together are told as one: editors write a file in several steps."""

Stamp = tuple[int, int, int]


def stamp(path: Path) -> Stamp:
    """Modification time, size and inode: different when the file was written or replaced. Raises OSError."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def fingerprint(directory: Path) -> dict[str, Stamp]:
    """The stamp of every rule file of `directory`."""
    found: dict[str, Stamp] = {}
    for path in rule_files(directory):
        with contextlib.suppress(OSError):  # gone between the listing and the look
            found[str(path)] = stamp(path)
    return found


class DirectoryWatch:
    """Calls `changed` from its own thread after each change below `directory`, until `close`."""

    def __init__(
        self, directory: Path, changed: Callable[[], None], seen: dict[str, Stamp] | None = None, *, poll: bool = False
    ) -> None:
        """`seen` is the `fingerprint` of what the caller knows already; default: of what is there now."""
        self._directory = directory
        self._changed = changed
        self._stop = threading.Event()
        self._seen = fingerprint(directory) if seen is None else seen
        target = self._poll if poll or importlib.util.find_spec("watchfiles") is None else self._watch
        self._thread = threading.Thread(target=target, name="rule-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join(POLL_MS / 1000)

    def _look(self) -> None:
        now = fingerprint(self._directory)
        if now != self._seen:
            self._seen = now
            self._changed()

    def _poll(self) -> None:
        while not self._stop.wait(POLL_MS / 1000):
            self._look()

    def _watch(self) -> None:
        import watchfiles

        try:
            for _ in watchfiles.watch(
                self._directory, stop_event=self._stop, recursive=False, step=REST_MS, debounce=20 * REST_MS,
                raise_interrupt=False, ignore_permission_denied=True, rust_timeout=POLL_MS, yield_on_timeout=True,
            ):  # fmt: skip
                self._look()
        except (OSError, RuntimeError) as error:
            # No inotify instances left, or the directory was moved away: looking goes on.
            log.warning("watch.polling", extra={"error": str(error)})
            self._poll()

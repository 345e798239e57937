"""Detects changes in the rule directory, and reports them once the writing has come to rest.

Linux reports a change at once (inotify). The directory is also scanned every `POLL_MS`: notices are lost
before the watch is in place and on some file systems, and other systems give none. The report does not
name the change, for the manager compares anyway. A report that could not be acted on is made again.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import select
import threading
from collections.abc import Callable
from pathlib import Path

from edge.base.wakeup import Wakeup
from rules.problems import in_words
from rules.source.directory import rule_files

log = logging.getLogger("penstock.watch")

POLL_MS = 1_000
"""The usual interval at which the directory is scanned, with or without notices."""

AGAIN_MS = 60_000
"""The time after which a report that could not be acted on is made again, unless there is another change."""

REST_MS = 50
"""Changes this close together are reported as one: editors write a file in several steps."""

CLOSE_S = 1.0
"""The longest time that `close` waits for a change that is being taken over."""

NOTICES_BYTES = 65_536
"""The most bytes of notices read at once; the rest is read at the next turn."""

CLOSED_AFTER_WRITING, MOVED, CREATED, DELETED = 0x08, 0xC0, 0x100, 0x200
"""The events requested from inotify; the numbers are those of <sys/inotify.h>."""

Stamp = tuple[int, int, int, int]


def stamp(path: Path) -> Stamp:
    """Times of the last write and of the last change of rights, size and inode: different when the file was
    written or replaced, or may be read now; of a link that leads nowhere, its own. Raises OSError."""
    stat = path.stat() if path.exists() else path.lstat()
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino


def fingerprint(directory: Path) -> dict[str, Stamp]:
    """The stamp of every rule file of `directory`."""
    found: dict[str, Stamp] = {}
    for path in rule_files(directory):
        with contextlib.suppress(OSError):  # gone between the listing and the look
            found[str(path)] = stamp(path)
    return found


def open_notices(directory: Path) -> int | None:
    """A descriptor that can be read when something in `directory` has changed; None where
    the system has no such notices."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        return None
    descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    mask = CLOSED_AFTER_WRITING | MOVED | CREATED | DELETED
    if descriptor < 0 or libc.inotify_add_watch(descriptor, os.fsencode(directory), mask) < 0:
        # No inotify instances or watches left, or the directory is gone: looking goes on.
        os_error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        log.warning("watch.polling", extra={"error": in_words(os_error)})
        if descriptor >= 0:
            os.close(descriptor)
        return None
    return descriptor


class DirectoryWatch:
    """Calls `changed` from its own thread after each change below `directory`, until `close`; again if it
    returns False or raises."""

    def __init__(
        self,
        directory: Path,
        changed: Callable[[], bool],
        seen: dict[str, Stamp] | None = None,
        *,
        poll: bool = False,
        poll_ms: int = POLL_MS,
        again_ms: int = AGAIN_MS,
    ) -> None:
        """`seen` is the `fingerprint` that the caller has taken already; default: the present one.

        poll     scan only, as on systems without notices
        poll_ms  the interval between two scans
        again_ms the time after which a report that could not be acted on is made again
        """
        self._directory = directory
        self._changed = changed
        self._poll_ms = poll_ms
        self._again_scans = again_ms // poll_ms
        self._scans_left: int | None = None
        """The scans until the last report is made again; None: it was acted on."""
        self._stopping = False
        self._wakeup = Wakeup()
        self._seen = fingerprint(directory) if seen is None else seen
        notices = None if poll else open_notices(directory)
        self._thread = threading.Thread(target=self._watch, args=(notices,), name="rule-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching. Does not wait long for a change that is being taken over."""
        self._stopping = True
        self._wakeup.set()
        self._thread.join(CLOSE_S)

    def _watch(self, notices: int | None) -> None:
        waiting = select.poll()
        waiting.register(self._wakeup, select.POLLIN)
        if notices is not None:
            waiting.register(notices, select.POLLIN)
        try:
            while not self._stopping:
                if waiting.poll(self._poll_ms) and notices is not None:
                    self._rest(waiting, notices)
                if not self._stopping:
                    self._look()
        finally:
            self._wakeup.close()
            if notices is not None:
                os.close(notices)

    def _rest(self, waiting: select.poll, notices: int) -> None:
        """Until nothing has changed for `REST_MS`, or for the time between two scans if changes go on."""
        for _ in range(self._poll_ms // REST_MS):
            with contextlib.suppress(BlockingIOError):
                os.read(notices, NOTICES_BYTES)
            if self._stopping or not waiting.poll(REST_MS):
                return

    def _look(self) -> None:
        now = fingerprint(self._directory)
        if self._scans_left is not None:
            self._scans_left -= 1
        if now != self._seen or self._scans_left == 0:
            self._seen = now
            self._scans_left = None if self._acts() else self._again_scans

    def _acts(self) -> bool:
        try:
            return self._changed()
        except Exception:  # the next change must be noticed, whatever this one met
            log.exception("watch.failed")
            return False

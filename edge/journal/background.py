"""Work that waits for the disk: done at once where the disk is quick, else on a thread,
so that the loop goes on.

A thread costs two wake-ups a commit, more than the sync itself on a quick disk. On a slow one the loop would
stand still while it syncs; and one sync in a hundred that takes long is enough for the slowest results.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from edge.clock import Clock

SLOW_MS_MIN = 1
"""Work that takes longer may be slow."""

WARY_MS = 600_000
"""For so long after slow work the thread does all of it: a slow disk holds the loop once in this time."""

Work = Callable[[], None]


class Background:
    """One piece of work at a time. Used by the gateway loop only."""

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        """`wake` is called on the thread when its work has ended."""
        self._clock = clock
        self._wake = wake
        self._wary_until_ms: int | None = None
        self.patience_ms = 0
        """Work that takes longer is slow: for so long results may wait."""
        self.is_busy = False
        """True from `begin` until `end` is called."""
        self._running = threading.Lock()
        """Held while the work is under way."""
        self._error: Exception | None = None
        self._took_ms = 0
        self._orders: SimpleQueue[Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def is_done(self) -> bool:
        """True if `end` would not wait."""
        return not self._running.locked()

    def begin(self, work: Work, *, at_once: bool) -> None:
        """Do the work, or let the thread do it; `end` reports the outcome. `at_once`: the
        caller has time to wait."""
        self.is_busy = True
        self._running.acquire()
        if at_once or not self._is_wary():
            self._do(work)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="journal", daemon=True)
            self._thread.start()
        self._orders.put(work)

    def end(self) -> None:
        """Wait for the work. Raises what it raised."""
        with self._running:
            self.is_busy = False
        if self._took_ms > max(SLOW_MS_MIN, self.patience_ms):
            self.be_wary()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def be_wary(self) -> None:
        """Let the thread do all work for a while: the disk is slow, or not known yet."""
        self._wary_until_ms = self._clock.monotonic_ms() + WARY_MS

    def _is_wary(self) -> bool:
        return self._wary_until_ms is not None and self._clock.monotonic_ms() < self._wary_until_ms

    def close(self) -> None:
        """Wait for the work, however it went, and end the thread."""
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        while (work := self._orders.get()) is not None:
            self._do(work)
            self._wake()

    def _do(self, work: Work) -> None:
        began_ms = self._clock.monotonic_ms()
        try:
            work()
        except Exception as error:  # noqa: BLE001 - `end` raises it
            self._error = error
        self._took_ms = self._clock.monotonic_ms() - began_ms
        self._running.release()

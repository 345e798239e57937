"""Work that waits for the disk: done at once where the disk is quick, else on a thread,
so that the loop goes on.

A thread costs two wake-ups a commit, more than the sync itself on a quick disk. On a slow one the loop would
stand still while it syncs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from edge.clock import Clock

SLOW_MS = 5
"""Work that takes longer is slow."""

MEMORY = 0.99
"""The weight of earlier work in the moving average of slowness: about the last hundred
pieces count."""

SLOW_MIN = 1.5
"""From so many slow ones among the last hundred on, the thread does all work."""

Work = Callable[[], None]


class Background:
    """One piece of work at a time. Used by the gateway loop only."""

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        """`wake` is called on the thread when its work has ended."""
        self._clock = clock
        self._wake = wake
        self._slowness = 0.0
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
        if at_once or self._slowness < SLOW_MIN:
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
        self._slowness = MEMORY * self._slowness + (self._took_ms > SLOW_MS)
        error, self._error = self._error, None
        if error is not None:
            raise error

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

"""Work that waits for the disk: done at once where the disk is quick, else on a thread, so that the loop goes on.

A thread costs two wake-ups a commit, more than the sync itself on a quick disk. On a slow one the loop would stand
still while it syncs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from edge.clock import Clock

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

SLOW_MS = 2
"""Work that takes longer shows that the disk is slow or busy."""

SLOW_FOR_MS = 60_000
"""How long after that all work is done on the thread."""


class Background:
    """One piece of work at a time. Used by the gateway loop only."""

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        """`wake` is called on the thread when its work has ended."""
        self._clock = clock
        self._wake = wake
        self._threads: ThreadPoolExecutor | None = None
        self._work: Future[int] | None = None
        self._slow_until_ms = 0

    @property
    def is_busy(self) -> bool:
        """Whether `end` has not been called for the last `begin`."""
        return self._work is not None

    @property
    def is_done(self) -> bool:
        """Whether `end` would not wait."""
        return self._work is None or self._work.done()

    def begin(self, work: Callable[[], None], *, at_once: bool) -> None:
        """Do the work, or let the thread do it; `end` tells how it went. `at_once`: the caller has time to wait."""
        if at_once or self._clock.monotonic_ms() >= self._slow_until_ms:
            self._work = Future()
            try:
                self._work.set_result(self._timed(work))
            except Exception as error:  # noqa: BLE001 - `end` raises it, as it does what the thread meets
                self._work.set_exception(error)
            return
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(1, "journal")
        self._work = self._threads.submit(self._timed, work)
        self._work.add_done_callback(lambda _: self._wake())

    def end(self) -> None:
        """Wait for the work. Raises what it raised."""
        work, self._work = self._work, None
        if work is not None and work.result() > SLOW_MS:
            self._slow_until_ms = self._clock.monotonic_ms() + SLOW_FOR_MS

    def close(self) -> None:
        """Wait for the work, however it went, and end the thread."""
        if self._threads is not None:
            self._threads.shutdown()

    def _timed(self, work: Callable[[], None]) -> int:
        began_ms = self._clock.monotonic_ms()
        work()
        return self._clock.monotonic_ms() - began_ms

"""The only place that reads the wall clock.

Everything else gets a `Clock` or a number. The engine needs a time that never goes back: a window must not
close twice because the clock was set. The wall clock of a gateway does go back, and it boots in 1970
where there is no battery. `SteadyTime` turns the one into the other:

    wall clock jumps ahead   follow at once, count a step
    wall clock goes back     do not go back: run at nine tenths of the speed
                             until the wall clock has caught up
    otherwise                the wall clock itself

`Clock.is_sane` is false until the wall clock shows a year in which this program can run; uploads wait for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger("penstock.clock")

STEP_MS = 1_000
"""A difference between wall and monotonic clock from which a correction counts as a step."""

SLEW = 0.9
"""Speed of the steady time while it waits for a wall clock that was set back."""

SANE_FROM_MS = 1_735_689_600_000
"""1 January 2025, UTC: an earlier wall clock has not been set yet."""


def monotonic_ms() -> int:
    """Milliseconds since some start, as `poll` counts them."""
    return time.monotonic_ns() // 1_000_000


class Clock(Protocol):
    """The source of time for the daemon."""

    @property
    def steps(self) -> int:
        """The number of jumps of the wall clock, in either direction."""

    @property
    def ahead_ms(self) -> int:
        """The lead of the last answer over a wall clock that was set back or is not set yet."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch; never smaller than an earlier answer."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some start, for measuring how long things take."""

    def is_sane(self) -> bool:
        """True if the wall clock has been set since boot."""

    def go_on_from(self, at_ms: int) -> None:
        """Answer no earlier time from now on: it is the last one of an earlier run."""

    def wait(self, condition: threading.Condition, timeout_ms: int | None) -> None:
        """Sleep on a held condition until it is notified or `timeout_ms` has passed (None: until
        notified)."""


class SteadyTime:
    """Wall clock readings made monotonic. Pure: it is given both readings.

    >>> steady, at = SteadyTime(), SANE_FROM_MS
    >>> readings = [(5_000, 0), (5_100, 100), (3_000, 200), (9_000, 300)]
    >>> [steady.read(at + wall, monotonic) - at for wall, monotonic in readings], steady.steps
    ([5000, 5100, 5190, 9000], 2)
    """

    def __init__(self, on_step: Callable[[int], None] | None = None) -> None:
        """`on_step` gets the milliseconds by which the wall clock has jumped; negative: back."""
        self.steps = 0
        self.ahead_of_wall_ms = 0
        self._on_step = on_step
        self._now: float | None = None
        self._monotonic_ms = 0
        self._ahead_ms = 0
        """By how much the wall clock was ahead of the monotonic one."""

    def go_on_from(self, at_ms: int) -> None:
        """Continue from a time of an earlier run. A wall clock that is behind it counts as a step."""
        if self._now is None or at_ms <= self._now:
            return
        if at_ms - self._now >= STEP_MS:
            self._count(self._now - at_ms)
        self._now = float(at_ms)

    def read(self, wall_ms: int, monotonic_ms: int) -> int:
        """The steady time for this pair of readings."""
        before, ahead_ms = self._now, wall_ms - monotonic_ms
        if before is None:
            self._now = wall_ms
        else:
            if not -STEP_MS < ahead_ms - self._ahead_ms < STEP_MS:
                self._count(ahead_ms - self._ahead_ms)
            elapsed = monotonic_ms - self._monotonic_ms
            if wall_ms >= before + elapsed:
                self._now = wall_ms
            else:  # a clock that is not set yet is no goal to wait for
                self._now = max(wall_ms, before + elapsed * (SLEW if wall_ms >= SANE_FROM_MS else 1))
        self._ahead_ms, self._monotonic_ms = ahead_ms, monotonic_ms
        self.ahead_of_wall_ms = int(self._now) - wall_ms
        return int(self._now)

    def _count(self, by_ms: float) -> None:
        """Count a step."""
        self.steps += 1
        if self._on_step is not None:
            self._on_step(int(by_ms))


class SystemClock:
    """The clock of the running daemon; may be read from any thread. Logs each step of the wall clock."""

    def __init__(self) -> None:
        self._steady = SteadyTime(_log_step)
        self._lock = threading.Lock()

    @property
    def steps(self) -> int:
        return self._steady.steps

    @property
    def ahead_ms(self) -> int:
        return self._steady.ahead_of_wall_ms

    def now_ms(self) -> int:
        with self._lock:
            return self._steady.read(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)

    monotonic_ms = staticmethod(monotonic_ms)

    def is_sane(self) -> bool:
        return time.time_ns() // 1_000_000 >= SANE_FROM_MS

    def go_on_from(self, at_ms: int) -> None:
        self.now_ms()
        with self._lock:
            self._steady.go_on_from(at_ms)

    def wait(self, condition: threading.Condition, timeout_ms: int | None) -> None:
        condition.wait(None if timeout_ms is None else timeout_ms / 1000)


def _log_step(by_ms: int) -> None:
    """Results keep their times where the wall clock went back, so their times are ahead of it for a while."""
    note = "time goes on from where it was, until the wall clock has caught up" if by_ms < 0 else None
    log.warning("clock.stepped", extra={"by_ms": by_ms, "note": note})


class SimulatedClock:
    """A clock that stands still until it is moved; a waiting caller waits until it was moved far enough."""

    def __init__(self, now_ms: int = SANE_FROM_MS) -> None:
        self._waiting: list[threading.Condition] = []
        self._wall_ms = now_ms
        self._monotonic_ms = 0
        self._steady = SteadyTime()
        self.now_ms()

    @property
    def steps(self) -> int:
        return self._steady.steps

    @property
    def ahead_ms(self) -> int:
        return self._steady.ahead_of_wall_ms

    def now_ms(self) -> int:
        return self._steady.read(self._wall_ms, self._monotonic_ms)

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def is_sane(self) -> bool:
        return self._wall_ms >= SANE_FROM_MS

    def go_on_from(self, at_ms: int) -> None:
        self.now_ms()
        self._steady.go_on_from(at_ms)

    def wait(self, condition: threading.Condition, timeout_ms: int | None) -> None:
        until_ms = None if timeout_ms is None else self._monotonic_ms + timeout_ms
        self._waiting.append(condition)
        try:
            if until_ms is None or self._monotonic_ms < until_ms:
                condition.wait()
        finally:
            self._waiting.remove(condition)

    def move(self, elapsed_ms: int) -> None:
        """Let time pass, and wake all waiting threads, to read the time again."""
        self._wall_ms += elapsed_ms
        self._monotonic_ms += elapsed_ms
        for condition in list(self._waiting):
            with condition:
                condition.notify_all()

    def set_wall(self, wall_ms: int) -> None:
        """Set the wall clock, as an operator or a time server would."""
        self._wall_ms = wall_ms

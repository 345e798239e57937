"""A bound on the time that a run takes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CALLBACKS = ("__del__", "_remove", "gc_callback")
"""The names of finalizers, of callbacks of weak references and of the collector: an exception in one is
reported, and does not leave it."""
AGAIN_S = 0.1
"""The time after which an alarm that met such a callback rings again."""


class TooSlow(BaseException):
    """A run took longer than it may. No `Exception`: what handles those of a rule is to let it through."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooSlow in the body after so many seconds."""
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(number: int, frame: FrameType | None) -> None:
    inner = frame
    while inner is not None:
        if inner.f_code.co_name in CALLBACKS:
            return
        inner = inner.f_back
    raise TooSlow

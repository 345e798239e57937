"""A bound on the time that a run takes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class TooSlow(BaseException):
    """A run took longer than it may. No `Exception`: what handles those of a rule is to let it through."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooSlow in the body after so many seconds."""
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again: a finalizer swallows what is raised in it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(number: int, frame: object) -> None:
    raise TooSlow

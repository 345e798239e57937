"""The waits of tests: for a condition, with one time limit for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, TypeVar

import pytest

T = TypeVar("T")

PATIENCE_S = 120.0
"""The time limit for what must happen. Only a defect takes so long: on a machine whose processors are
busy with other work a process may need a minute for what otherwise takes a second."""

PATIENCE_MS = int(PATIENCE_S * 1000)

PAUSE_S_MAX = 0.02


def wait_for(condition: Callable[[], T | Literal[False]], what: str = "the condition") -> T:
    """The first true value of `condition()`; fails the test after `PATIENCE_S`."""
    deadline_s, pause_s = time.monotonic() + PATIENCE_S, 0.002
    while not (found := condition()):
        if time.monotonic() > deadline_s:
            pytest.fail(f"{what} did not come true within {PATIENCE_S:.0f} s; last value {found!r}")
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, PAUSE_S_MAX)
    return found

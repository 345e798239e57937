"""Windows on the events' own time stamps: one that is no number is an error event, and
the window is as it was."""

from __future__ import annotations

from typing import Any

import pytest

from sql.types import describe
from tests.unit.fast.support import Run, shown

DAY_MS = 86_400_000
WRONG: list[Any] = ["x", "1000", True, False, [1], {"a": 1}, float("nan"), float("inf"), float("-inf")]

WINDOWS = [
    "#ext_timed(n, 10 msec)",
    "#ext_timed_batch(n, 10 msec)",
    "#ext_timed_batch(n, 10 msec, 3L)",
    "#time_order(n, 10 msec)",
    "#timetolive(n)",
    "#length(2)#ext_timed(n, 10 msec)",
    "#length(5)#ext_timed_batch(n, 10 msec)",
    "#length(2)#ext_timed(n, 10 msec) retain-union",
    "#groupwin(dev)#ext_timed(n, 10 msec)",
    "#groupwin(dev)#ext_timed_batch(n, 10 msec)",
]


def given(run: Run, stamp: Any, at_ms: int) -> list[Any]:
    return run.step((at_ms, [{"dev": "a", "n": stamp}]))


@pytest.mark.parametrize("window", WINDOWS)
def test_a_stamp_that_is_no_number_changes_nothing(window: str) -> None:
    sql = f"select irstream n, count(*) as c from m{window}"
    clean, soiled = (Run(sql, event_time=False) for _ in range(2))
    for at, (wrong, stamp) in enumerate(zip(WRONG, [5, 9.5, None, 14, 16, 3, 40, 41.5, 80], strict=True)):
        (told,) = [e for e in given(soiled, wrong, 10 * at) if e.kind == "error"]
        assert (
            told.error is not None
            and f"a time stamp is a number of milliseconds, not {describe(wrong)}" in told.error
        )
        given(clean, "x", 10 * at)
        soiled.restart()
        assert shown(given(soiled, stamp, 10 * at + 1)) == shown(given(clean, stamp, 10 * at + 1))
    assert soiled.engine.counters("r")["errors"] == len(WRONG)


@pytest.mark.parametrize("window", ["#ext_timed(n, 1 month)", "#ext_timed_batch(n, 1 month)"])
def test_a_stamp_outside_the_calendar_is_an_error_too(window: str) -> None:
    run = Run(f"select n from m#length(9){window}", event_time=False)
    kinds = [
        [e.kind for e in given(run, stamp, 0)] for stamp in (10**16, 0, 30.5 * DAY_MS, -(10**16), 32 * DAY_MS)
    ]
    # The first of February ends the batch that began with the epoch.
    row = [[], ["rows"]] if "batch" in window else [["rows"]] * 2
    assert kinds == [["error"], row[0], row[0], ["error"], row[1]]

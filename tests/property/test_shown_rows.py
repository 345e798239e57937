"""Windows that show their rows: batches of events and restarts change nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.search import examples
from tests.unit.fast.support import Step, compare
from tests.unit.fast.test_any_stream import WINDOWS, streams

SELECTS = [
    "SELECT * FROM m GROUP BY {}",
    "SELECT dev, v * 2 AS w, window_start() AS ws, window_end() AS we FROM m GROUP BY {}",
    "SELECT dev, n FROM m WHERE v > 0 OR n = 1 GROUP BY {} FILTER(WHERE n < 3)",
    "SELECT dev, v FROM m GROUP BY {} ORDER BY n DESC, v LIMIT 3",
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("select", SELECTS)
@given(
    steps=streams(), event_time=st.booleans(), restarts=st.booleans(), tolerance=st.sampled_from([0, 1000])
)
@examples(50)
def test_rows(
    window: str, select: str, steps: list[Step], event_time: bool, restarts: bool, tolerance: int
) -> None:
    compare(
        select.format(window), steps, event_time=event_time, restarts=restarts, late_tolerance_ms=tolerance
    )


@pytest.mark.parametrize("window", WINDOWS)
@given(steps=streams(plain=True), restarts=st.booleans())
@examples(25)
def test_rows_of_structs(window: str, steps: list[Step], restarts: bool) -> None:
    compare("SELECT dev, v + n AS w FROM m GROUP BY " + window, steps, structs=True, restarts=restarts)


@pytest.mark.parametrize("window", WINDOWS)
@given(
    steps=streams(),
    event_time=st.booleans(),
    events=st.integers(1, 20),
    where=st.booleans(),
    restarts=st.booleans(),
)
@examples(50)
def test_the_bound_of_events(
    window: str, steps: list[Step], event_time: bool, events: int, where: bool, restarts: bool
) -> None:
    # What WHERE drops is in the window all the same.
    condition = "WHERE v > 0 " if where else ""
    sql = f"SELECT dev, v FROM m {condition}GROUP BY {window} FILTER(WHERE n != 2)"
    compare(sql, steps, event_time=event_time, restarts=restarts, max_window_events=events)

"""Aggregates that look at more than numbers: batches and restarts change nothing."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.search import examples
from tests.unit.fast.support import Step, compare
from tests.unit.fast.test_any_stream import streams

WINDOWS = ["TUMBLINGWINDOW(ss, 2)", "SESSIONWINDOW(ss, 5, 2)", "COUNTWINDOW(4)"]

AGGREGATES = [
    "collect(v) AS x",
    "collect(*) AS x, count(*) AS c",
    "median(n) AS m, avg(v) AS a",
    "percentile_cont(n, 0.25) AS p, percentile_disc(n, 0.5) AS q",
    "stddev(v) AS s, var_samp(n) AS w",
    "last_value(v, true) AS l, last_value(n, false) AS k, sum(n) AS s",
    "merge_agg(*) AS o",
    "merge_agg(v) AS o, max(n) AS hi",
    "count(distinct v) AS d, sum(distinct n) AS s",
    "avg(n) FILTER (WHERE v > 0) AS f, count(*) AS c",
    "max(v) FILTER (WHERE n > 0) AS hi, collect(n) FILTER (WHERE v IS NOT NULL) AS x, min(v) AS lo",
]


OVERLAPPING = [
    "HOPPINGWINDOW(ss, 5, 2)",
    "HOPPINGWINDOW(ss, 4, 2)",
    "HOPPINGWINDOW(ss, 1, 2)",
    "COUNTWINDOW(5, 2)",
    "COUNTWINDOW(3, 1)",
    "COUNTWINDOW(4, 2)",
]

MERGED = [
    "collect(v) AS x",
    "collect(*) AS x, count(*) AS c, avg(v) AS a",
    "stddev(v) AS s, var_samp(n) AS w, sum(v) AS t",
    "last_value(v, true) AS l, last_value(n, false) AS k, sum(n) AS s",
    "merge_agg(*) AS o",
    "count(distinct v) AS d, avg(n) FILTER (WHERE v > 0) AS f, count(*) FILTER (WHERE n = 1) AS c",
]


@pytest.mark.parametrize(
    ("window", "aggregates"), [*product(WINDOWS, AGGREGATES), *product(OVERLAPPING, MERGED)]
)
@given(steps=streams(), event_time=st.booleans(), restarts=st.booleans(), key=st.booleans())
@examples(40)
def test_windows(
    window: str, aggregates: str, steps: list[Step], event_time: bool, restarts: bool, key: bool
) -> None:
    group = "dev, " if key else ""
    sql = (
        f"SELECT {group}{aggregates}, window_end() AS we FROM m WHERE n != 2 OR v = 1 "
        f"GROUP BY {group}{window}"
    )
    compare(sql, steps, event_time=event_time, restarts=restarts)


@pytest.mark.parametrize("window", [window for window in OVERLAPPING if window != "COUNTWINDOW(4, 2)"])
@given(steps=streams(), event_time=st.booleans(), restarts=st.booleans())
@examples(100)
def test_text_in_panes_before(window: str, steps: list[Step], event_time: bool, restarts: bool) -> None:
    sql = (
        "SELECT dev, max(v) AS hi, stddev(n) AS s, min(n) AS lo, collect(v) AS x FROM m "
        f"GROUP BY dev, {window}"
    )
    compare(sql, steps, event_time=event_time, restarts=restarts)


@pytest.mark.parametrize("aggregates", ["collect(v) AS x", "count(distinct v) AS d, avg(v) AS a"])
@pytest.mark.parametrize("window", [*WINDOWS, *OVERLAPPING])
@given(
    steps=streams(),
    events=st.integers(1, 20),
    groups=st.integers(1, 3),
    where=st.booleans(),
    restarts=st.booleans(),
)
@examples(40)
def test_bounds(
    window: str, aggregates: str, steps: list[Step], events: int, groups: int, where: bool, restarts: bool
) -> None:
    condition = "WHERE v > 0 " if where else ""
    sql = f"SELECT dev, {aggregates} FROM m {condition}GROUP BY dev, {window} FILTER(WHERE n != 2)"
    compare(sql, steps, restarts=restarts, max_window_events=events, max_groups=groups)


@pytest.mark.parametrize(
    "window",
    [
        "#length_batch(3)",
        "#time_batch(2 sec)",
        '#time_batch(1 sec, "FORCE_UPDATE")',
        "#ext_timed_batch(ts, 1 sec)",
    ],
)
@pytest.mark.parametrize("group", ["", " group by dev"])
@given(steps=streams(), event_time=st.booleans(), restarts=st.booleans())
@examples(40)
def test_batches(window: str, group: str, steps: list[Step], event_time: bool, restarts: bool) -> None:
    aggregates = (
        "count(distinct v) as d, first(v) as a, last(n) as z, nth(v, 1) as s, avg(n) as m, window(n) as w"
    )
    keys = "dev, " if group else ""
    sql = f"select {keys}{aggregates} from m{window}{group}"
    compare(sql, steps, event_time=event_time, restarts=restarts)


@pytest.mark.parametrize("window", [*WINDOWS, *OVERLAPPING])
@given(steps=streams(plain=True), restarts=st.booleans())
@examples(25)
def test_structs(window: str, steps: list[Step], restarts: bool) -> None:
    middle = "median" if window in WINDOWS else "stddev"
    sql = f"SELECT dev, collect(v) AS x, {middle}(n) AS m, avg(v) AS a FROM m GROUP BY dev, {window}"
    compare(sql, steps, structs=True, restarts=restarts)

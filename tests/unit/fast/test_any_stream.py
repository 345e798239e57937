"""Batches and restarts change nothing, on random streams with values of every kind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.search import examples
from tests.unit.fast.support import Step, compare

SELECT = (
    "SELECT {keys}count(*) AS c, count(v) AS cv, sum(v) AS s, avg(v) AS a, min(v) AS lo, max(v) AS hi, "
    "sum(n * 2) AS n2, window_start() AS ws, window_end() AS we FROM m"
)

WINDOWS = [
    "TUMBLINGWINDOW(ss, 2)",
    "SESSIONWINDOW(ss, 5, 2)",
    "HOPPINGWINDOW(ss, 5, 2)",
    "HOPPINGWINDOW(ms, 3000, 1000)",
    "COUNTWINDOW(4)",
    "COUNTWINDOW(5, 2)",
    "COUNTWINDOW(3, 1)",
]

numbers = st.one_of(
    st.integers(-5, 5),
    st.floats(-100, 100),
    st.sampled_from([71.53, 0.1, 0.2, 1e16, -1e16, 1e308, -1e308, 5e-324]),
    st.sampled_from([float("nan"), float("inf"), float("-inf"), 2**53, 2**53 + 1, -(10**40), 10**400]),
)
values = st.one_of(
    numbers, numbers, numbers, st.none(), st.sampled_from(["x", "y", True, False, [1], {"a": 1}])
)
keys = st.one_of(
    st.sampled_from(["a", "b", "ü€"]), st.sampled_from([None, 1, 1.0, "1", True, float("nan"), [1], {"a": 2}])
)


@st.composite
def streams(draw: st.DrawFn, plain: bool = False) -> list[Step]:
    """Batches with growing time; in event time the stamps are the batch's instants, a little disordered."""
    steps: list[Step] = []
    now_ms = 0
    for _ in range(draw(st.integers(1, 8))):
        now_ms += draw(st.sampled_from([0, 1, 300, 1000, 1999, 2000, 2500, 9000]))
        events: list[dict[str, Any]] = []
        for _ in range(draw(st.integers(0, 6))):
            back = draw(st.sampled_from([0, 0, 0, 1, 700, 2100]))
            events.append(
                {
                    "dev": draw(st.sampled_from(["a", "b"]) if plain else keys),
                    "v": draw(st.floats(0, 100) if plain else values),
                    "n": draw(
                        st.integers(-3, 3)
                        if plain
                        else st.one_of(st.integers(-3, 3), st.none(), st.just("z"))
                    ),
                    "ts": max(0, now_ms - back) if draw(st.integers(0, 20)) != 20 else "bad",
                }
            )
        steps.append((now_ms, events))
    return steps


def grouped(window: str, key: bool = True, rest: str = "") -> str:
    """A rule over a window."""
    return SELECT.format(keys="dev, " if key else "") + rest.format(
        group=f"GROUP BY {'dev, ' if key else ''}{window}"
    )


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("key", [True, False])
@pytest.mark.parametrize("event_time", [False, True])
@given(steps=streams(), restarts=st.booleans(), tolerance=st.sampled_from([0, 0, 1000]))
def test_windows(
    window: str, key: bool, event_time: bool, steps: list[Step], restarts: bool, tolerance: int
) -> None:
    sql = grouped(window, key, " {group}")
    compare(sql, steps, event_time=event_time, restarts=restarts, late_tolerance_ms=tolerance)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("event_time", [False, True])
@given(steps=streams())
def test_clauses_around_windows(window: str, event_time: bool, steps: list[Step]) -> None:
    sql = (
        f"SELECT dev, n, avg(v) AS a, count(*) AS c FROM m WHERE v > 0 OR n = 1 GROUP BY dev, n, {window} "
        "FILTER(WHERE n < 3) HAVING count(*) > 1 AND avg(v) < 50 ORDER BY c DESC, a LIMIT 2"
    )
    compare(sql, steps, event_time=event_time)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT dev, v * 1.8 + 32 AS f, v / n AS q FROM m WHERE v > 20",
        "SELECT * FROM m WHERE dev = 'a' AND n IN (1, 2) OR v BETWEEN 1 AND 3",
        "SELECT dev, CASE WHEN v > 1 THEN 'high' ELSE upper(dev) END AS k, v - lag(v) AS d FROM m "
        "WHERE n IS NOT NULL",
        "SELECT lag(v, 2) OVER (PARTITION BY dev WHEN n > 0) AS l, latest(v, 0) AS t FROM m "
        "WHERE had_changed(true, n)",
    ],
)
@pytest.mark.parametrize("event_time", [False, True])
@given(steps=streams(), restarts=st.booleans())
def test_rules_without_a_window(sql: str, event_time: bool, steps: list[Step], restarts: bool) -> None:
    compare(sql, steps, event_time=event_time, restarts=restarts)


@given(steps=streams(plain=True))
def test_rows_of_structs(steps: list[Step]) -> None:
    compare(grouped(WINDOWS[0], True, " {group}"), steps, structs=True)
    compare("SELECT dev, v + n AS w FROM m WHERE v > 10", steps, structs=True)


@pytest.mark.parametrize("window", WINDOWS)
@given(steps=streams())
def test_the_bound_of_groups(window: str, steps: list[Step]) -> None:
    compare(grouped(window, True, " {group}"), steps, max_groups=2)


RUNNING = (
    "count(*) AS c, count(v) AS cv, sum(v) AS s, avg(v) AS a, min(v) AS lo, max(v) AS hi, sum(n * 2) AS n2"
)


@pytest.mark.parametrize(
    "sql",
    [
        f"select {RUNNING} from m#length(3)",
        f"select dev, v, {RUNNING} from m(n != 2)#length(4) having avg(v) > 1",
        f"SELECT {RUNNING}, window_start() AS ws, window_end() AS we FROM m GROUP BY SLIDINGWINDOW(ms, 2100)",
        f"SELECT {RUNNING} FROM m GROUP BY SLIDINGWINDOW(ss, 5) FILTER(WHERE n < 3) HAVING avg(v) > 1",
    ],
)
@pytest.mark.parametrize("event_time", [False, True])
@given(steps=streams(), restarts=st.booleans())
def test_windows_looked_at_with_every_event(
    sql: str, event_time: bool, steps: list[Step], restarts: bool
) -> None:
    compare(sql, steps, event_time=event_time, restarts=restarts)


KINDS = [
    "select * from m{window}",
    "select dev, v, {all} from m{window}",
    "select {all} from m{window}",
    "select dev, {all} from m{window} group by dev",
    "select dev, n, {all} from m(n != 2){window} group by dev having count(*) < 3",
    "select v, {all} from m{window} where n > 0",
    "select {all} from m{window} where n > 0 having count(*) > 1",
    "select dev, {all} from m{window} where n > 0 group by dev",
    "select dev, n * 2 as k, count(*) as c from m{window} group by dev, n * 2 order by c limit 1",
    "select irstream *, istream() as new from m{window} where n > 0",
    "select irstream dev, v, {all} from m{window}",
    "select irstream {all} from m{window} having avg(v) > 1",
    "select irstream dev, {all}, istream() as new from m{window} where n > 0 group by dev",
    "select rstream dev, n, {all} from m(n != 2){window} group by dev",
    "select irstream dev, count(*) as c from m{window} group by dev order by c desc",
]
EPL_WINDOWS = [
    "#length(3)",
    "#lastevent",
    "#keepall",
    "#time(2100 msec)",
    "#ext_timed(n, 2 msec)",
    "#unique(dev)",
    "#unique(dev, n * 2)",
]


FED = (
    "stddev(v) as sd, median(v) as me, first(dev) as f, last(n) as l, count(distinct dev) as d, "
    "window(n) as w, avg(v, filter:n > 0) as af, max(dev) as md, sum(v) as s, maxby(n).dev as b"
)


@pytest.mark.parametrize("window", EPL_WINDOWS)
@pytest.mark.parametrize(
    "kind",
    [
        f"select {FED} from m{{window}}",
        f"select irstream dev, n, {FED} from m{{window}} where n <> 2 group by dev",
    ],
)
@given(event_time=st.booleans(), steps=streams(), restarts=st.booleans())
def test_aggregates_without_statements(
    window: str, kind: str, event_time: bool, steps: list[Step], restarts: bool
) -> None:
    compare(kind.format(window=window), steps, event_time=event_time, restarts=restarts)


@pytest.mark.parametrize("window", EPL_WINDOWS)
@pytest.mark.parametrize("event_time", [False, True])
@given(kind=st.sampled_from(KINDS), steps=streams(), restarts=st.booleans(), limit=st.sampled_from([2, 1000]))
@examples(300)
def test_windows_of_epl(
    window: str, event_time: bool, kind: str, steps: list[Step], restarts: bool, limit: int
) -> None:
    sql = kind.format(window=window, all=RUNNING)
    compare(sql, steps, event_time=event_time, restarts=restarts, max_groups=limit)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT dev, n, {RUNNING} FROM m GROUP BY dev, SLIDINGWINDOW(ms, 2100)",
        f"SELECT dev, v, {RUNNING} FROM m WHERE n > 0 GROUP BY SLIDINGWINDOW(ms, 2100)",
        f"SELECT {RUNNING} FROM m WHERE n > 0 GROUP BY SLIDINGWINDOW(ss, 2) OVER (WHEN v > 0)",
        "SELECT dev, count(*) AS c, window_start() AS ws FROM m "
        "GROUP BY dev, SLIDINGWINDOW(ss, 2) OVER (WHEN n > 0) "
        "HAVING count(*) > 1 ORDER BY c DESC, dev LIMIT 2",
    ],
)
@pytest.mark.parametrize("event_time", [False, True])
@given(steps=streams(), restarts=st.booleans(), limit=st.sampled_from([2, 1000]))
def test_sliding_windows_of_groups(
    sql: str, event_time: bool, steps: list[Step], restarts: bool, limit: int
) -> None:
    compare(sql, steps, event_time=event_time, restarts=restarts, max_groups=limit)

"""EPL batch windows: batches of events and restarts change nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.search import examples
from tests.unit.fast.support import Step, compare
from tests.unit.fast.test_any_stream import streams

WINDOWS = [
    "#length_batch(3)",
    "#length_batch(1)",
    "#time_batch(2 sec)",
    "#time_batch(1 sec, 500L)",
    '#time_batch(1 sec, "FORCE_UPDATE")',
    '#time_batch(1500 msec, "START_EAGER")',
    '#time_batch(2 sec, 700L, "START_EAGER")',
    "#time_length_batch(2 sec, 3)",
    '#time_length_batch(1 sec, 2, "FORCE_UPDATE")',
    '#time_length_batch(3 sec, 2, "START_EAGER")',
    "#time_batch(1 month)",
    "#ext_timed_batch(ts, 2 sec)",
    "#ext_timed_batch(n, 2 msec, 1L)",
    "#ext_timed_batch(v, 3 msec)",
    "#ext_timed_batch(n + 1, 2 msec)",
    "#ext_timed_batch(ts, 1 month)",
]

AGGREGATES = (
    "count(*) as c, count(v) as cv, sum(v) as s, avg(v) as a, min(v) as lo, max(v) as hi, sum(n * 2) as n2"
)

SELECTS = {
    "plain": "select dev, v * 2 as w, n from m{}",
    "event": f"select dev, n, {AGGREGATES} from m{{}}",
    "aggregate": f"select {AGGREGATES} from m{{}}",
    "group": f"select dev, {AGGREGATES} from m{{}} group by dev",
    "group_event": f"select dev, n, v, {AGGREGATES} from m{{}} group by dev",
    "group of a failing key": "select n, count(*) as c, sum(v) as s from m{} group by v + 1, n",
    "grouping sets": f"select dev, {AGGREGATES}, grouping(dev) as g from m{{}} group by rollup(dev, n)",
    "groups of two": "select dev, n, count(*) as c, sum(v) as s from m{} group by dev, n",
}
"""A statement of each kind of rows."""

RESTS = ["", " having count(*) > 1", " having max(v) > 3 order by c desc, a limit 3"]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", SELECTS)
@given(steps=streams(), event_time=st.booleans(), restarts=st.booleans())
@examples(25)
def test_kinds_of_rows(window: str, kind: str, steps: list[Step], event_time: bool, restarts: bool) -> None:
    compare(SELECTS[kind].format(window), steps, event_time=event_time, restarts=restarts)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", ["plain", "event", "aggregate", "group", "group_event", "grouping sets"])
@given(steps=streams(), event_time=st.booleans(), restarts=st.booleans(), rest=st.sampled_from(RESTS))
@examples(25)
def test_clauses_around_batches(
    window: str, kind: str, steps: list[Step], event_time: bool, restarts: bool, rest: str
) -> None:
    select, _, group = SELECTS[kind].format(f"(n != 2){window} where v > 0 or n = 1").partition(" group by ")
    rest = rest if kind != "plain" else " order by n desc, w limit 2"
    compare(
        f"{select}{f' group by {group}' if group else ''}{rest}",
        steps,
        event_time=event_time,
        restarts=restarts,
    )


OLD_RESTS = [
    "",
    " having count(*) > 1 or istream()",
    " having max(v) > 3 order by c desc, a limit 3",
    " limit 5 offset 1",
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", SELECTS)
@pytest.mark.parametrize("selector", ["irstream", "rstream"])
@given(steps=streams(), event_time=st.booleans(), restarts=st.booleans(), where=st.booleans(), data=st.data())
@examples(30)
def test_what_leaves(
    window: str,
    kind: str,
    selector: str,
    steps: list[Step],
    event_time: bool,
    restarts: bool,
    where: bool,
    data: st.DataObject,
) -> None:
    source = f"(n != 2){window} where v > 0 or n = 1" if where else window
    select, _, group = SELECTS[kind].format(source).partition(" group by ")
    select = select.replace("select ", f"select {selector} istream() as is_new, ", 1)
    plain = kind in ("plain", "group of a failing key", "groups of two")
    rest = data.draw(
        st.sampled_from(["", " having n > 0", " order by n desc limit 2"] if plain else OLD_RESTS)
    )
    compare(
        f"{select}{f' group by {group}' if group else ''}{rest}",
        steps,
        event_time=event_time,
        restarts=restarts,
    )


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", SELECTS)
@given(steps=streams(plain=True), restarts=st.booleans())
@examples(15)
def test_plain_values_in_structs(window: str, kind: str, steps: list[Step], restarts: bool) -> None:
    compare(SELECTS[kind].format(window), steps, structs=True, restarts=restarts)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", ["plain", "group", "group_event", "grouping sets"])
@given(
    steps=streams(),
    groups=st.integers(1, 3),
    events=st.integers(2, 20),
    old=st.booleans(),
    restarts=st.booleans(),
)
@examples(25)
def test_bounds(
    window: str, kind: str, steps: list[Step], groups: int, events: int, old: bool, restarts: bool
) -> None:
    sql = SELECTS[kind].format("(n != 2)" + window)
    sql = sql.replace("select ", "select irstream ") if old else sql
    compare(sql, steps, restarts=restarts, max_groups=groups, max_window_events=events)

"""What holds for every query, whatever it computes (architecture.md, Laws)."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.streams import (
    BATCHES, GROUP_SELECTS, GROUP_WINDOWS, RETAINING, SELECTS, Run, Step, lot_queries, stream, together,
)  # fmt: skip

LIMITS = (
    "", "output every 1 sec", "output last every 1 sec", "output first every 3 events", "output all every 2 events",
    "output snapshot every 1 sec", "output after 3 events", "output after 2 sec every 1 sec",
    "output snapshot every 3 events", "output first every 2 sec",
)  # fmt: skip
DERIVED = ("#size", "#length(3)#uni(v)", "#time(2 sec)#linest(n, v)", "#groupwin(k)#length(2)#weighted_avg(v, n)")

PLAIN = SELECTS[0]
"""Every event as it enters and leaves."""

QUERIES = (
    st.tuples(st.sampled_from(RETAINING + BATCHES), st.sampled_from(SELECTS), st.sampled_from(LIMITS))
    .map(lambda parts: f"{parts[1].format(parts[0])} {parts[2]}")
    | st.tuples(st.sampled_from(GROUP_WINDOWS), st.sampled_from(GROUP_SELECTS)).map(lambda parts: parts[1].format(parts[0]))
    | st.sampled_from(DERIVED).map(PLAIN.format)
    | st.sampled_from(lot_queries())
)
"""Queries of all three kinds."""


def _ids(rows: list[Step]) -> Counter[str]:
    return Counter(row["id"] for row in rows)


@given(st.sampled_from(RETAINING), stream())
def test_the_sum_of_all_changes_is_the_content(window: str, steps: list[Step]) -> None:
    run = Run(PLAIN.format(window))
    content: Counter[str] = Counter()
    for step in steps:
        for out in run.step(step):
            content += _ids(out.inserted)
            content -= _ids(out.removed)
        assert content == _ids(run.engine.read("rule"))


@given(st.sampled_from(RETAINING + BATCHES), stream())
def test_nothing_is_removed_that_was_not_inserted(window: str, steps: list[Step]) -> None:
    run = Run(PLAIN.format(window))
    inserted: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for step in steps:
        for out in run.step(step):
            inserted += _ids(out.inserted)
            removed += _ids(out.removed)
            assert removed <= inserted
        assert max(inserted.values(), default=1) == 1


@given(QUERIES, stream())
def test_the_result_does_not_depend_on_how_events_are_batched(query: str, steps: list[Step]) -> None:
    assert Run(query).all(together(steps)).merged() == Run(query).all(steps).merged()


@given(QUERIES, stream(), st.data())
def test_the_result_does_not_depend_on_a_restart_at_any_step(query: str, steps: list[Step], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(steps)), label="restart before step")
    run = Run(query).all(steps[:at])
    run.restart()
    assert run.all(steps[at:]).posts() == Run(query).all(steps).posts()


@given(st.sampled_from(GROUP_WINDOWS), st.sampled_from(GROUP_SELECTS), stream(), st.data())
def test_a_restart_in_event_time_loses_nothing(window: str, select: str, steps: list[Step], data: st.DataObject) -> None:
    query = select.format(window)
    steps = [*steps, {"flush": True}]
    at = data.draw(st.integers(0, len(steps)), label="restart before step")
    run = Run(query, event_time=True, late_tolerance_ms=500).all(steps[:at])
    run.restart()
    assert run.all(steps[at:]).posts() == Run(query, event_time=True, late_tolerance_ms=500).all(steps).posts()


FADING = [
    *(PLAIN.format(window) for window in ("#time(2 sec)", "#time_accum(1 sec)", "#time_order(ts, 1 sec)", "#timetolive(ts)",
                                          "#length(2)#time(2 sec)", "#groupwin(k)#time(2 sec)", "#time_batch(2 sec)",
                                          "#time_length_batch(2 sec, 3)")),
    "select irstream k, sum(v) as s from E#time(2 sec) group by k",
    *(GROUP_SELECTS[3].format(window) for window in (
        "TUMBLINGWINDOW(ss, 2)", "HOPPINGWINDOW(ss, 3, 1)", "SLIDINGWINDOW(ss, 1)", "SLIDINGWINDOW(ss, 1, 1)",
        "SESSIONWINDOW(ss, 3, 1)", "TUMBLINGWINDOW(ss, 2) OVER(PARTITION BY k)", "SESSIONWINDOW(ss, 2, 1) OVER(PARTITION BY k)",
        "SLIDINGWINDOW(ss, 1) OVER(PARTITION BY k)", "HOPPINGWINDOW(ss, 2, 1) OVER(PARTITION BY k)",
    )),
    "from e in E within 1.5 select e.id", "from e in E within 1.5 every 1.0 select sum(e.v)",
    "from e in E within 2.0 with unique e.k select e.id",
]  # fmt: skip
"""Queries whose windows empty by time alone."""

EMPTY_STATE_BYTES_MAX = 120
"""How much larger than a new query's a snapshot may be once its windows have emptied: counters and a few instants."""


@pytest.mark.parametrize("query", FADING)
@given(steps=stream())
def test_an_empty_window_holds_no_state(query: str, steps: list[Step]) -> None:
    new = len(json.dumps(Run(query).engine.snapshot("rule")))
    run = Run(query).all([*steps, {"advance": 1_000_000}])
    snapshot = run.engine.snapshot("rule")
    assert snapshot["events"] == []
    assert len(json.dumps(snapshot)) <= new + EMPTY_STATE_BYTES_MAX, snapshot

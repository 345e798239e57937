"""What holds for every query, whatever it computes (architecture.md, Laws)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.queries import BATCHES, GROUP_SELECTS, QUERIES, RETAINING, RULES, SELECTS
from tests.property.streams import Run, Step, stream, together

PLAIN = SELECTS[0]
"""Every event as it enters and leaves."""


def _ids(rows: Sequence[Step]) -> Counter[str]:
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


@given(query=QUERIES, steps=stream())
def test_the_result_does_not_depend_on_how_events_are_batched(query: str, steps: list[Step]) -> None:
    assert Run(query).all(together(steps)).merged() == Run(query).all(steps).merged()


@given(query=QUERIES, steps=stream(), data=st.data())
def test_the_result_does_not_depend_on_a_restart_at_any_step(
    query: str, steps: list[Step], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(steps)), label="restart before step")
    run = Run(query).all(steps[:at])
    run.restart()
    assert run.all(steps[at:]).posts() == Run(query).all(steps).posts()


@given(query=RULES, steps=stream(), data=st.data())
def test_a_restart_in_event_time_loses_nothing(query: str, steps: list[Step], data: st.DataObject) -> None:
    steps = [*steps, {"flush": True}]
    at = data.draw(st.integers(0, len(steps)), label="restart before step")
    run = Run(query, event_time=True, late_tolerance_ms=500).all(steps[:at])
    run.restart()
    whole = Run(query, event_time=True, late_tolerance_ms=500).all(steps)
    assert run.all(steps[at:]).posts() == whole.posts()


FADING = [
    *(
        PLAIN.format(window)
        for window in (
            "#time(2 sec)",
            "#time_accum(1 sec)",
            "#time_order(ts, 1 sec)",
            "#timetolive(ts)",
            "#length(2)#time(2 sec)",
            "#groupwin(k)#time(2 sec)",
            "#time_batch(2 sec)",
            "#time_length_batch(2 sec, 3)",
        )
    ),
    "select irstream k, sum(v) as s from E#time(2 sec) group by k",
    *(
        GROUP_SELECTS[-1].format(window)
        for window in (
            "TUMBLINGWINDOW(ss, 2)",
            "HOPPINGWINDOW(ss, 3, 1)",
            "SLIDINGWINDOW(ss, 1)",
            "SLIDINGWINDOW(ss, 1, 1)",
            "SESSIONWINDOW(ss, 3, 1)",
            "TUMBLINGWINDOW(ss, 2) OVER(PARTITION BY k)",
            "SESSIONWINDOW(ss, 2, 1) OVER(PARTITION BY k)",
            "SLIDINGWINDOW(ss, 1) OVER(PARTITION BY k)",
            "HOPPINGWINDOW(ss, 2, 1) OVER(PARTITION BY k)",
        )
    ),
    "from e in E within 1.5 select e.id",
    "from e in E within 1.5 every 1.0 select sum(e.v)",
    "from e in E within 2.0 with unique e.k select e.id",
]
"""Queries whose windows empty by time alone."""

EMPTY_STATE_BYTES_MAX = 120
"""How much larger than a new query's a snapshot may be once its windows have emptied: counters and a few
instants."""


@pytest.mark.parametrize("query", FADING, ids=str)
@given(steps=stream())
def test_an_empty_window_holds_no_state(query: str, steps: list[Step]) -> None:
    new = len(json.dumps(Run(query).engine.snapshot("rule")))
    run = Run(query).all([*steps, {"advance": 1_000_000}])
    snapshot = run.engine.snapshot("rule")
    assert snapshot["events"] == []
    assert len(json.dumps(snapshot)) <= new + EMPTY_STATE_BYTES_MAX, snapshot

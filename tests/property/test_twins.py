"""The engine and the slow twin give the same, whatever arrives."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.compare import same_rows, text_of
from tests.property.queries import RULES, STATEMENTS, STREAM_QUERIES
from tests.property.streams import Run, Step, stream
from tests.reference import lots, samples
from tests.reference.changes import Statement


@given(STATEMENTS, stream())
def test_statements_post_what_the_twin_posts(query: str, steps: list[Step]) -> None:
    run = Run(query)
    twin = Statement(run.plan)
    # Rows of groups, and rows of the remove stream, compare as a bag.
    ordered = "group" not in query and "select rstream" not in query
    for step in steps:
        got = [(out.at_ms, out.inserted, out.removed) for out in run.step(step)]
        posts = twin.advance(step["advance"]) if "advance" in step else twin.send(step["event"])
        wanted = [(post.at_ms, post.insert, post.remove) for post in posts]
        same = len(got) == len(wanted) and all(
            a[0] == b[0] and same_rows(a[1], b[1], ordered=ordered) and same_rows(a[2], b[2], ordered=False)
            for a, b in zip(got, wanted, strict=True)
        )
        assert same, f"{query}\n{step}\n   got {text_of(got)}\nwanted {text_of(wanted)}"


@given(query=RULES, steps=stream())
def test_rules_in_processing_time_show_what_the_twin_shows(query: str, steps: list[Step]) -> None:
    run = Run(query).all(steps)
    wanted, _ = samples.run(run.plan, steps)
    _same_looks(query, run, wanted)


@given(query=RULES, steps=stream(), tolerance=st.sampled_from([0, 500, 2000]))
def test_rules_in_event_time_show_what_the_twin_shows(query: str, steps: list[Step], tolerance: int) -> None:
    run = Run(query, event_time=True, late_tolerance_ms=tolerance).all([*steps, {"flush": True}])
    wanted, late = samples.run(run.plan, [*steps, {"flush": True}])
    _same_looks(query, run, wanted)
    assert sum(out.kind == "late" for out in run.emissions) == late


def _same_looks(query: str, run: Run, wanted: list[tuple[int, Any]]) -> None:
    got = [(out.at_ms, out.inserted) for out in run.emissions if out.kind == "rows"]
    assert [at for at, _ in got] == [at for at, _ in wanted], (
        f"{query}\n   got {text_of(got)}\nwanted {text_of(wanted)}"
    )
    for at in dict(got):
        # Windows of several keys close at one instant in no particular order.
        mine, theirs = ([text_of(rows) for t, rows in looks_ if t == at] for looks_ in (got, wanted))
        assert sorted(mine) == sorted(theirs), f"{query} at {at}\n   got {mine}\nwanted {theirs}"


@given(STREAM_QUERIES, stream())
def test_stream_queries_post_what_the_twin_posts(query: str, steps: list[Step]) -> None:
    run = Run(query).all(steps)
    got = [(out.at_ms, out.inserted) for out in run.emissions]
    wanted = lots.run(run.plan, steps)
    same = len(got) == len(wanted) and all(
        a[0] == b[0] and same_rows(a[1], b[1], ordered="rstream" not in query)
        for a, b in zip(got, wanted, strict=True)
    )
    assert same, f"{query}\n   got {text_of(got)}\nwanted {text_of(wanted)}"

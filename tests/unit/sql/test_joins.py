"""Joins: the deltas of the joined set, whichever way it is kept."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sql import Catalog, Engine, run_script

TYPES = "create schema A(id string, k int, v int); create schema B(id string, k int, v int)"


def start(epl: str) -> Engine:
    engine = Engine(Catalog())
    run_script(engine, TYPES, 0)
    run_script(engine, f"@name('s0') {epl}", 0)
    return engine


def send(engine: Engine, stream: str, row: dict[str, Any], now: int = 0) -> tuple[list[Any], list[Any]]:
    out = engine.push(stream, [row], now)
    assert all(emission.kind == "rows" for emission in out)
    return [row for e in out for row in e.inserted], [row for e in out for row in e.removed]


def test_a_join_posts_the_rows_that_an_event_makes_and_those_it_ends() -> None:
    engine = start(
        "select irstream a.id as x, b.id as y from A#lastevent as a, B#length(2) as b where a.k = b.k"
    )
    assert send(engine, "A", {"id": "a1", "k": 1}) == ([], [])
    assert send(engine, "B", {"id": "b1", "k": 1}) == ([{"x": "a1", "y": "b1"}], [])
    assert send(engine, "B", {"id": "b2", "k": 2}) == ([], [])
    assert send(engine, "A", {"id": "a2", "k": 2}) == ([{"x": "a2", "y": "b2"}], [{"x": "a1", "y": "b1"}])


def test_null_keys_do_not_meet() -> None:
    engine = start("select a.id as x, b.id as y from A#keepall as a join B#keepall as b on a.k = b.k")
    send(engine, "A", {"id": "a1", "k": None})
    assert send(engine, "B", {"id": "b1", "k": None}) == ([], [])


def test_an_outer_side_without_partner_is_null_until_one_comes() -> None:
    engine = start(
        "select irstream a.id as x, b.id as y from A#keepall as a left join B#keepall as b on a.k = b.k"
    )
    assert send(engine, "A", {"id": "a1", "k": 1}) == ([{"x": "a1", "y": None}], [])
    assert send(engine, "B", {"id": "b1", "k": 1}) == ([{"x": "a1", "y": "b1"}], [{"x": "a1", "y": None}])


def test_a_batch_window_joins_what_it_has_posted() -> None:
    engine = start("select irstream a.id as x, b.id as y from A#length_batch(2) as a, B#keepall as b")
    send(engine, "B", {"id": "b1"})
    assert send(engine, "A", {"id": "a1"}) == ([], [])
    assert send(engine, "A", {"id": "a2"}) == ([{"x": "a1", "y": "b1"}, {"x": "a2", "y": "b1"}], [])


TWO_CONDITIONS = (
    "select irstream a.id as x, b.id as y from A#length(3) as a, B#length(2) as b "
    "where a.k = b.k and a.v <= b.v"
)
EVENTS = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from([None, 1, 2]), st.integers(0, 3)), max_size=25
)


@given(EVENTS)
def test_integrated_deltas_are_the_join_of_the_windows(events: list[tuple[str, int | None, int]]) -> None:
    engine = start(TWO_CONDITIONS)
    arrived: dict[str, list[dict[str, Any]]] = {"A": [], "B": []}
    present: list[Any] = []
    for number, (stream, k, v) in enumerate(events):
        row = {"id": f"e{number}", "k": k, "v": v}
        arrived[stream].append(row)
        inserted, removed = send(engine, stream, row)
        present += inserted
        for gone in removed:
            present.remove(gone)
        expected = [
            {"x": a["id"], "y": b["id"]}
            for a, b in product(arrived["A"][-3:], arrived["B"][-2:])
            if a["k"] is not None and a["k"] == b["k"] and a["v"] <= b["v"]
        ]
        assert sorted(present, key=str) == sorted(expected, key=str)
        saved = engine.snapshot("s0")
        engine = start(TWO_CONDITIONS)
        engine.restore("s0", saved)


WINDOWS = st.sampled_from(["length(2)", "lastevent", "unique(k)", "sort(2, v)", "time(3)", "firstunique(v)"])
CONDITIONS = st.sampled_from(["a.k = b.k", "a.v <= b.v", "a.k = b.k and a.v <= b.v"])
KINDS = st.sampled_from(["join", "left outer join", "right outer join", "full outer join"])


@given(EVENTS, KINDS, CONDITIONS, WINDOWS, WINDOWS, st.sampled_from("AB"))
def test_rows_that_nobody_keeps_are_those_of_a_join_that_keeps_them(
    events: list[tuple[str, int | None, int]], kind: str, on: str, one: str, other: str, second: str
) -> None:
    """`select` makes rows straight from the events, `select irstream` keeps joined rows."""
    joined = f"a.id as x, b.id as y from A#{one} as a {kind} {second}#{other} as b on {on}"
    passing, keeping = start(f"select {joined}"), start(f"select irstream {joined}")
    for number, (stream, k, v) in enumerate(events):
        row = {"id": f"e{number}", "k": k, "v": v}
        inserted, _ = send(passing, stream, row, number * 1000)
        expected, _ = send(keeping, stream, row, number * 1000)
        assert sorted(inserted, key=str) == sorted(expected, key=str)
        assert sorted(passing.read("s0"), key=str) == sorted(keeping.read("s0"), key=str)
        if number % 3 == 0:
            saved = keeping.snapshot("s0") if number % 2 else passing.snapshot("s0")
            saved["fingerprint"] = passing.queries["s0"].plan.fingerprint
            passing = start(f"select {joined}")
            passing.restore("s0", saved)


def test_a_pair_that_fails_in_the_condition_is_an_error_event_and_no_other_pair_is_lost() -> None:
    engine = start("select a.id as x, b.id as y from A#keepall as a join B#keepall as b on a.k + b.k > 3")
    send(engine, "B", {"id": "b1", "k": "one"})
    send(engine, "B", {"id": "b2", "k": 2})
    row, error = engine.push("A", [{"id": "a1", "k": 2}], 0)
    assert row.inserted == [{"x": "a1", "y": "b2"}]
    assert (error.kind, error.inserted) == (
        "error",
        [{"0": {"id": "a1", "k": 2}, "1": {"id": "b1", "k": "one"}}],
    )

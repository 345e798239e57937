"""Joins of any events: the deltas of the joined set, whichever way it is kept."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql import Catalog, Engine, SqlError, run_script
from tests.support.engines import engine_of

TYPES = "create schema A(id string, k int, v int); create schema B(id string, k int, v int)"


def start(epl: str) -> Engine:
    return engine_of(TYPES, f"@name('s0') {epl}")


def send(engine: Engine, stream: str, row: dict[str, Any], now: int = 0) -> tuple[list[Any], list[Any]]:
    out = engine.push(stream, [row], now)
    assert all(emission.kind == "rows" for emission in out)
    return [row for e in out for row in e.inserted], [row for e in out for row in e.removed]


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


@pytest.mark.parametrize(
    ("statement", "problem", "hint"),
    [
        (
            "on A as a delete from W where k = a.k",
            ("B203", "k", "column 'k' is in 'a' and 'W'"),
            "write a.k or W.k",
        ),
        (
            "select a.v as v from A#length(2) as a, B as b where a.k = b.k",
            ("B527", "B as b", "each joined stream needs a window, or is unidirectional"),
            "for example E#length(5) as e",
        ),
    ],
)
def test_the_place_and_the_remedy_of_a_join_that_is_refused(
    statement: str, problem: tuple[str, str, str], hint: str
) -> None:
    engine = Engine(Catalog())
    run_script(engine, f"{TYPES}; create window W#keepall as A;", 0)
    with pytest.raises(SqlError) as refused:
        run_script(engine, statement, 0)
    (found,) = refused.value.problems
    assert found.span is not None
    assert (found.code, statement[found.span.start : found.span.end], found.message) == problem
    assert found.hint == hint

"""Contexts by key, hash, category and time give the same on the engine and on the twin, restarts included."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql import Catalog, Engine, run_script
from tests.conformance.compare import text_of
from tests.property.patterns import arrivals
from tests.reference.contexts import (
    Categories,
    Condition,
    Context,
    Overlapping,
    Segmented,
    Span,
    Within,
)

STREAMS = "create schema E(id string, k string, n int); create schema S(id string, n int);"
RUNNING = "@name('r') context C select context.id as i, count(*) as c, sum(n) as s from E"
REPORT = "@name('r') context C select count(*) as c, sum(n) as s from E output last when terminated"

ONE = Condition("E(n = 1)", lambda stream, row, _: stream == "E" and row["n"] == 1)
THREE = Condition("E(n = 3)", lambda stream, row, _: stream == "E" and row["n"] == 3)
ANY_S = Condition("S", lambda stream, row, _: stream == "S")
LATER = Condition("after 2 sec", after=2000)
SAME_N = Condition(
    "S(n = s.n)",
    lambda stream, row, begun: (
        stream == "S" and row["n"] is not None and begun is not None and row["n"] == begun["n"]
    ),
)

Made = tuple[str, Callable[[bool], Context]]


def _segmented(end: Condition | None) -> list[Made]:
    ends = f" terminated by {end.text}" if end else ""
    return [
        (
            f"partition by k from E{ends}",
            lambda reports: Segmented(lambda row: row["k"], end, reports=reports),
        ),
        (
            f"partition by k, n from E{ends}",
            lambda reports: Segmented(lambda row: (row["k"], row["n"]), end, reports=reports),
        ),
    ]


def _span(first: Condition | None, end: Condition) -> Made:
    start = first.text if first else "@now"
    return f"start {start} end {end.text}", lambda reports: Span(first, end, reports=reports)


def _overlapping(first: Condition, end: Condition) -> Made:
    text = f"initiated by {first.text} as s terminated by {end.text}"
    return text, lambda reports: Overlapping(first, end, reports=reports)


HASHED: Made = (
    "coalesce by hash_code(n) from E granularity 3",
    lambda reports: Segmented(lambda row: (row["n"] or 0) % 3, None, reports=reports),
)
CATEGORIES: Made = (
    "group by n < 2 as lo, group by n >= 2 as hi from E",
    lambda reports: Categories(
        (
            lambda row: row["n"] is not None and row["n"] < 2,
            lambda row: row["n"] is not None and row["n"] >= 2,
        ),
        reports=reports,
    ),
)


def _within(first: Condition | None, end: Condition, inner: Made) -> Made:
    text = f"context A start {first.text if first else '@now'} end {end.text}, context B {inner[0]}"
    return text, lambda reports: Within(first, end, inner[1], reports=reports)


CONTEXTS: list[Made] = [
    *(made for end in (None, THREE, ANY_S, LATER) for made in _segmented(end)),
    HASHED,
    CATEGORIES,
    *(
        _within(first, end, inner)
        for first in (None, ONE, ANY_S)
        for end in (THREE, ANY_S, LATER)
        for inner in (HASHED, CATEGORIES, _segmented(None)[0], _span(None, THREE), _span(ONE, THREE))
    ),
    *(_span(first, end) for first in (None, ONE, ANY_S) for end in (THREE, ONE, ANY_S, LATER)),
    *(_overlapping(first, end) for first in (ONE, ANY_S) for end in (THREE, ONE, ANY_S, LATER, SAME_N)),
]


def engine_of(script: str, state: dict[str, Any] | None = None) -> Engine:
    engine = Engine(Catalog())
    run_script(engine, script, 0)
    for name, part in (state or {}).items():
        engine.restore(name, part)
    return engine


def sorted_rows(found: list[tuple[int, dict[str, Any]]]) -> list[str]:
    return sorted(text_of([at, row]) for at, row in found)


@pytest.mark.parametrize("restarts", [False, True])
@given(made=st.sampled_from(CONTEXTS), reports=st.booleans(), steps=arrivals())
def test_contexts_give_what_the_twin_gives(
    restarts: bool, made: Made, reports: bool, steps: list[Any]
) -> None:
    text, context_of = made
    script = f"{STREAMS} create context C {text}; {REPORT if reports else RUNNING}"
    engine, twin = engine_of(script), context_of(reports)
    for at, stream, row in steps:
        if restarts:
            state = {name: engine.snapshot(name) for name in engine.queries}
            engine = engine_of(script, json.loads(json.dumps(state, allow_nan=False)))
        found = [*engine.advance(at, "step")]
        found += engine.push(stream, [dict(row)], at) if stream else []
        got = [(each.at_ms, told) for each in found for told in each.inserted]
        own = {"id": None, "k": None, "n": None, **row}
        wanted = twin.send(stream, own, at)
        assert sorted_rows(got) == sorted_rows(wanted), f"{script}\n{steps}\nat {at}: {got}, wanted {wanted}"

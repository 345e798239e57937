"""Joined rows whose condition cannot be evaluated: an error of the pair, whichever way the join is run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sql import Engine
from tests.support.engines import engine_of

TYPES = "create schema E(k string, n int); create schema T(id string, n int);"
ON = "on a.n + b.n > 0"
OBJECT = {"a": 1}

KEPT = ("select irstream a.k as k, b.id as id", "select distinct a.k as k, b.id as id")
"""Joined rows are kept for these, and pass for others."""
JOINS = ("inner join", "left outer join", "full outer join")
WAYS = [f"{kept} from E#length(2) as a {join} T#length(2) as b {ON}" for kept in KEPT for join in JOINS]


def engine_with(statement: str) -> Engine:
    return engine_of(TYPES, f"@name('s') {statement}")


def restarted(engine: Engine, statement: str) -> Engine:
    again = engine_with(statement)
    again.restore("s", json.loads(json.dumps(engine.snapshot("s"))))
    return again


def said(engine: Engine, stream: str, **event: Any) -> tuple[list[Any], int]:
    """The inserted rows for an event, and how many errors there were."""
    out = engine.push(stream, [event], 0)
    assert not engine.dispatch.defects
    rows = [row for item in out if item.kind == "rows" for row in item.inserted]
    return rows, sum(item.kind == "error" for item in out)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("statement", WAYS)
def test_a_pair_that_cannot_be_compared_is_an_error_and_the_others_are_joined(
    statement: str, restarts: bool
) -> None:
    engine = engine_with(statement)
    said(engine, "E", k="x", n=2)
    assert said(engine, "T", id="bad", n=OBJECT)[1] == 1
    if restarts:
        engine = restarted(engine, statement)
    rows, errors = said(engine, "E", k="y", n=3)
    assert errors == 1
    rows, errors = said(engine, "T", id="good", n=2)
    assert rows == [{"k": "x", "id": "good"}, {"k": "y", "id": "good"}]
    assert not errors
    rows, errors = said(engine, "T", id="next", n=1)
    assert rows == [{"k": "x", "id": "next"}, {"k": "y", "id": "next"}]
    assert not errors, "the row that leaves was reported when it came"
    assert engine.counters("s")["errors"] == 2


@pytest.mark.parametrize("join", JOINS)
def test_a_unidirectional_event_that_cannot_be_compared_is_an_error(join: str) -> None:
    engine = engine_with(f"select distinct a.k as k from E#length(2) as a {join} T as b unidirectional {ON}")
    said(engine, "E", k="x", n=2)
    assert said(engine, "T", id="bad", n=OBJECT)[1] == 1
    assert said(engine, "T", id="good", n=1) == ([{"k": "x"}], 0)

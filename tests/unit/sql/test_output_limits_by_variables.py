"""Output limits whose parameters are variables that get values which no limit can have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sql import Engine
from sql.errors import DataError
from tests.support.engines import engine_of

DECLARED = "create schema E(id string); create variable int lim = 2; create constant variable int fixed = 1;"


def engine_with(limit: str) -> Engine:
    return engine_of(DECLARED, f"@name('s') select count(*) as c from E output last every {limit}")


def said(engine: Engine, count: int) -> list[Any]:
    """What events give out, one by one."""
    out = [item for _ in range(count) for item in engine.push("E", [{"id": "e"}], 0)]
    return [item.error or item.inserted for item in out]


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (None, "NULL"), (-1, "-1")])
def test_a_count_that_no_limit_can_have_is_reported_once_and_the_last_one_stays(
    value: int | None, shown: str
) -> None:
    engine = engine_with("lim events")
    engine.set_variable("lim", value)
    error = f"1:58: cannot evaluate lim: a size is a whole number of at least 1, not {shown}"
    assert said(engine, 4) == [error, [{"c": 2}], [{"c": 4}]]
    engine.set_variable("lim", 1)
    assert said(engine, 1) == [[{"c": 5}]]
    engine.set_variable("lim", value)
    assert said(engine, 1) == [[{"c": 6}], error], "a change is reported again"
    assert engine.counters("s")["errors"] == 2


def test_the_last_count_that_it_could_have_stays_over_a_restart() -> None:
    there, again = engine_with("lim events"), engine_with("lim events")
    there.set_variable("lim", 3)
    said(there, 1)
    there.set_variable("lim", 0)
    assert len(said(there, 1)) == 1, "the error"
    again.catalog.restore_variables({"lim": 0})
    again.restore("s", json.loads(json.dumps(there.snapshot("s"))))
    assert said(again, 4) == said(there, 4) == [[{"c": 3}], [{"c": 6}]]


@pytest.mark.parametrize("value", [0, None, -1])
def test_a_period_that_no_limit_can_have_is_reported_once_and_the_last_one_stays(value: int | None) -> None:
    engine = engine_with("lim seconds")
    engine.set_variable("lim", value)
    (error,) = said(engine, 1)
    assert error.startswith("1:58: cannot evaluate lim seconds: ")
    assert [(item.at_ms, item.inserted) for item in engine.advance(4_000, "step")] == [
        (2_000, [{"c": 1}]),
        (4_000, [{"c": 1}]),
    ]


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [("lim", "x", "variable lim takes bigint, not string 'x'"), ("fixed", 2, "fixed is a constant")],
)
def test_a_variable_takes_no_value_of_another_type_and_a_constant_none(
    name: str, value: object, why: str
) -> None:
    engine = engine_with("lim events")
    with pytest.raises(DataError, match=why):
        engine.set_variable(name, value)

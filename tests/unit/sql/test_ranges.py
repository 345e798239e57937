"""EPL's ranges: a bracket takes the end in, a parenthesis leaves it out; NULL is
neither inside nor outside."""

from __future__ import annotations

import pytest

from sql import Catalog, Engine, parse, plan_rule
from sql.syntax import CreateStream

VALUES = [0, 1, 2, 5, 6, None]


@pytest.mark.parametrize(
    ("condition", "passing"),
    [
        ("v in [1:5]", [1, 2, 5]),
        ("v in (1:5]", [2, 5]),
        ("v in [1:5)", [1, 2]),
        ("v in (1:5)", [2]),
        ("v not in [1:5]", [0, 6]),
        ("v not in (1:5)", [0, 1, 5, 6]),
        ("v in [5:1]", []),
        ("(v in (0:9)) is null", [None]),
    ],
)
@pytest.mark.parametrize("statement", ["select istream v from m({})", "SELECT v FROM m WHERE {}"])
def test_which_values_are_inside(statement: str, condition: str, passing: list[int | None]) -> None:
    (stream,) = parse('CREATE STREAM m (v BIGINT) WITH (DATASOURCE="m")')
    assert isinstance(stream, CreateStream)
    catalog = Catalog()
    catalog.define(stream)
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(statement.format(condition), catalog), 0)
    found = engine.push("m", [{"v": value} for value in VALUES], 0)
    assert [row["v"] for e in found for row in e.inserted] == passing

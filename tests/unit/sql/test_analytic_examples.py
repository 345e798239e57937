"""The examples of analytic functions in the manual give what it says, event by event."""

from __future__ import annotations

import pytest

from sql.algebra.derived.analytic_catalog import ANALYTIC_FUNCTIONS, Example
from tests.support.streams import engine_of

EXAMPLES = [example for item in ANALYTIC_FUNCTIONS for example in item.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.call)
def test_the_example_holds(example: Example) -> None:
    engine = engine_of("CREATE STREAM demo ()", f"SELECT {example.call} AS out FROM demo")
    found = [
        emission.inserted[0]["out"]
        for at, event in enumerate(example.events)
        for emission in engine.push("demo", [event], at)
    ]
    assert found == list(example.results)
    assert [type(value) for value in found] == [type(value) for value in example.results]

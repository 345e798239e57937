"""An engine with the event types of the tests, and what statements in contexts give out on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sql import Catalog, Emission, Engine, Problem, SqlError, run_script

TYPES = """
create schema E(id string, k string, v double, n int, f boolean);
create schema S(id string, n int);
create schema T(id string, n int);
"""


class World:
    """A running script and its clock."""

    def __init__(self, script: str) -> None:
        self.engine = Engine(Catalog())
        self.now = 0
        run_script(self.engine, TYPES, 0)
        run_script(self.engine, script, 0)

    def send(self, stream: str, **event: Any) -> list[dict[str, Any]]:
        """An event arrives; the rows given out."""
        return rows(self.engine.push(stream, [event], self.now))

    def to(self, now: int) -> list[dict[str, Any]]:
        """Time moves through every due instant; the rows given out."""
        self.now = now
        return rows(self.engine.advance(now, "step"))


def rows(emissions: Sequence[Emission]) -> list[dict[str, Any]]:
    """The inserted rows of emissions, none of which is an error."""
    assert all(item.kind == "rows" for item in emissions), emissions
    return [row for item in emissions for row in item.inserted]


def problem(script: str) -> Problem:
    """The first problem of a script that must be refused."""
    engine = Engine(Catalog())
    run_script(engine, TYPES, 0)
    with pytest.raises(SqlError) as caught:
        run_script(engine, script, 0)
    return caught.value.problems[0]

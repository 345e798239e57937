"""Any pattern gives the same on the engine and on the twin: event by event, in batches, and
with restarts between."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given

from sql import Engine, plan_rule
from tests.conformance.compare import text_of
from tests.property.patterns import STREAMS, arrivals, patterns
from tests.reference.patterns import Twin
from tests.support.engines import engine_of

Told = list[tuple[int, dict[str, Any]]]
Steps = list[tuple[int, str, dict[str, Any]]]


class Run:
    """A pattern on the engine."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.engine = self._engine()
        self.plan = plan_rule(query, self.engine.catalog)
        self.engine.deploy("r", self.plan, 0)

    @staticmethod
    def _engine() -> Engine:
        return engine_of(STREAMS)

    def restart(self, now: int) -> None:
        """Save the state as text and go on with it in another engine."""
        state = json.loads(json.dumps(self.engine.snapshot("r"), allow_nan=False))
        self.engine = self._engine()
        self.engine.deploy("r", plan_rule(self.query, self.engine.catalog), now, state)

    def step(self, at: int, stream: str, rows: list[dict[str, Any]]) -> Told:
        found = [*self.engine.advance(at)]
        found += self.engine.push(stream, rows, at) if stream else []
        assert all(emission.kind == "rows" for emission in found), found
        return [(emission.at_ms, row) for emission in found for row in emission.inserted]


def _of_twin(run: Run, steps: Steps) -> list[Told]:
    pattern = run.plan.sources[0].pattern
    assert pattern is not None
    twin = Twin(pattern)
    out = []
    for at, stream, row in steps:
        found = []
        while (due := twin.due()) is not None and due <= at:
            found += [(due, match) for match in twin.advance(due)]
        if stream:
            whole = {column: row.get(column) for column in ("id", "k", "n") if stream == "E" or column != "k"}
            found += [(at, match) for match in twin.send(stream, whole, at)]
        names = [tag.name for tag in pattern.tags]
        out.append([(when, dict(zip(names, match, strict=True))) for when, match in found])
    return out


@pytest.mark.parametrize("mode", ["single", "batched", "restarted"])
@given(query=patterns(), steps=arrivals())
def test_the_engine_tells_what_the_twin_tells(mode: str, query: str, steps: Steps) -> None:
    run = Run(query)
    wanted = _of_twin(run, steps)
    parts = [
        list(part)
        for _, part in groupby(range(len(steps)), key=lambda i: steps[i][:2] if mode == "batched" else i)
    ]
    now = 0
    for part in parts:
        if mode == "restarted":
            run.restart(now)
        now, stream, _ = steps[part[0]]
        got = run.step(now, stream, [dict(steps[i][2]) for i in part])
        expected = [told for i in part for told in wanted[i]]
        assert got == expected, (
            f"{query}\n{steps}\nat {part}\n   got {text_of(got)}\nwanted {text_of(expected)}"
        )

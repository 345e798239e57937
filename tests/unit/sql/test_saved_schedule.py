"""`output at (…)` restores the next instant of its crontab, also from the layout of earlier versions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sql import Engine, plan_rule
from tests.support.engines import engine_of

MINUTE = 60_000


def engine() -> Engine:
    return engine_of("create schema E(n int)")


def deploy(made: Engine, now_ms: int, state: dict[str, Any] | None = None) -> None:
    text = "select count(*) as n from E output snapshot at (*/1, *, *, *, *)"
    made.deploy("r", plan_rule(text, made.catalog), now_ms, state)


@pytest.mark.parametrize("is_earlier", [False, True])
def test_a_saved_crontab_goes_on_at_its_next_instant(is_earlier: bool) -> None:
    before = engine()
    deploy(before, 0)
    before.push("E", [{"n": 1}], 5_000)
    state = json.loads(json.dumps(before.snapshot("r")))
    assert state["output"]["limit"][0] == [5_000, MINUTE]
    if is_earlier:  # an earlier version stored the next instant alone
        state["output"]["limit"][0] = MINUTE
    after = engine()
    deploy(after, 10_000, state)
    assert after.next_deadline_ms() == MINUTE
    for at_ms in (MINUTE, 2 * MINUTE):
        assert [emission.inserted for emission in after.advance(at_ms)] == [[{"n": 1}]]
    after.push("E", [{"n": 2}], 2 * MINUTE + 1)
    assert [emission.inserted for emission in after.advance(3 * MINUTE)] == [[{"n": 2}]]

"""`@Hint('reclaim_group_aged=…')` on GROUP BY: groups that no window empties are dropped
once they have been idle."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Engine
from tests.support.streams import engine_of

HINT = "@Hint('reclaim_group_aged=10,reclaim_group_freq=5') "
SUMS = HINT + "select irstream dev, sum(v) as s from m group by dev"


def engine(text: str, state: Any = None) -> Engine:
    return engine_of('CREATE STREAM m (dev STRING, v BIGINT) WITH (DATASOURCE="m")', text, state)


def rows(made: Engine, at_s: int, dev: str) -> list[tuple[Any, ...]]:
    found = made.push("m", [{"dev": dev, "v": 1}], at_s * 1000)
    return [tuple(row.values()) for e in found for row in e.inserted]


def test_room_is_made_for_other_groups() -> None:
    made = engine(SUMS)
    for at_s in range(100):
        rows(made, at_s, f"d{at_s}")
    assert made.counters("r")["retained"] <= 16, "those of the last 10 s, and what came since the last sweep"


@pytest.mark.parametrize(
    "text",
    [
        "select dev, sum(v) as s from m#length(5) group by dev",
        "select dev, sum(v) as s from m group by dev, TUMBLINGWINDOW(ss, 1)",
        "select v from m",
    ],
)
def test_where_it_can_do_nothing_it_is_told(text: str) -> None:
    assert [problem.code for problem in engine(HINT + text).queries["r"].plan.warnings] == ["B706"]


def test_an_event_counts_once_however_often_the_state_refers_to_it() -> None:
    made = engine("select dev, sum(v) as s from m#groupwin(dev)#length(2) group by dev")
    for at_s, dev in enumerate("abab"):
        rows(made, at_s, dev)
    assert made.counters("r")["retained"] == 4
    rows(made, 9, "a")
    assert made.counters("r")["retained"] == 4, "an event that has left its window is not kept for its key"

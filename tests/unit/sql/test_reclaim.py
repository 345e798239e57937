"""`@Hint('reclaim_group_aged=…')` on GROUP BY: groups that no window empties are dropped
once they have been idle."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Catalog, Engine, parse, plan_rule
from sql.syntax import CreateStream

HINT = "@Hint('reclaim_group_aged=10,reclaim_group_freq=5') "
SUMS = HINT + "select irstream dev, sum(v) as s from m group by dev"


def engine(text: str, state: Any = None) -> Engine:
    (statement,) = parse('CREATE STREAM m (dev STRING, v BIGINT) WITH (DATASOURCE="m")')
    assert isinstance(statement, CreateStream)
    catalog = Catalog()
    catalog.define(statement)
    made = Engine(catalog)
    made.deploy("r", plan_rule(text, catalog), 0, state)
    return made


def rows(made: Engine, at_s: int, dev: str) -> list[tuple[Any, ...]]:
    found = made.push("m", [{"dev": dev, "v": 1}], at_s * 1000)
    return [tuple(row.values()) for e in found for row in e.inserted]


@pytest.mark.parametrize("restarts", [False, True])
def test_an_idle_group_begins_anew(restarts: bool) -> None:
    """Sweeps run with an event, every 5 s at most: at 5, at 11, at 16. A group is idle
    after more than 10 s."""
    made = engine(SUMS)
    seen = []
    for at_s, dev in [(0, "a"), (1, "b"), (5, "a"), (11, "a"), (16, "a"), (17, "b")]:
        if restarts:
            made = engine(SUMS, made.snapshot("r"))
        seen += rows(made, at_s, dev)
    # b was last touched at 1: at 11 exactly 10 s are not more than 10 s, at 16 it goes.
    assert seen == [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1)]


def test_room_is_made_for_other_groups() -> None:
    made = engine(SUMS)
    for at_s in range(100):
        rows(made, at_s, f"d{at_s}")
    assert made.counters("r")["retained"] <= 16, "those of the last 10 s, and what came since the last sweep"


def test_without_the_hint_groups_stay() -> None:
    made = engine(SUMS.removeprefix(HINT))
    assert [rows(made, at_s, "a") for at_s in (0, 1000)] == [[("a", 1)], [("a", 2)]]


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

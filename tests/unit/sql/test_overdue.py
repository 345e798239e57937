"""Timers that are overdue: what moves on keeps its instants, and what is skipped is not
counted as given out."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Engine, RuleOptions, plan_rule
from tests.support.streams import catalog_of


def engine(*rules: str, columns: str = "v BIGINT", more: str = "", **options: Any) -> Engine:
    catalog = catalog_of(f'CREATE STREAM m ({columns}) WITH (DATASOURCE="m"{more})')
    made = Engine(catalog)
    for number, text in enumerate(rules):
        made.deploy(f"r{number}", plan_rule(text, catalog, RuleOptions(**options)), 0)
    return made


@pytest.mark.parametrize(
    "text",
    [
        "select sum(v) as s from m group by TUMBLINGWINDOW(ss, 1)",
        "select irstream v from m#time_batch(1 sec)",
        "select sum(v) as s from m#time(1 sec) output snapshot every 1 sec",
    ],
)
def test_skipped_rows_are_counted_as_skipped(text: str) -> None:
    made = engine(text, catch_up="skip")
    given = len(made.push("m", [{"v": 5}], 500))
    assert made.advance(60_000) == []
    counted = made.counters("r0")
    assert counted["rows_out"] == given
    assert counted["rows_skipped"] >= 1


def test_in_event_time_nothing_is_missed() -> None:
    """The stream falls silent, and the clock is looked at much later: its last events count all the same."""
    made = engine(
        "select sum(v) as s from m group by TUMBLINGWINDOW(ss, 1)",
        columns="v BIGINT, ts BIGINT",
        more=', TIMESTAMP="ts"',
        catch_up="skip",
        idle_timeout_ms=2_000,
        late_tolerance_ms=5_000,
    )
    made.push("m", [{"v": 5, "ts": 500}, {"v": 6, "ts": 1500}], 1_600)
    assert [row for e in made.advance(60_000) for row in e.inserted] == [{"s": 5}]

"""Timers that are overdue: what moves on keeps its instants, and what is skipped is not
counted as given out."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Catalog, Engine, RuleOptions, parse, plan_rule
from sql.syntax import CreateStream

MAX_PER_SECOND = "insert into peaks select max(v) as top from m group by TUMBLINGWINDOW(ss, 1)"


def engine(*rules: str, columns: str = "v BIGINT", more: str = "", **options: Any) -> Engine:
    catalog = Catalog()
    (statement,) = parse(f'CREATE STREAM m ({columns}) WITH (DATASOURCE="m"{more})')
    assert isinstance(statement, CreateStream)
    catalog.define(statement)
    made = Engine(catalog)
    for number, text in enumerate(rules):
        made.deploy(f"r{number}", plan_rule(text, catalog, RuleOptions(**options)), 0)
    return made


def test_rows_of_several_windows_enter_the_next_stream_each_at_its_instant() -> None:
    """Windows of 1 s end at 1, 2 and 3 s; nobody looked at the clock before 10 s. Each row
    then lives for 1.5 s."""
    made = engine(
        "insert into peaks select sum(v) as top from m group by HOPPINGWINDOW(ss, 3, 1)",
        "select irstream top from peaks#time(1500 msec)",
    )
    made.push("m", [{"v": 7}], 500)
    seen = [
        (e.at_ms, [row["top"] for row in e.inserted], [row["top"] for row in e.removed])
        for e in made.advance(4_200)
        if e.rule == "r1"
    ]
    # The windows up to 1, 2 and 3 s hold the event; that up to 4 s is empty.
    assert seen[:5] == [(1000, [7], []), (2000, [7], []), (2500, [], [7]), (3000, [7], []), (3500, [], [7])]


def test_a_chain_of_windows_gets_each_row_into_the_window_of_its_instant() -> None:
    """Per-second maxima of events at 0.5 and 1.5 s belong to two different windows of two
    seconds: [0,2) and [2,4)."""
    made = engine(
        MAX_PER_SECOND, "select count(*) as n, max(top) as top from peaks group by TUMBLINGWINDOW(ss, 2)"
    )
    made.push("m", [{"v": 5}], 500)
    made.push("m", [{"v": 3}], 1500)
    rows = [(e.at_ms, e.inserted) for e in made.advance(10_000) if e.rule == "r1"]
    assert rows == [(2000, [{"n": 1, "top": 5}]), (4000, [{"n": 1, "top": 3}])]


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

"""Crontabs of contexts when the clock is put forward or back, and when it jumps. Worked by hand,
Europe/Berlin."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sql import Catalog, Engine, RuleOptions, run_script

SCRIPT = """
create schema m(v int);
create context C as start ({start}) end ({end});
@name('r') context C select count(*) as n, context.startTime as since from m output last when terminated;
"""


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def told(
    start: str, end: str, begun: str, events: list[str], until: str, catch_up: Any = "step"
) -> list[tuple[str, int, str]]:
    """(instant, count, start of the partition) of each report; instants in UTC."""
    engine = Engine(Catalog())
    run_script(engine, SCRIPT.format(start=start, end=end), ms(begun), RuleOptions(zone="Europe/Berlin"))
    found = []
    for at in events:
        found += engine.advance(ms(at), catch_up) + engine.push("m", [{"v": 1}], ms(at))
    found += engine.advance(ms(until), catch_up)

    def shown(at_ms: int) -> str:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%m-%dT%H:%M")

    return [(shown(each.at_ms), row["n"], shown(row["since"])) for each in found for row in each.inserted]


def test_a_start_that_does_not_exist_comes_when_the_clock_is_put_forward() -> None:
    # 29 March: 01:59:59 is followed by 03:00, which is 01:00 UTC.
    events = ["2026-03-29T00:30", "2026-03-29T01:30", "2026-03-29T02:29"]
    reports = told("30, 2, *, *, *", "30, 4, *, *, *", "2026-03-28T23:00", events, "2026-03-29T12:00")
    assert reports == [("03-29T02:30", 2, "03-29T01:00")]


def test_a_start_that_comes_twice_counts_the_first_time() -> None:
    # 25 October: 02:30 is 00:30 UTC and again 01:30 UTC; 04:30 is 03:30 UTC.
    events = ["2026-10-25T00:15", "2026-10-25T00:45", "2026-10-25T01:45", "2026-10-25T03:29"]
    reports = told("30, 2, *, *, *", "30, 4, *, *, *", "2026-10-24T22:00", events, "2026-10-25T12:00")
    assert reports == [("10-25T03:30", 3, "10-25T00:30")]


@pytest.mark.parametrize(("day", "hours"), [("03-29", 23), ("10-25", 25), ("07-01", 24)])
def test_a_partition_per_day_is_as_long_as_its_day(day: str, hours: int) -> None:
    begun = ms(f"2026-{day}T00:00") - 3 * 3_600_000
    engine = Engine(Catalog())
    script = SCRIPT.replace("start ({start})", "start @now").format(end="0, 0, *, *, *")
    run_script(engine, script, begun, RuleOptions(zone="Europe/Berlin"))
    found = engine.advance(begun + 30 * 3_600_000, "step")
    lengths = [(each.at_ms - row["since"]) // 3_600_000 for each in found for row in each.inserted]
    assert lengths[1:] == [hours]


def test_a_jump_over_several_shifts_steps_through_each() -> None:
    reports = told(
        "0, 6, *, *, *", "0, 14, *, *, *", "2026-07-01T00:00", ["2026-07-01T05:00"], "2026-07-03T20:00"
    )
    ends = ["07-01T12:00", "07-02T12:00", "07-03T12:00"]
    assert [(at, n) for at, n, _ in reports] == list(zip(ends, [1, 0, 0], strict=True))


def test_a_jump_done_once_ends_the_shift_at_the_new_time() -> None:
    # At the new time, 22:00 in Berlin, no shift is on; the next start is that of the morning.
    reports = told(
        "0, 6, *, *, *",
        "0, 14, *, *, *",
        "2026-07-01T00:00",
        ["2026-07-01T05:00"],
        "2026-07-03T20:00",
        "once",
    )
    assert reports == [("07-03T20:00", 1, "07-01T05:00")]

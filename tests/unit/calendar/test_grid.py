"""The window grid, in zones that make it hard."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.calendar.grid import Grid

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def ms(text: str) -> int:
    """Epoch ms of an ISO time with an offset."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def walk(grid: Grid, start: str, steps: int) -> list[str]:
    """The next boundaries after `start`, as local times."""
    at, found = ms(start), []
    for _ in range(steps):
        at = grid.next(at)
        found.append(datetime.fromtimestamp(at / 1000, grid.zone).strftime("%d %H:%M%z"))
    return found


def test_utc_is_plain_arithmetic() -> None:
    grid = Grid(10_000)
    assert (grid.floor(19_999), grid.next(20_000)) == (10_000, 30_000)
    # a Thursday, as was the epoch
    assert Grid(7 * DAY).floor(ms("2025-01-01T00:00Z")) == ms("2024-12-26T00:00Z")


def test_hours_end_on_the_local_hour_in_kolkata() -> None:
    grid = Grid(HOUR, ZoneInfo("Asia/Kolkata"))
    assert grid.floor(ms("2025-06-01T10:59:59+05:30")) == ms("2025-06-01T10:00+05:30")
    assert walk(grid, "2025-06-01T23:10+05:30", 2) == ["02 00:00+0530", "02 01:00+0530"]


def test_a_length_that_divides_no_day_ignores_the_zone() -> None:
    grid = Grid(7 * MINUTE, ZoneInfo("Asia/Kolkata"))
    assert grid.floor(7 * MINUTE * 1000 + 5) == 7 * MINUTE * 1000
    assert Grid(36 * HOUR, ZoneInfo("Asia/Kolkata")).floor(36 * HOUR) == 36 * HOUR


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (
            "2025-03-29T22:00Z",
            ["30 00:00+0100", "30 06:00+0200", "30 12:00+0200", "30 18:00+0200", "31 00:00+0200"],
        ),
        (
            "2025-10-25T21:00Z",
            ["26 00:00+0200", "26 06:00+0100", "26 12:00+0100", "26 18:00+0100", "27 00:00+0100"],
        ),
    ],
)
def test_six_hours_keep_their_wall_clock_times_on_dst_days(start: str, expected: list[str]) -> None:
    assert walk(Grid(6 * HOUR, ZoneInfo("Europe/Berlin")), start, 5) == expected


def test_a_skipped_hour_has_one_boundary() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert walk(Grid(HOUR, berlin), "2025-03-30T00:30Z", 2) == ["30 03:00+0200", "30 04:00+0200"]
    # 02:00 and 02:40 do not exist: the jump stands for both.
    assert walk(Grid(40 * MINUTE, berlin), "2025-03-30T00:10Z", 3) == [
        "30 01:20+0100",
        "30 03:00+0200",
        "30 03:20+0200",
    ]


def test_a_repeated_hour_has_boundaries_twice_for_short_lengths_only() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert walk(Grid(HOUR, berlin), "2025-10-25T23:30Z", 3) == [
        "26 02:00+0200",
        "26 02:00+0100",
        "26 03:00+0100",
    ]
    assert walk(Grid(2 * HOUR, berlin), "2025-10-25T23:30Z", 2) == ["26 02:00+0200", "26 04:00+0100"]
    assert Grid(2 * HOUR, berlin).floor(ms("2025-10-26T02:30+01:00")) == ms("2025-10-26T02:00+02:00")


@pytest.mark.parametrize(
    ("zone", "noon", "starts", "ends"),
    [
        # No midnight: the day begins with its first real instant, 01:00.
        ("America/Sao_Paulo", "2018-11-04T15:00Z", "2018-11-04T01:00-02:00", "2018-11-05T00:00-02:00"),
        ("Asia/Beirut", "2022-03-27T10:00Z", "2022-03-27T01:00+03:00", "2022-03-28T00:00+03:00"),
        # Midnight twice: the day begins with the earlier.
        ("Atlantic/Azores", "2025-10-26T12:00Z", "2025-10-26T00:00+00:00", "2025-10-27T00:00-01:00"),
        ("Atlantic/Azores", "2025-10-26T01:30Z", "2025-10-26T00:00+00:00", "2025-10-27T00:00-01:00"),
        # 00:01 back to 23:01 the day before: Sunday goes on through the late Saturday hour.
        ("America/St_Johns", "2010-11-07T03:00Z", "2010-11-07T00:00-02:30", "2010-11-08T00:00-03:30"),
        # The 30th of December 2011 did not happen in Samoa.
        ("Pacific/Apia", "2011-12-30T00:00Z", "2011-12-29T00:00-10:00", "2011-12-31T00:00+14:00"),
    ],
)
def test_days_begin_at_local_midnight(zone: str, noon: str, starts: str, ends: str) -> None:
    grid = Grid(DAY, ZoneInfo(zone))
    assert (grid.floor(ms(noon)), grid.next(ms(noon))) == (ms(starts), ms(ends))


def test_several_days_are_counted_from_the_epoch() -> None:
    grid = Grid(2 * DAY, ZoneInfo("Europe/Berlin"))
    # 2025-03-30 is day 20177 since the epoch: the pair began on the 29th and is 47 hours long.
    assert grid.floor(ms("2025-03-30T12:00Z")) == ms("2025-03-29T00:00+01:00")
    assert grid.next(ms("2025-03-30T12:00Z")) == ms("2025-03-31T00:00+02:00")


def test_a_repeated_span_may_cross_midnight_utc() -> None:
    # Moscow's second pass lasts from 23:00 to 24:00 UTC, Kwajalein's for 23 hours from 13:00 UTC.
    moscow = Grid(2 * HOUR, ZoneInfo("Europe/Moscow"))
    assert walk(moscow, "2010-10-30T21:00Z", 3) == ["31 02:00+0400", "31 04:00+0300", "31 06:00+0300"]
    # 1969-10-01 00:00 +11 became 1969-09-30 01:00 -12
    kwajalein = Grid(12 * HOUR, ZoneInfo("Pacific/Kwajalein"))
    assert walk(kwajalein, "1969-09-30T00:30Z", 3) == ["30 12:00+1100", "30 12:00-1200", "01 00:00-1200"]


ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata", "America/Sao_Paulo", "Australia/Lord_Howe",
         "Atlantic/Azores", "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu", "Asia/Beirut",
         "Africa/Casablanca")  # fmt: skip
LENGTHS = (
    1,
    1000,
    5 * MINUTE,
    40 * MINUTE,
    45 * MINUTE,
    HOUR,
    2 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    3 * DAY,
    7 * MINUTE,
)


@given(
    zone=st.sampled_from(ZONES),
    length=st.sampled_from(LENGTHS),
    times=st.lists(st.integers(0, 60 * 365 * DAY), min_size=2, max_size=6),
)
def test_grid_laws(zone: str, length: int, times: list[int]) -> None:
    """Floor and next enclose an instant, agree with each other, and do not depend on
    what was asked before."""
    used = Grid(length, ZoneInfo(zone))
    for at in times:
        low, high = used.floor(at), used.next(at)
        assert low <= at < high
        assert (used.floor(low), used.next(low)) == (low, high)
        assert used.floor(high - 1) == low
        assert used.floor(high) == high
        fresh = Grid(length, ZoneInfo(zone))
        assert (fresh.floor(at), Grid(length, ZoneInfo(zone)).next(at)) == (low, high)


@given(zone=st.sampled_from(ZONES), change=st.integers(0, 40 * 365), length=st.sampled_from((HOUR, 6 * HOUR)))
def test_boundaries_show_multiples_on_the_wall(zone: str, change: int, length: int) -> None:
    grid = Grid(length, ZoneInfo(zone))
    at = grid.floor(change * DAY)
    for _ in range(30):
        following = grid.next(at)
        before = datetime.fromtimestamp(following / 1000 - 0.001, grid.zone)
        after = datetime.fromtimestamp(following / 1000, grid.zone)
        jumped = after.utcoffset() != before.utcoffset()
        assert jumped or ((after.hour * 60 + after.minute) * MINUTE) % length == 0
        at = following


def test_lengths_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 ms"):
        Grid(0, UTC)


@given(
    st.integers(0, 2_000_000_000_000),
    st.sampled_from([MINUTE, 10 * MINUTE, 40 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, DAY, 2 * DAY]),
    st.integers(1, 40),
    st.sampled_from(["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Beirut"]),
)
def test_a_length_of_cells_goes_back_over_so_many(t_ms: int, cell: int, cells: int, zone: str) -> None:
    grid = Grid(cell, ZoneInfo(zone))
    end = grid.next(t_ms)
    start = end
    for _ in range(cells):
        start = grid.floor(start - 1)
    assert grid.back(end, cells * cell) == start


def test_days_that_are_no_multiple_of_the_cell_go_back_over_days() -> None:
    grid = Grid(2 * DAY, ZoneInfo("Europe/Berlin"))
    assert grid.back(ms("2026-03-30T00:00+02:00"), 3 * DAY) == ms("2026-03-27T00:00+01:00")
    assert grid.back(ms("2026-03-30T00:00+02:00"), 36 * HOUR) == ms("2026-03-28T11:00+01:00")


def test_a_date_that_a_zone_left_out_is_no_window_without_time() -> None:
    grid = Grid(DAY, ZoneInfo("Pacific/Apia"))
    assert grid.back(ms("2011-12-31T00:00+14:00"), DAY) == ms("2011-12-29T00:00-10:00")

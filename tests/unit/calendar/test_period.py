"""Periods: units, clipping, daylight saving."""

from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.calendar.period import Period
from sql.errors import DataError

BERLIN = ZoneInfo("Europe/Berlin")


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({"minute": 2, "second": 5}, Period(0, 125_000)),
        ({"second": 0.1}, Period(0, 100)),
        ({"second": Decimal("0.0015")}, Period(0, 2)),
        (
            {"day": 1, "hour": 2, "minute": 3, "second": 4, "millisecond": 5, "microsecond": 6},
            Period(0, 93_784_005),
        ),
        ({"week": 1}, Period(0, 604_800_000)),
        ({"year": 1, "month": 2}, Period(14, 0)),
        ({"month": 1.0, "day": 0.5}, Period(1, 43_200_000)),
        ({"microsecond": 1000}, Period(0, 1)),
    ],
)
def test_units(amounts: dict[str, float], expected: Period) -> None:
    assert Period.of(amounts) == expected


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({"microsecond": 999}, "at least 1 millisecond"),
        ({"second": 0}, "at least 1 millisecond"),
        ({}, "at least 1 millisecond"),
        ({"second": -1}, "cannot be negative"),
        ({"month": 1.5}, "whole numbers"),
        ({"fortnight": 1}, "unknown time unit 'fortnight'"),
        ({"second": float("inf")}, "no length of time"),
        ({"second": float("nan")}, "no length of time"),
    ],
)
def test_refused(amounts: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Period.of(amounts)


def test_zero_where_allowed() -> None:
    assert Period.of({"second": 0}, zero_allowed=True) == Period(0, 0)
    with pytest.raises(ValueError, match="at least"):
        Period.of({"microsecond": 1}, zero_allowed=True)


def test_months_are_clipped_and_counted_from_the_reference() -> None:
    reference = ms("2025-01-31T10:00Z")
    month = Period(1)
    assert month.times(1).add(reference, UTC) == ms("2025-02-28T10:00Z")
    assert month.times(2).add(reference, UTC) == ms("2025-03-31T10:00Z")
    assert Period(12).add(ms("2024-02-29T00:00Z"), UTC) == ms("2025-02-28T00:00Z")


def test_adding_and_subtracting_are_two_functions() -> None:
    march_end = ms("2025-03-31T00:00Z")
    february_end = Period(1).subtract(march_end, UTC)
    assert february_end == ms("2025-02-28T00:00Z")
    assert Period(1).add(february_end, UTC) == ms("2025-03-28T00:00Z")


def test_months_keep_the_wall_clock_through_daylight_saving() -> None:
    assert Period(1).add(ms("2025-03-15T12:00+01:00"), BERLIN) == ms("2025-04-15T12:00+02:00")
    # 02:30 is skipped on that day: an hour later on the wall, an exact month after in UTC.
    assert Period(1).add(ms("2025-02-28T02:30+01:00"), BERLIN) == ms("2025-03-28T02:30+01:00")
    assert Period(0, 86_400_000).add(ms("2025-03-29T12:00+01:00"), BERLIN) == ms("2025-03-30T13:00+02:00")


def test_out_of_the_calendar() -> None:
    with pytest.raises(DataError, match="outside the years"):
        Period(12 * 9000).add(0, UTC)
    with pytest.raises(DataError, match="outside the years"):
        Period(1).add(10**18, UTC)


@given(
    months=st.integers(0, 50),
    millis=st.integers(0, 10**9),
    at=st.integers(0, 4 * 10**12),
    zone=st.sampled_from([UTC, BERLIN, ZoneInfo("America/Sao_Paulo")]),
)
def test_subtracting_returns_at_most_where_adding_began(
    months: int, millis: int, at: int, zone: ZoneInfo
) -> None:
    period = Period(months, millis)
    assert period.subtract(at, zone) <= at <= period.add(at, zone)
    assert period.is_calendar == bool(months)


def test_a_month_has_passed_since_a_day_that_the_next_month_lacks_when_that_is_over() -> None:
    month = Period(1)
    assert month.reaches(ms("2025-01-31T12:00Z"), UTC) == ms("2025-03-01T00:00Z")
    assert month.reaches(ms("2025-01-28T12:00Z"), UTC) == ms("2025-02-28T12:00Z")


@given(
    months=st.integers(0, 30),
    millis=st.integers(1, 10**9),
    at=st.integers(0, 4 * 10**12),
    zone=st.sampled_from([UTC, BERLIN, ZoneInfo("America/Sao_Paulo")]),
)
def test_a_period_is_over_when_subtracting_it_reaches_its_begin(
    months: int, millis: int, at: int, zone: ZoneInfo
) -> None:
    period = Period(months, millis)
    end = period.reaches(at, zone)
    assert period.subtract(end, zone) >= at > period.subtract(end - 1, zone)

"""Dates: zones, clock changes, patterns, durations."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.errors import DataError
from sql.functions.instants import epoch_ms, instant_ms, moment
from sql.functions.notations.time_pattern import fields_of, format_moment, parse_moment
from tests.unit.functions.calls import call, evaluate, example_context

BERLIN = ZoneInfo("Europe/Berlin")
# 0001 and 9999 have no room for the offset of a zone.
MILLISECONDS = st.integers(-62_000_000_000_000, 253_000_000_000_000)


@given(MILLISECONDS)
def test_epoch_milliseconds_there_and_back(ms: int) -> None:
    assert epoch_ms(moment(ms, BERLIN)) == ms
    assert instant_ms(moment(ms, BERLIN).isoformat(), UTC) == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01", -3_600_000),
        ("1970-01-01 01:00:00", 0),
        ("1970-01-01T01:00:00.250", 250),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00+02:00", -7_200_000),
        (" 1970-01-01 01:00 ", 0),
        ("1970-01-01 01:00:00.123456789", 123),
    ],
)
def test_text_without_an_offset_is_in_the_rules_zone(text: str, ms: int) -> None:
    assert instant_ms(text, BERLIN) == ms


FIFTH_MINUTE = 1_707_455_043_000  # 2024-02-09 05:04:03 UTC


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2024-2-9 5:4:3", FIFTH_MINUTE),
        ("2024/02/09 05:04:03", FIFTH_MINUTE),
        ("2024.02.09 05:04:03.250", FIFTH_MINUTE + 250),
        ("2024.2.9", FIFTH_MINUTE - 18_243_000),
        ("2024-02", FIFTH_MINUTE - 18_243_000 - 8 * 86_400_000),
        ("2/9/2024 5:04:03", FIFTH_MINUTE),
        ("2024-02-09 13:04:03.0 +0800 UTC", FIFTH_MINUTE),
        ("2024-02-09 05:04:03 +0000 UTC", FIFTH_MINUTE),
        ("Fri, 09 Feb 2024 05:04:03 GMT", FIFTH_MINUTE),
        ("Fri, 09 Feb 2024 06:04:03 +0100", FIFTH_MINUTE),
        ("Friday, 09-Feb-24 05:04:03 UTC", FIFTH_MINUTE),
        ("09 Feb 24 05:04 UTC", FIFTH_MINUTE - 3_000),
        ("Fri Feb  9 05:04:03 2024", FIFTH_MINUTE),
        ("Fri Feb  9 05:04:03 UTC 2024", FIFTH_MINUTE),
        ("Fri Feb 09 05:04:03 -0130 2024", FIFTH_MINUTE + 5_400_000),
        ("09 Feb 69 00:00 UTC", -28_166_400_000),
    ],
)
def test_forms_of_devices_are_dates(text: str, ms: int) -> None:
    assert instant_ms(text, UTC) == ms


def test_forms_of_devices_without_an_offset_are_in_the_rules_zone() -> None:
    assert instant_ms("2024/2/9 6:4:3", BERLIN) == FIFTH_MINUTE


@pytest.mark.parametrize(
    "text",
    [
        "2024-2/9",
        "31/12/2024",
        "2024/13/1",
        "Fri, 09 Feb 2024 05:04:03 CET",
        "9 Feb",
        "13:05:09",
        "12",
        "2024",
    ],
)
def test_what_means_several_dates_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="is not a date"):
        instant_ms(text, UTC)


@pytest.mark.parametrize("value", ["yesterday", "", "2024-02-30", "12:00", 10**18, float("nan")])
def test_what_is_no_date_is_a_data_error(value: str | float) -> None:
    with pytest.raises((DataError, ValueError)):
        call("year", value)


def test_parts_are_those_of_the_rules_zone() -> None:
    new_year_utc = 1_704_067_200_000  # 2024-01-01 00:00 UTC
    tokyo, new_york = example_context("Asia/Tokyo"), example_context("America/New_York")
    assert call("hour", new_year_utc, context=tokyo) == 9
    assert (
        call("year", new_year_utc, context=new_york),
        call("day_name", new_year_utc, context=new_york),
    ) == (
        2023,
        "Sunday",
    )
    assert call("now", context=tokyo) == "2024-01-02 12:04:05"
    assert call("cur_date", context=new_york) == "2024-01-01"


def test_a_converted_time_keeps_its_zone_in_further_calls() -> None:
    assert evaluate("format_time(convert_tz(0, 'Asia/Kolkata'), 'HH:mm XXX')") == "05:30 +05:30"
    assert evaluate("to_seconds(convert_tz(5000, 'Asia/Tokyo'))") == 5
    assert call("convert_tz", 0, "Local", context=example_context("Asia/Tokyo")).endswith("+09:00")
    with pytest.raises(DataError, match="unknown time zone 'Mars/Olympus'"):
        evaluate("convert_tz(0, 'Mars/Olympus')")


@pytest.mark.parametrize(("day", "number"), [("2024-03-31", 1), ("2024-04-01", 2), ("2024-04-06", 7)])
def test_sunday_is_the_first_day_of_the_week(day: str, number: int) -> None:
    assert call("day_of_week", day) == number


@pytest.mark.parametrize(("day", "week"), [("2021-01-03", 53), ("2021-01-04", 1), ("2024-12-30", 1)])
def test_iso_weeks(day: str, week: int) -> None:
    assert call("week", day) == week


def test_hours_added_over_a_clock_change_are_elapsed_hours() -> None:
    # On 2024-03-31 Berlin has no 02:00 to 03:00.
    context = example_context("Europe/Berlin")
    assert call("date_calc", "2024-03-31 01:30:00", "1h", context=context) == "2024-03-31 03:30:00"
    assert call("date_calc", "2024-03-31 03:30:00", "-1h", context=context) == "2024-03-31 01:30:00"
    # 23 hours, one day
    assert call("date_diff", "2024-03-30 12:00:00", "2024-03-31 12:00:00", context=context) == 1


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        ("1h30m", "01:30:00"),
        ("1.5s", "00:00:01"),
        ("59750ms", "00:00:59"),
        ("1999999us", "00:00:01"),
        ("1000000000ns", "00:00:01"),
        ("+1m", "00:01:00"),
        ("2m1m", "00:03:00"),
    ],
)
def test_durations(duration: str, expected: str) -> None:
    assert call("date_calc", 0, duration) == f"1970-01-01 {expected}"


@pytest.mark.parametrize("duration", ["", "-", "1", "h", "1d", "1h-30m", "1 h"])
def test_what_is_no_duration_is_a_data_error(duration: str) -> None:
    with pytest.raises(DataError, match="not a duration"):
        call("date_calc", 0, duration)


@pytest.mark.parametrize(
    ("start", "end", "days"),
    [
        ("2024-01-01 23:00:00", "2024-01-02 01:00:00", 0),
        ("2024-01-01", "2024-12-31", 365),
        ("2024-01-03", "2024-01-01", -2),
        ("2024-01-02 01:00:00", "2024-01-01 23:00:00", 0),
    ],
)
def test_date_diff_counts_whole_days(start: str, end: str, days: int) -> None:
    assert call("date_diff", start, end) == days


@pytest.mark.parametrize(
    ("day", "last"),
    [
        ("2023-02-01", "2023-02-28"),
        ("2024-12-31", "2024-12-31"),
        ("2024-04-30 23:00", "2024-04-30"),
        ("9999-12-05", "9999-12-31"),
    ],
)
def test_last_day(day: str, last: str) -> None:
    assert call("last_day", day) == last


AFTERNOON = datetime(2024, 7, 5, 15, 4, 9, 7_000, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("YYYY-MM-dd HH:mm:ss.SSS", "2024-07-05 15:04:09.007"),
        ("yyyy/M/d H:m:s", "2024/7/5 15:4:9"),
        ("yy MMM MMMM E EEEE", "24 Jul July Fri Friday"),
        ("hh:mm a h", "03:04 PM 3"),
        ("S SSSSSS,SSSSSSSSS", ".0 .007000,007000000"),
        ("YYYY-MM-ddTHH:mm:ssSSSX", "2024-07-05T15:04:09.007+02"),
        ("q YYYYqq", "q 2024qq"),
        ("G 'Day' d ''yy''", "AD Day 5 '24'"),
        ("z Z ZZZ X XX XXX", "CEST +0200 +02:00 +02 +0200 +02:00"),
        (r"\T\\ HH\h", "T\\ 15h"),
        ("«yyyy»", "«2024»"),
    ],
)
def test_time_patterns(pattern: str, text: str) -> None:
    assert format_moment(AFTERNOON, pattern) == text


def test_offsets_west_of_utc_and_utc_itself() -> None:
    assert format_moment(moment(0, ZoneInfo("America/St_Johns")), "X XX XXX") == "-0330 -0330 -03:30"
    assert format_moment(moment(0, UTC), "X XXX Z") == "+00 +00:00 +0000"


@pytest.mark.parametrize("pattern", ["YYY", "MMMMM", "HHH", "Today"])
def test_numbers_of_letters_without_a_meaning_are_errors(pattern: str) -> None:
    with pytest.raises(DataError, match="has no meaning"):
        fields_of(pattern)


@given(MILLISECONDS.filter(lambda ms: ms > -59_000_000_000_000))
def test_a_pattern_reads_what_it_wrote(ms: int) -> None:
    pattern = "EEEE d MMMM yyyy h:mm:ss.SSS a XXX"
    found = moment(ms - ms % 1, UTC)
    assert epoch_ms(parse_moment(format_moment(found, pattern), pattern, BERLIN)) == ms


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("31.12.99 12 am", "dd.MM.yy h a", "1999-12-31T00:00:00+01:00"),
        ("5/7/24 12 PM", "d/M/yy h a", "2024-07-05T12:00:00+02:00"),
        ("20240705T150409-0330", r"yyyyMMdd\THHmmssXX", "2024-07-05T15:04:09-03:30"),
        ("12:30", "HH:mm", "1970-01-01T12:30:00+01:00"),
    ],
)
def test_reading_by_a_pattern(text: str, pattern: str, expected: str) -> None:
    assert parse_moment(text, pattern, BERLIN).isoformat() == expected


@pytest.mark.parametrize(
    ("text", "pattern"), [("2024-13-01", "yyyy-MM-dd"), ("24", "yyyy"), ("x", "dd"), ("1 1", "d d")]
)
def test_text_that_does_not_fit_the_pattern_is_a_data_error(text: str, pattern: str) -> None:
    with pytest.raises(DataError):
        parse_moment(text, pattern, UTC)

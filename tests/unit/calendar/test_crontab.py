"""Crontabs: fields, the rule of the two day fields, special days, zones and daylight saving."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.calendar.crontab import Crontab
from sql.errors import DataError
from tests.support.search import examples

BERLIN = ZoneInfo("Europe/Berlin")


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def times(fields: str | list[str], start: str, count: int, zone: timezone | ZoneInfo = UTC) -> list[str]:
    """The next times after `start`, in the zone; fields stand in a list, or in a text
    with ", " between them."""
    crontab = Crontab.parse(fields.split(", ") if isinstance(fields, str) else fields, zone)
    at, found = ms(start), []
    for _ in range(count):
        at = crontab.next_after(at)
        found.append(
            datetime.fromtimestamp(at / 1000, zone).isoformat(timespec="auto").removesuffix("+00:00")
        )
    return found


EPOCH = "1970-01-01T00:00Z"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("*/2, *, *, *, *", ["1970-01-01T00:02:00", "1970-01-01T00:04:00"]),
        ("*, *, *, *, *, 30", ["1970-01-01T00:00:30", "1970-01-01T00:01:30"]),
        ("0, 0, last, *, *", ["1970-01-31T00:00:00", "1970-02-28T00:00:00", "1970-03-31T00:00:00"]),
        ("0, 0, *, *, 5 last", ["1970-01-30T00:00:00", "1970-02-27T00:00:00", "1970-03-27T00:00:00"]),
        # Sunday 15 February becomes Monday 16, Saturday 15 August Friday 14.
        ("0, 0, 15 weekday, [2,8], *", ["1970-02-16T00:00:00", "1970-08-14T00:00:00"]),
        # 1 August 1970 is a Saturday: not 31 July but Monday the 3rd.
        ("0, 0, 1 weekday, 8, *", ["1970-08-03T00:00:00"]),
        # 31 January is a Saturday, 31 May a Sunday; February has no 31st.
        ("0, 0, 31 weekday, *, *", ["1970-01-30T00:00:00", "1970-03-31T00:00:00", "1970-05-29T00:00:00"]),
        ("0, 0, lastweekday, [1,5], *", ["1970-01-30T00:00:00", "1970-05-29T00:00:00"]),
        ("0, 0, *, *, last", ["1970-01-03T00:00:00", "1970-01-10T00:00:00"]),
        ("0, 0, 29, 2, *", ["1972-02-29T00:00:00", "1976-02-29T00:00:00"]),
        ("59, 23, 31, 12, *", ["1970-12-31T23:59:00"]),
        ("0:1, 8:9, *, *, 1:5", ["1970-01-01T08:00:00", "1970-01-01T08:01:00", "1970-01-01T09:00:00"]),
        ("*/5, *, */20, */6, *", ["1970-06-20T00:00:00", "1970-06-20T00:05:00"]),
        ("0, 0, *, *, *, 0, *, [5,250]", ["1970-01-01T00:00:00.005000", "1970-01-01T00:00:00.250000"]),
    ],
)
def test_next_times(fields: str, expected: list[str]) -> None:
    assert times(fields, EPOCH, len(expected)) == expected


def test_with_both_day_fields_set_either_matches() -> None:
    found = times("0, 0, [1,15], *, 1", EPOCH, 6)
    assert [text[5:10] for text in found] == ["01-05", "01-12", "01-15", "01-19", "01-26", "02-01"]


def test_spaces_inside_a_field_do_not_matter() -> None:
    assert (
        times(["0", "0", "[1, 15]", "* / 6", " 5   last "], "1970-06-02T00:00Z", 2)[0]
        == "1970-06-15T00:00:00"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("*, *, *, *", "5 to 9 fields, not 4"),
        ("60, *, *, *, *", "minute 60 is not between 0 and 59"),
        ("*, 24, *, *, *", "hour 24 is not between"),
        ("*, *, 0, *, *", "day of the month 0"),
        ("*, *, *, 13, *", "month 13"),
        ("*, *, *, *, 7", "day of the week 7"),
        ("*, *, *, *, *, 60", "second 60"),
        ("*/0, *, *, *, *", "minute 0 is not between 1"),
        ("9:5, *, *, *, *", "end before they begin"),
        ("x, *, *, *, *", "'x' is no minute"),
        ("[], *, *, *, *", "'' is no minute"),
        ("last, *, *, *, *", "'last' is no minute"),
        ("99999999999999999999, *, *, *, *", "is not between 0 and 59"),
        ("*, *, last, *, 5 last", "cannot stand together"),
        ("*, *, 30, 2, *", "no day ever matches"),
        ("*, *, *, *, *, 0, Mars/Base", "'Mars/Base' is not a time zone"),
        ("*, *, *, *, *, 0, ../../etc/passwd", "is not a time zone"),
        ("*, *, *, *, *, 0, *, 0, 5", "microseconds can only be 0"),
    ],
)
def test_refused(fields: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Crontab.parse(fields.split(", "), UTC)


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "GMT+5:30", "UTC+0530"])
def test_the_seventh_field_names_a_zone(zone: str) -> None:
    assert times(f"0, 8, *, *, *, 0, {zone}", EPOCH, 1) == ["1970-01-01T02:30:00"]


def test_skipped_times_come_at_the_jump_once() -> None:
    assert times("[0,30], 2, *, *, *", "2025-03-29T12:00Z", 3, BERLIN) == [
        "2025-03-30T03:00:00+02:00",
        "2025-03-31T02:00:00+02:00",
        "2025-03-31T02:30:00+02:00",
    ]
    # Every half hour: the jump is one of the times anyhow.
    assert times("*/30, *, *, *, *", "2025-03-30T00:20Z", 3, BERLIN) == [
        "2025-03-30T01:30:00+01:00",
        "2025-03-30T03:00:00+02:00",
        "2025-03-30T03:30:00+02:00",
    ]


def test_repeated_times_come_once_unless_every_hour_is_meant() -> None:
    assert times("30, 2, *, *, *", "2025-10-25T12:00Z", 2, BERLIN) == [
        "2025-10-26T02:30:00+02:00",
        "2025-10-27T02:30:00+01:00",
    ]
    assert times("30, *, *, *, *", "2025-10-26T00:00Z", 3, BERLIN) == [
        "2025-10-26T02:30:00+02:00",
        "2025-10-26T02:30:00+01:00",
        "2025-10-26T03:30:00+01:00",
    ]


def test_midnight_that_does_not_exist() -> None:
    assert times("0, 0, *, *, *", "2018-11-03T12:00Z", 2, ZoneInfo("America/Sao_Paulo")) == [
        "2018-11-04T01:00:00-02:00",
        "2018-11-05T00:00:00-02:00",
    ]


def test_the_end_of_the_calendar() -> None:
    with pytest.raises(DataError, match="years"):
        Crontab.parse(["0", "0", "1", "1", "*"], UTC).next_after(ms("9999-06-01T00:00Z"))


numbers = st.lists(st.integers(0, 6), min_size=1, max_size=3)


@examples(60)
@given(
    minutes=numbers,
    hours=numbers,
    days=st.one_of(st.none(), numbers),
    weekdays=st.one_of(st.none(), numbers),
    start=st.integers(0, 50 * 365 * 1440),
)
def test_equals_trying_every_minute(
    minutes: list[int], hours: list[int], days: list[int] | None, weekdays: list[int] | None, start: int
) -> None:
    days = None if days is None else [day + 1 for day in days]
    fields = [
        *(str(values) if values else "*" for values in (minutes, hours, days)),
        "*",
        str(weekdays or "*"),
    ]
    found = Crontab.parse(fields, UTC).next_after(start * 60_000)
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=start + 1)
    while True:
        is_day = not (days or weekdays) or at.day in (days or ()) or at.isoweekday() % 7 in (weekdays or ())
        if is_day and at.hour in hours and at.minute in minutes:
            break
        at += timedelta(minutes=1) if is_day and at.hour in hours else timedelta(minutes=60 - at.minute)
    assert found == at.timestamp() * 1000

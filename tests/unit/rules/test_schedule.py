"""`cron`, `duration` and `cronDatetimeRange`: when a rule runs. Instants are checked by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from rules.options import Options
from rules.schedule import parse_cron

BERLIN = ZoneInfo("Europe/Berlin")
DAY_MS = 86_400_000


def ms(text: str, zone: Any = UTC) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


def options(**given: Any) -> Options:
    return Options.model_validate(given)


@pytest.mark.parametrize(
    ("cron", "after", "next_"),
    [
        ("0 6 * * *", "2026-03-01T05:59:59", "2026-03-01T06:00"),
        ("0 6 * * *", "2026-03-01T06:00", "2026-03-02T06:00"),
        ("*/15 * * * *", "2026-03-01T06:01", "2026-03-01T06:15"),
        ("5/20 * * * *", "2026-03-01T06:06", "2026-03-01T06:25"),
        ("0 8-10,14 * * *", "2026-03-01T10:00", "2026-03-01T14:00"),
        ("0 0 1 1 ?", "2026-03-01T10:00", "2027-01-01T00:00"),
        ("30 4 1,15 * 5", "2026-03-02T00:00", "2026-03-06T04:30"),  # either day field: Friday the 6th
        ("0 0 * JUN sun", "2026-03-01T00:00", "2026-06-07T00:00"),
        ("0 22 * * 1-5", "2026-03-06T22:00", "2026-03-09T22:00"),  # Friday, then Monday
        ("@daily", "2026-03-01T06:06", "2026-03-02T00:00"),
        ("@weekly", "2026-03-02T00:00", "2026-03-08T00:00"),
        ("0 0 29 2 *", "2026-03-02T00:00", "2028-02-29T00:00"),
    ],
)
def test_the_times_of_a_crontab(cron: str, after: str, next_: str) -> None:
    assert parse_cron(cron, ZoneInfo("UTC")).next_after(ms(after)) == ms(next_)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cron": "0 6 * *", "duration": "1h"}, "five fields"),
        ({"cron": "0 0 6 * * *", "duration": "1h"}, "five fields"),
        ({"cron": "60 6 * * *", "duration": "1h"}, "minute '60' is not between 0 and 59"),
        ({"cron": "0 6 * * 7", "duration": "1h"}, "day of the week '7'"),
        ({"cron": "0 6-2 * * *", "duration": "1h"}, "'6-2' means no hour"),
        ({"cron": "0 */0 * * *", "duration": "1h"}, "means no hour"),
        ({"cron": "0 6 31 2 *", "duration": "1h"}, "no day ever"),
        ({"cron": "@every 1h", "duration": "1m"}, "is not known"),
        ({"cron": "0 6 * * *"}, "belong together"),
        ({"duration": "1h"}, "belong together"),
        ({"cronDatetimeRange": [{"begin": "2026-01-01 00:00:00"}]}, "needs begin and end"),
        (
            {"cronDatetimeRange": [{"begin": "2026-01-02 00:00:00", "end": "2026-01-01 00:00:00"}]},
            "ends after",
        ),
        ({"cronDatetimeRange": [{"begin": "tomorrow", "end": "2026-01-01 00:00:00"}]}, "is no time"),
    ],
)
def test_what_can_never_work_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        options(**given)


def test_without_a_schedule_a_rule_always_runs() -> None:
    assert options(cron="", duration="", cronDatetimeRange=None).schedule(BERLIN) is None


def test_it_runs_from_each_time_for_the_duration() -> None:
    found = options(cron="0 6 * * *", duration="8h").schedule(BERLIN)
    assert found is not None
    begin, end = ms("2026-03-29T06:00", BERLIN), ms("2026-03-29T14:00", BERLIN)  # the day of the clock change
    assert [found.is_on(at) for at in (begin - 1, begin, end - 1, end)] == [False, True, True, False]
    assert found.look_again(begin - 1) == begin
    assert found.look_again(begin) == end
    assert found.next_on(end) == ms("2026-03-30T06:00", BERLIN)


def test_ranges_alone_say_when_it_runs() -> None:
    spans = [
        {"begin": "2026-01-01 08:00:00", "end": "2026-01-01 09:00:00"},
        {"beginTimestamp": 1767348000000, "endTimestamp": 1767351600000},
    ]
    found = options(cronDatetimeRange=spans).schedule(BERLIN)
    assert found is not None
    begin = ms("2026-01-01T08:00", BERLIN)
    assert [found.is_on(at) for at in (begin - 1, begin, begin + 3_600_000)] == [False, True, False]
    assert found.next_on(begin + 3_600_000) == 1767348000000
    assert found.next_on(1767351600000) is None
    assert found.look_again(1767351600000) is None


def test_ranges_bound_a_crontab() -> None:
    spans = [{"begin": "2026-01-02 00:00:00", "end": "2026-01-03 06:30:00"}]
    found = options(cron="0 6 * * *", duration="1h", cronDatetimeRange=spans).schedule(ZoneInfo("UTC"))
    assert found is not None
    instants = (
        "2026-01-01T06:10",
        "2026-01-02T06:10",
        "2026-01-03T06:10",
        "2026-01-03T06:30",
        "2026-01-04T06:10",
    )
    assert [found.is_on(ms(text)) for text in instants] == [False, True, True, False, False]
    assert found.look_again(ms("2026-01-03T06:10")) == ms("2026-01-03T06:30")


@pytest.mark.long
def test_looking_again_finds_every_change() -> None:
    """Minute by minute over two days, and by the instants that it names: the same spans."""
    found = options(cron="*/40 3-5,23 * * *", duration="25m").schedule(BERLIN)
    assert found is not None
    start = ms("2026-10-24T22:00", BERLIN)
    by_minute = [
        at for at in range(start, start + 2 * DAY_MS, 60_000) if found.is_on(at) != found.is_on(at - 60_000)
    ]
    at, named, state = start - 60_000, [], found.is_on(start - 60_000)
    while (following := found.look_again(at)) is not None and following < start + 2 * DAY_MS:
        at = following
        if found.is_on(at) != state:
            state = not state
            named.append(at)
    assert named == by_minute
    assert len(named) > 10

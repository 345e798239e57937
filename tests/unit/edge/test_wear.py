"""The wear of the flash: what a day comes to at the present rate, and the warning."""

from __future__ import annotations

import logging

import pytest

from edge.journal.wear import Wear

MINUTE_MS = 60_000


def test_the_rate_is_told_after_ten_minutes_and_is_that_of_the_last_hour() -> None:
    wear = Wear(None, 0)
    for minute in range(1, 10):
        wear.note(minute * MINUTE_MS, minute * 1_000)
        assert wear.bytes_per_day is None
    wear.note(10 * MINUTE_MS, 10_000)
    assert wear.bytes_per_day == 1_440_000, "1,000 bytes a minute"
    for minute in range(11, 100):  # nothing more is written
        wear.note(minute * MINUTE_MS, 10_000)
    assert wear.bytes_per_day == 0


def test_it_is_said_once_when_it_is_more_than_configured(caplog: pytest.LogCaptureFixture) -> None:
    wear = Wear(1_000_000, 0)
    with caplog.at_level(logging.WARNING, "penstock.journal"):
        for minute in range(1, 60):
            wear.note(minute * MINUTE_MS, minute * 1_000)
    assert wear.is_too_much
    assert [record.getMessage() for record in caplog.records] == ["journal.wear"]

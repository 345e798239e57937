"""Durations and instants: what is read, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.durations import DURATION_MS_MAX, format_duration, parse_duration, parse_instant


@pytest.mark.parametrize(
    ("written", "duration_ms"),
    [(0, 0), (250, 250), ("250", 250), ("500ms", 500), ("5s", 5000), ("1m30s", 90_000), ("1.5s", 1500),
     ("2h", 7_200_000), ("1d", 86_400_000), (" 5s ", 5000), ("1h0m1ms", 3_600_001)],
)  # fmt: skip
def test_durations(written: int | str, duration_ms: int) -> None:
    assert parse_duration(written) == duration_ms


@pytest.mark.parametrize(
    "written",
    [
        "",
        "5 s",
        "s",
        "-5s",
        -1,
        True,
        1.5,
        "1e3",
        "5S",
        "0.5ms",
        "10y",
        "٥s",
        "1" * 500,
        "9" * 50 + "d",
        DURATION_MS_MAX + 1,
    ],
)
def test_what_is_no_duration(written: int | str) -> None:
    with pytest.raises(ValueError, match=r"duration|milliseconds"):
        parse_duration(written)


def test_a_number_is_of_the_unit_of_its_key() -> None:
    assert [parse_duration(value, "s") for value in (5, "5", 0.5, "5ms")] == [5_000, 5_000, 500, 5]
    assert [parse_duration(value, None) for value in ("0", "5s")] == [0, 5_000]
    with pytest.raises(ValueError, match=r"with a unit .* such as '5s', not '5'"):
        parse_duration("5", None)


@given(st.integers(0, DURATION_MS_MAX))
def test_the_written_form_reads_back(duration_ms: int) -> None:
    assert parse_duration(format_duration(duration_ms)) == duration_ms


def test_instants() -> None:
    assert parse_instant("2026-01-01T00:00:00Z") == 1_767_225_600_000
    assert parse_instant("2026-01-01T01:00:00+01:00") == 1_767_225_600_000
    assert parse_instant("2026-01-01") == 1_767_225_600_000
    assert parse_instant("1969-12-31T23:59:59.999Z") == -1
    with pytest.raises(ValueError, match="instant such as"):
        parse_instant("tomorrow")

"""Deviations that are merged from parts, beside those of Python over all values at once."""

from __future__ import annotations

import statistics
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_sync.moments import spread, squares

OF_ALL: dict[str, Any] = {
    "stddev": statistics.stdev,
    "stddev_pop": statistics.pstdev,
    "var_samp": statistics.variance,
    "var_pop": statistics.pvariance,
}
VALUES = st.lists(st.floats(-1e3, 1e3).map(lambda value: 1e6 + value), min_size=2, max_size=12)


@pytest.mark.parametrize("kind", sorted(OF_ALL))
@given(parts=st.lists(VALUES, min_size=1, max_size=4))
def test_parts_give_the_deviation_of_all_values(kind: str, parts: list[list[float]]) -> None:
    """Values lie a thousand around a million, where a sum of squares in one float would keep few digits."""
    count, total, squared = 0, Fraction(0), Fraction(0)
    for part in parts:
        found = squares(kind, OF_ALL[kind](part), len(part), sum(part))
        assert found is not None
        count, total = count + len(part), total + Fraction(sum(part))
        squared += Fraction(found[0]) + Fraction(found[1])
    everything = [value for part in parts for value in part]
    assert spread(kind, count, total, squared) == pytest.approx(OF_ALL[kind](everything), rel=1e-7, abs=1e-4)


def test_one_value_has_no_deviation_of_a_sample() -> None:
    assert spread("stddev", 1, Fraction(3), Fraction(9)) is None
    assert spread("stddev_pop", 1, Fraction(3), Fraction(9)) == 0.0


def test_squares_beyond_a_float_cannot_travel() -> None:
    assert squares("var_pop", 0.0, 1, 1e200) is None

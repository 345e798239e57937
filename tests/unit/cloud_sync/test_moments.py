"""Deviations that are merged from parts, beside those of Python over all values at once."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_sync.moments import ROOTED, spread, squares

OF_ALL: dict[str, Any] = {
    "stddev": statistics.stdev,
    "stddev_pop": statistics.pstdev,
    "var_samp": statistics.variance,
    "var_pop": statistics.pvariance,
}
PLACES = st.sampled_from([0.0, 1.0, 1e3, -1e6, 1e9])
SPREADS = st.sampled_from([1e-6, 1.0, 1e3])
UNIT = 2.0**-53
TINY = 1e-160
"""The squares of smaller values are below the least float."""


@st.composite
def fleets(draw: st.DrawFn) -> list[list[float]]:
    """The values of some windows, which lie far from zero and close together, or not."""
    place, width = draw(PLACES), draw(SPREADS)
    near = st.floats(-1, 1).map(lambda value: place + width * value)
    return draw(st.lists(st.lists(near, min_size=2, max_size=12), min_size=1, max_size=6))


@pytest.mark.parametrize("kind", sorted(OF_ALL))
@given(windows=fleets())
def test_parts_give_the_deviation_of_all_values(kind: str, windows: list[list[float]]) -> None:
    """The error of a deviation is within the bound of docs/cloud.md,
    that of a variance within what follows for its square."""
    count, total, squared = 0, Fraction(0), Fraction(0)
    for values in windows:
        found = squares(kind, OF_ALL[kind](values), len(values), math.fsum(values))
        assert found is not None
        count, total = count + len(values), total + Fraction(math.fsum(values))
        squared += Fraction(found[0]) + Fraction(found[1])
    merged = spread(kind, count, total, squared)
    assert merged is not None
    of_all = OF_ALL[kind]([value for values in windows for value in values])
    largest_mean = max(abs(math.fsum(values) / len(values)) for values in windows)
    if kind in ROOTED:
        assert abs(merged - of_all) <= 3 * UNIT * (of_all + largest_mean) + TINY
    else:
        bound = 3 * UNIT * (math.sqrt(of_all) + largest_mean) + TINY
        assert abs(merged - of_all) <= 2 * math.sqrt(of_all) * bound + bound**2


def test_one_value_has_no_deviation_of_a_sample() -> None:
    assert spread("stddev", 1, Fraction(3), Fraction(9)) is None
    assert spread("stddev_pop", 1, Fraction(3), Fraction(9)) == 0.0


def test_squares_beyond_a_float_cannot_travel() -> None:
    assert squares("var_pop", 0.0, 1, 1e200) is None

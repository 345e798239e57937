"""uni, linest, correl, weighted_avg: values worked out by hand, and sums that leave no trace."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.aggregates.base import NO_EVENT
from sql.aggregates.bivariate import PairCorrelation, Regression, WeightedMean
from sql.algebra.derived.univariate import Univariate
from sql.errors import DataError
from tests.support.search import examples
from tests.unit.aggregates.support import same

NAN = math.nan


def fed(statistic: Any, values: list[Any]) -> dict[str, Any]:
    for value in values:
        statistic.add(value, NO_EVENT)
    return statistic.result()


def test_uni() -> None:
    assert same(tuple(fed(Univariate(), []).values()), (0, 0.0, NAN, NAN, NAN, NAN))
    assert same(tuple(fed(Univariate(), [1.0]).values()), (1, 1.0, 1.0, NAN, NAN, 0.0))
    # 1, 2, 4: mean 7/3, squared deviations sum to 14/3.
    expected = (3, 7.0, 7 / 3, 7 / 3, math.sqrt(7 / 3), math.sqrt(14 / 9))
    assert same(tuple(fed(Univariate(), [1, 2.0, None, 4]).values()), expected)


def test_uni_with_an_infinity() -> None:
    statistic = Univariate()
    found = fed(statistic, [1.0, math.inf])
    assert same((found["total"], found["average"], found["stddev"]), (math.inf, math.inf, NAN))
    statistic.remove(math.inf, NO_EVENT)
    assert statistic.result()["total"] == 1.0


def test_linest() -> None:
    # y = 2x - 1 through (1,1) (2,3) (3,5): x varies by 1, y by 4; x·y = 1 + 6 + 15.
    assert fed(Regression(), [(1.0, 1), (2.0, 3), (3.0, 5), (None, 1), (1, None)]) == {
        "slope": 2.0, "YIntercept": -1.0,
        "XAverage": 2.0, "XStandardDeviationPop": math.sqrt(2 / 3), "XStandardDeviationSample": 1.0,
        "XSum": 6.0, "XVariance": 1.0,
        "YAverage": 3.0, "YStandardDeviationPop": math.sqrt(8 / 3), "YStandardDeviationSample": 2.0,
        "YSum": 9.0, "YVariance": 4.0,
        "dataPoints": 3, "n": 3, "sumX": 6.0, "sumXSq": 14.0, "sumXY": 22.0, "sumY": 9.0, "sumYSq": 35.0,
    }  # fmt: skip


def test_a_line_needs_different_x() -> None:
    found = fed(Regression(), [(5, 1), (5, 2)])
    assert same((found["slope"], found["YIntercept"], found["YVariance"]), (NAN, NAN, 0.5))


def test_a_nan_counts_only_while_it_is_there() -> None:
    statistic = Regression()
    fed(statistic, [(1, 1), (2, 3), (NAN, 0)])
    assert same(statistic.slope(), NAN)
    statistic.remove((NAN, 0), NO_EVENT)
    assert statistic.slope() == 2.0


def test_correl() -> None:
    assert same(fed(PairCorrelation(), [(1.0, 1)])["correlation"], NAN)
    assert fed(PairCorrelation(), [(1.0, 1), (2.0, 3)])["correlation"] == 1.0
    assert fed(PairCorrelation(), [(1, 3), (2, 1)])["correlation"] == -1.0
    assert fed(PairCorrelation(), [(1.0, 1), (2.0, 3), (3.0, 1)])["correlation"] == 0.0
    # Far from zero nothing cancels.
    assert fed(PairCorrelation(), [(1e9 + 0.25, 1), (1e9 + 0.5, 2), (1e9 + 0.75, 3)])["correlation"] == 1.0


def test_weighted_avg() -> None:
    assert same(fed(WeightedMean(), [])["average"], NAN)
    assert same(fed(WeightedMean(), [(1, 0)])["average"], NAN)
    assert fed(WeightedMean(), [(10, 1), (20, 3), (None, 9), (9, None)])["average"] == 17.5


@pytest.mark.parametrize("kind", [Regression, PairCorrelation, WeightedMean])
def test_a_wrong_type_leaves_the_state_as_it_was(kind: type[Any]) -> None:
    statistic = kind()
    fed(statistic, [(1, 2), (2, 3)])
    before = statistic.snapshot()
    for pair in (("1", 2), (1, "2"), (True, 1)):
        with pytest.raises(DataError, match="takes numbers"):
            statistic.add(pair, NO_EVENT)
    assert statistic.snapshot() == before


values = st.one_of(st.none(), st.integers(-9, 9), st.floats(-1e12, 1e12))
pairs = st.lists(st.tuples(values, values), max_size=12)


@pytest.mark.parametrize("kind", [Regression, PairCorrelation, WeightedMean])
@examples(40)
@given(pairs, pairs, st.randoms(use_true_random=False))
@pytest.mark.long
def test_removal_leaves_no_trace_and_restores(kind: type[Any], kept: Any, passing: Any, chance: Any) -> None:
    statistic, plain = kind(), kind()
    mixed = [(pair, True) for pair in kept] + [(pair, False) for pair in passing]
    chance.shuffle(mixed)
    for pair, _ in mixed:
        statistic.add(pair, NO_EVENT)
    for pair in passing:
        statistic.remove(pair, NO_EVENT)
    expected = tuple(fed(plain, kept).values())
    assert same(tuple(statistic.result().values()), expected, relative=0)
    again = kind()
    again.restore(json.loads(json.dumps(statistic.snapshot(), allow_nan=False)), lambda seq: NO_EVENT)
    assert same(tuple(again.result().values()), expected, relative=0)


@examples(60)
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=2, max_size=10))
def test_slope_is_that_of_fractions(points: list[tuple[float, float]]) -> None:
    n = len(points)
    x, y = [Fraction(a) for a, _ in points], [Fraction(b) for _, b in points]
    divisor = n * sum(a * a for a in x) - sum(x) ** 2
    expected = (
        float((n * sum(a * b for a, b in zip(x, y, strict=True)) - sum(x) * sum(y)) / divisor)
        if divisor
        else NAN
    )
    assert same(fed(Regression(), points)["slope"], expected)

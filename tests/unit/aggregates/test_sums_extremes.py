"""What the numbers must be: exact sums, values that stop counting, wrong types."""

import itertools
import math
from fractions import Fraction

import pytest

from sql.aggregates import bulk, extremes, sums
from sql.aggregates.base import Removal
from sql.errors import DataError
from tests.unit.aggregates.support import Arrival, over, same, windowed

INF = math.inf


def test_infinities_and_nan_stop_counting_when_they_leave() -> None:
    assert windowed(sums.Sum, [INF, 1, 2, 3], 2) == [INF, INF, 3, 5]
    assert same(windowed(sums.Sum, [math.nan, 1.0, 2.0], 2), [math.nan, math.nan, 3.0])
    assert same(windowed(sums.Sum, [INF, -INF, 2.0, 3.0], 2), [INF, math.nan, -INF, 5.0])
    assert windowed(sums.Average, [INF, 1.0, 2.0], 2) == [INF, INF, 1.5]


def test_sums_are_exact() -> None:
    assert windowed(sums.Sum, [1e16, 1.0], 1) == [1e16, 1.0]
    assert over(sums.Sum, [1e300, 1e150, 1.0, -1e300, -1e150]) == 1.0
    assert over(sums.Sum, [0.1] * 10) == 1.0
    assert over(sums.Sum, [2**70, 1]) == 2**70 + 1
    assert over(sums.Sum, [2**70, 0.5, -(2**70)]) == 0.5


def test_an_empty_sum_starts_again_at_zero() -> None:
    accumulator = sums.Sum(Removal.FIFO)
    accumulator.add(5e-324, Arrival(0))
    accumulator.remove(5e-324, Arrival(0))
    assert accumulator.total() == 0
    assert accumulator.snapshot() == sums.Sum(Removal.FIFO).snapshot()


def test_sums_beyond_floats_are_infinite() -> None:
    assert over(sums.Sum, [1.7e308, 1.7e308]) == INF
    assert over(sums.Average, [1.7e308, 1.7e308]) == 1.7e308
    assert over(sums.Average, [-(10**400)]) == -INF


def test_an_average_is_a_float_rounded_once() -> None:
    assert over(sums.Average, [1, 2]) == 1.5
    assert over(sums.Average, [3, 3]).__class__ is float
    assert over(sums.Average, [10**17 + 1, 10**17 + 3]) == 1e17


@pytest.mark.parametrize("value", ["1", True, [1], {"a": 1}, b"1"])
@pytest.mark.parametrize("make", [sums.Sum, sums.Average, sums.LotSum])
def test_sums_refuse_what_is_no_number_and_keep_their_state(make: type[sums.Sum], value: object) -> None:
    accumulator = make(Removal.FIFO)
    accumulator.add(2, Arrival(0))
    before = accumulator.snapshot()
    with pytest.raises(DataError, match="takes numbers"):
        accumulator.add(value, Arrival(1))
    assert accumulator.snapshot() == before


def test_nan_is_the_largest_number() -> None:
    values = [math.nan, 1.0, 2.0, 3.0]
    assert same(windowed(extremes.make_min, values, 2), [math.nan, 1.0, 1.0, 2.0])
    assert same(windowed(extremes.make_max, values, 2), [math.nan, math.nan, 2.0, 3.0])


@pytest.mark.parametrize("removal", list(Removal))
@pytest.mark.parametrize(
    ("values", "odd"), [([1, 2.5], "a"), (["a"], 1), ([], True), ([], [1]), ([math.nan], "a")]
)
def test_extremes_refuse_mixed_types(removal: Removal, values: list[object], odd: object) -> None:
    accumulator = extremes.make_max(removal)
    for seq, value in enumerate(values):
        accumulator.add(value, Arrival(seq))
    before = accumulator.snapshot()
    with pytest.raises(DataError, match=r"cannot be ordered|take numbers or text"):
        accumulator.add(odd, Arrival(9))
    assert accumulator.snapshot() == before


def test_the_type_may_change_once_nothing_is_left() -> None:
    accumulator = extremes.make_max(Removal.FIFO)
    accumulator.add(1, Arrival(0))
    accumulator.remove(1, Arrival(0))
    accumulator.add("a", Arrival(1))
    assert accumulator.result() == "a"


def test_a_monotonic_queue_keeps_only_what_may_still_win() -> None:
    accumulator = extremes.Queued(True)
    for seq in range(1000):
        accumulator.add(seq, Arrival(seq))
    assert len(accumulator.queue) == 1


def test_integers_keep_their_precision_against_floats() -> None:
    assert over(extremes.make_max, [2.0**53, 2**53 + 1]) == 2**53 + 1


def test_a_sum_of_coarse_fine_and_huge_floats_is_exact_whatever_leaves() -> None:
    values = [71.53, 5e-324, 1e300, 2**70, -0.1, 2.0**-60, 1.7e308, -1e300, 3, 71.53, 2.0**-101, -1.7e308]
    for size in range(1, len(values) + 1):
        window: list[float] = []
        total = sums.Sum(Removal.FIFO)
        for place, value in enumerate(values):
            total.add(value, Arrival(place))
            window.append(value)
            if len(window) > size:
                total.remove(window.pop(0), Arrival(place - size))
            exact = sum(map(Fraction, window), Fraction())
            assert total.result() == (float(exact) if abs(exact) < 2**1024 else INF)
            again = sums.Sum(Removal.FIFO)
            again.restore(total.snapshot(), lambda seq: Arrival(seq))
            assert again.result() == total.result()


def test_sums_of_many_are_those_of_the_accumulator_or_are_left_to_it() -> None:
    numbers = [
        0, -0.0, 0.1, 71.53, 3, -71.53, 5e-324, 2**52, 2.0**52, 2**53 + 1, -(2**53) - 1, 2**70, 10**400, 1e16,
        1e300, 1.7e308, -1.7e308, math.inf, -math.inf, math.nan,
    ]  # fmt: skip
    left = 0
    for values in itertools.product(numbers, repeat=3):
        found = bulk.total(list(values))
        if found is None:
            left += 1
            continue
        expected = over(sums.Sum, values)
        assert same([found], [expected]), values
        assert found.__class__ is expected.__class__, values
    assert left < len(numbers) ** 3
    assert bulk.total([]) is None
    assert bulk.total([71.53, 3, 0.1]) == 74.63

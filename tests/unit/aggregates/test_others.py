"""Rates, what is remembered for ever, constants, DISTINCT, the sorted structure, examples of the manual."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.aggregates import order, plain_values, quantiles, rates, wrap
from sql.aggregates.base import Aggregate, Removal, all_aggregates, lookup
from sql.aggregates.structures.ordered_multiset import OrderedMultiset
from sql.errors import DataError
from tests.support.search import examples
from tests.unit.aggregates.support import Arrival, over, same, windowed


def test_rate_over_seconds_is_null_until_an_arrival_has_left() -> None:
    accumulator = rates.ArrivalRate(Removal.NEVER, 2)
    found = []
    for seq, time_ms in enumerate((1000, 1500, 3000, 3500)):
        accumulator.add(True, Arrival(seq, time_ms))
        found.append(accumulator.result())
    assert found == [None, None, 1.0, 1.0]
    again = rates.ArrivalRate(Removal.NEVER, 2)
    again.restore(json.loads(json.dumps(accumulator.snapshot())), Arrival)
    again.add(True, Arrival(5, 5000))
    assert again.result() == 1.0  # 3500 and 5000: 3000 has just left


@pytest.mark.parametrize("seconds", [0, -1, "2", None, True, math.nan, math.inf])
def test_rate_needs_a_span(seconds: object) -> None:
    with pytest.raises(DataError, match="number of seconds"):
        rates.ArrivalRate(Removal.NEVER, seconds)


def test_rate_of_time_stamps() -> None:
    # length(2): when 1000 leaves, 2 events in the 4 s from it to 5000; then 2 in the 8 s from 2000 to 10000.
    assert windowed(rates.WindowRate, [1000, 2000, 5000, 10000], 2) == [None, None, 0.5, 0.25]
    amounts = [(1000, 10), (2000, 20), (None, 5), (4000, None), (5000, 30)]
    assert windowed(rates.WindowRate, amounts, 2) == [None, None, 20.0, 0.0, 10.0]
    with pytest.raises(DataError, match="time stamps"):
        rates.WindowRate(Removal.FIFO).add(math.nan, Arrival(0))


def test_leaving_turns_true_with_the_first_removal() -> None:
    definition = lookup("leaving")
    assert definition is not None
    assert windowed(definition.make, [1, 2, 3], 2) == [False, False, True]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("firstever", 4), ("lastever", 5), ("countever", 2), ("minever", 4), ("maxever", 5)],
)
def test_ever(name: str, expected: object) -> None:
    definition = lookup(name)
    assert definition is not None
    assert definition.ever
    assert over(definition.make, [4, 5, None]) == expected


def test_filtered_extremes_remember_too() -> None:
    definition = lookup("fmaxever")
    assert definition is not None
    assert over(definition.make, [(4, True), (9, None), (8, False)]) == 4


@pytest.mark.parametrize("index", [-1, 1.5, "1", True, None])
def test_an_index_is_a_whole_number(index: object) -> None:
    for make in (order.make_first, order.make_last):
        with pytest.raises(ValueError, match="whole number"):
            make(Removal.NEVER, index)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, "0.5", None, True, math.nan])
def test_a_percentile_lies_between_0_and_1(fraction: object) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        quantiles.Quantile(Removal.NEVER, fraction)


def test_percentiles_of_infinities() -> None:
    assert over(quantiles.Median, [math.inf, math.inf]) == math.inf
    assert over(quantiles.Median, [1.0, math.inf]) == math.inf
    assert same(over(quantiles.Median, [-math.inf, math.inf]), math.nan)
    assert over(quantiles.Median, [1.5e308, 1.0e308]) == pytest.approx(1.25e308)  # their sum is no float


def test_moments_do_not_cancel() -> None:
    definition = lookup("stddev")
    assert definition is not None
    base = 1e9
    found = windowed(definition.make, [base + 0.125, base + 0.25, base + 0.375], 3)
    assert found == [None, math.sqrt(0.125**2 / 2), 0.125]


def test_memory_of_last_and_first_does_not_grow() -> None:
    last, first = order.make_last(Removal.FIFO, 1), order.make_first(Removal.NEVER, 1)
    for seq in range(1000):
        last.add(seq, Arrival(seq))
        first.add(seq, Arrival(seq))
    assert len(last.snapshot()[1]) == 2
    assert len(first.snapshot()) == 2


def test_what_was_removed_in_any_order_is_swept_out() -> None:
    accumulator = order.make_first(Removal.ANY)
    for seq in range(1000):
        accumulator.add(seq, Arrival(seq))
    for seq in range(1, 999):
        accumulator.remove(seq, Arrival(seq))
    assert accumulator.result() == 0
    assert isinstance(accumulator, order.InArrival)
    assert len(accumulator.values.entries) < 20  # type: ignore[attr-defined]


def test_distinct_takes_out_the_value_it_put_in() -> None:
    definition = lookup("collect")
    assert definition is not None
    accumulator = wrap.distinct(definition, Removal.FIFO)
    for seq, value in enumerate([1, 1.0, "1", None, None]):
        accumulator.add(value, Arrival(seq))
    assert accumulator.result() == [1, "1", None]
    accumulator.remove(1, Arrival(0))
    assert accumulator.result() == [1, "1", None]
    accumulator.remove(1.0, Arrival(1))
    assert accumulator.result() == ["1", None]


def test_distinct_does_not_count_a_refused_value() -> None:
    definition = lookup("sum")
    assert definition is not None
    accumulator = wrap.distinct(definition, Removal.ANY)
    for _ in range(2):
        with pytest.raises(DataError):
            accumulator.add("a", Arrival(0))


@examples(50)
@given(st.lists(st.integers(0, 2000), max_size=3000), st.randoms(use_true_random=False))
def test_ordered_multiset(values: list[int], chance: Any) -> None:
    ordered, plain = OrderedMultiset(), []
    for value in values:
        ordered.add(value)
        plain.append(value)
    chance.shuffle(plain)
    for value in plain[len(plain) // 3 :]:
        assert ordered.remove(value) == value
    plain = sorted(plain[: len(plain) // 3])
    assert list(ordered) == plain == list(OrderedMultiset(plain))
    assert [ordered.at(index) for index in range(len(ordered))] == plain
    if plain:
        assert (ordered.lowest(), ordered.highest()) == (plain[0], plain[-1])
    with pytest.raises(KeyError):
        ordered.remove(5000)
    with pytest.raises(IndexError):
        ordered.at(len(plain))


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary()),
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.sampled_from(["a", "$"]), inner)
    ),
    max_leaves=8,
)


@given(json_values)
def test_values_survive_json(value: Any) -> None:
    text = json.dumps(plain_values.encode(value), allow_nan=False)
    assert same(plain_values.decode(json.loads(text)), value, relative=0)


def test_integers_of_any_size_survive_json() -> None:
    assert plain_values.decode(json.loads(json.dumps(plain_values.encode(10**5000)))) == 10**5000


def test_foreign_objects_are_not_stored() -> None:
    with pytest.raises(TypeError, match="cannot store a object"):
        plain_values.encode(object())


EXAMPLES = [(item, text, result) for item in all_aggregates() for text, result in item.examples]


@pytest.mark.parametrize(("definition", "text", "result"), EXAMPLES, ids=[text for _, text, _ in EXAMPLES])
def test_examples(definition: Aggregate, text: str, result: Any) -> None:
    call, _, values = text.partition(" over ")
    name, _, arguments = call.removesuffix(")").partition("(")
    at = len(definition.parameters) - definition.constants
    constants = [json.loads(part) for part in arguments.split(", ")[at:]] if definition.constants else []
    assert name in (definition.name, *definition.aliases)
    many = len([parameter for parameter in definition.parameters if not parameter.constant]) > 1
    items = [tuple(item) if many else item for item in json.loads(values)]
    assert same(over(definition.make, items, *constants), result)


def test_every_aggregate_documents_itself() -> None:
    for definition in all_aggregates():
        assert definition.doc.endswith("."), definition.name
        assert len(definition.parameters) >= definition.constants
        assert all(
            parameter.constant
            for parameter in definition.parameters[len(definition.parameters) - definition.constants :]
        )


class Row:
    """A whole row of struct shape."""

    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


def test_whole_rows_may_be_structs() -> None:
    assert over(order.make_merge_agg, [Row(1, 2), {"b": 3}]) == {"a": 1, "b": 3}
    assert windowed(order.make_merge_agg, [Row(1, 2), {"b": 3}], 1) == [{"a": 1, "b": 2}, {"b": 3}]
    assert plain_values.decode(plain_values.encode([Row(1, math.nan)]))[0]["a"] == 1


CHECKED = [("sum", "a"),
           ("avg", True), ("lot_sum", []), ("min", {}), ("max", True), ("fmin", ([], True)), ("stddev", "1"),
           ("wavg", (1, "1")), ("median", "a"), ("avedev", "a"), ("merge_agg", 5), ("rate_ts", ("x", 1)),
           ("rate_ts", (1, "x")), ("rate_ts", (math.nan,))]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), CHECKED)
@pytest.mark.parametrize("removal", list(Removal))
def test_check_raises_what_add_would(name: str, value: Any, removal: Removal) -> None:
    definition = lookup(name)
    assert definition is not None
    for accumulator in (definition.make(removal), wrap.Distinct(definition.make(removal))):
        with pytest.raises(DataError) as found:
            accumulator.check(value)
        with pytest.raises(DataError) as added:
            accumulator.add(value, Arrival(0))
        assert str(found.value) == str(added.value)


def test_check_knows_what_is_there() -> None:
    definition = lookup("max")
    assert definition is not None
    accumulator = definition.make(Removal.FIFO)
    accumulator.check("a")
    accumulator.add(1, Arrival(0))
    accumulator.check(None)
    with pytest.raises(DataError, match="among numbers"):
        accumulator.check("a")


def test_one_argument_may_come_as_a_tuple_of_one() -> None:
    assert windowed(rates.WindowRate, [(1000,), (2000,), (5000,)], 2) == [None, None, 0.5]
    definition = lookup("minby")
    assert definition is not None
    assert over(definition.make, [(None,), (2,), (1,)]) == Arrival(2)


@pytest.mark.parametrize(
    ("values", "middle"),
    [([1, 10**400], math.inf), ([0.5, -(10**400)], -math.inf), ([math.inf, -(10**400)], math.inf)],
)
def test_the_median_of_numbers_beyond_floats_is_an_infinity(values: list[Any], middle: float) -> None:
    definition = lookup("median")
    assert definition is not None
    assert over(definition.make, values) == middle


def test_the_deviation_of_a_number_beyond_floats_leaves_with_it() -> None:
    definition = lookup("avedev")
    assert definition is not None
    assert windowed(definition.make, [10**400, 10**400, 1, 3], 2) == [0.0, 0.0, math.inf, 1.0]

"""Laws of every aggregate, against plain Python over lists: at every prefix, for every way of leaving."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.aggregates.base import Accumulator, Removal, lookup
from sql.aggregates.wrap import distinct
from sql.types import key_of
from tests.support.search import examples
from tests.unit.aggregates.support import Arrival, Live, over, reborn, same, steps

import sql.aggregates  # noqa: F401  isort: skip  fills the registry

NAN = math.nan

finite = st.one_of(
    st.integers(-5, 5),
    st.integers(-(10**20), 10**20),
    st.floats(-100, 100),
    st.floats(allow_nan=False, allow_infinity=False),
)
number = st.one_of(st.none(), finite, st.sampled_from([NAN, math.inf, -math.inf]))
anything = st.one_of(number, st.text(max_size=2), st.booleans())


def known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def total(values: list[Any]) -> Any:
    """The true sum: infinities and NaN by their rules, the rest as a fraction, rounded once."""
    odd = [value for value in values if not math.isfinite(value)]
    if odd:
        return math.fsum(odd) if not (math.inf in odd and -math.inf in odd) else NAN
    exact = sum(map(Fraction, values), Fraction(0))
    return rounded(exact) if any(isinstance(value, float) for value in values) else int(exact)


def rounded(exact: Fraction | float) -> float:
    exact = Fraction(exact)
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def mean(values: list[Any]) -> float:
    odd = total(values)
    return (
        odd
        if not math.isfinite(odd) and not all(map(math.isfinite, values))
        else rounded(sum(map(Fraction, values), Fraction(0)) / len(values))
    )


def nan_last(value: Any) -> Any:
    return (1, 0) if value != value else (0, value)


def or_null(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda values: function(known(values)) if known(values) else None


@dataclass(frozen=True)
class Case:
    """An aggregate, what feeds it, and what it must give over a list of the values in it."""

    name: str
    oracle: Callable[[list[Any]], Any]
    values: st.SearchStrategy[Any]
    constants: tuple[Any, ...] = ()
    distinct: bool = False

    def make(self, removal: Removal) -> Accumulator:
        definition = lookup(self.name)
        assert definition is not None
        if self.distinct:
            return distinct(definition, removal, *self.constants)
        return definition.make(removal, *self.constants)


def at(values: list[Any], index: int, default: Any = None) -> Any:
    return values[index] if -len(values) <= index < len(values) else default


def weighted(pairs: list[Any]) -> Any:
    pairs = [pair for pair in pairs if None not in pair]
    if not pairs:
        return None
    if not all(math.isfinite(part) for pair in pairs for part in pair) or not sum(
        Fraction(w) for _, w in pairs
    ):
        return NAN
    return rounded(sum(Fraction(x) * Fraction(w) for x, w in pairs) / sum(Fraction(w) for _, w in pairs))


def spread(sample: bool, rooted: bool) -> Callable[[list[Any]], Any]:
    """Variance or standard deviation from fractions."""

    def of(values: list[Any]) -> Any:
        values = known(values)
        if len(values) <= sample:
            return None
        if not all(map(math.isfinite, values)):
            return NAN
        centre = sum(map(Fraction, values), Fraction(0)) / len(values)
        variance: Fraction = sum((Fraction(value) - centre) ** 2 for value in values) / Fraction(
            len(values) - sample
        )
        if not rooted:
            return rounded(variance)
        # The root of a quotient too large or small for a float: 60 more digits as an integer root.
        scaled = math.isqrt((variance.numerator << 8000) // variance.denominator)
        return rounded(Fraction(scaled, 1 << 4000))

    return of


def ordered(values: list[Any]) -> list[Any]:
    return sorted(value for value in known(values) if value == value)


def median(values: list[Any]) -> Any:
    values = ordered(values)
    if not values:
        return None
    low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
    return between(low, high, Fraction(1, 2)) if len(values) % 2 == 0 else as_float(low)


def as_float(value: Any) -> float:
    return rounded(Fraction(value)) if math.isfinite(value) else float(value)


def between(low: Any, high: Any, part: Fraction) -> float:
    if low == high:
        return as_float(low)
    if not (math.isfinite(low) and math.isfinite(high)):
        return low + high
    return rounded(Fraction(low) * (1 - part) + Fraction(high) * part)


def quarter(values: list[Any]) -> Any:
    """The interpolated first quartile: place (n-1)/4."""
    values = ordered(values)
    if not values:
        return None
    whole, rest = divmod(len(values) - 1, 4)
    return between(values[whole], values[whole + 1], Fraction(rest, 4)) if rest else as_float(values[whole])


def tenth(values: list[Any]) -> Any:
    """The first value that at least a tenth do not exceed."""
    values = ordered(values)
    return next((value for place, value in enumerate(values, 1) if place * 10 >= len(values)), None)


def deviation(values: list[Any]) -> Any:
    values = known(values)
    if not values or not all(map(math.isfinite, values)):
        return NAN if values else None
    centre = sum(map(Fraction, values), Fraction(0)) / len(values)
    return rounded(sum((abs(Fraction(value) - centre) for value in values), Fraction(0)) / len(values))


def once(values: list[Any]) -> list[Any]:
    return list({key_of(value): value for value in reversed(values)}.values())


CASES = [
    Case("count", lambda v: len(known(v)), anything),
    Case("sum", or_null(total), number),
    Case("avg", or_null(mean), number),
    Case("min", or_null(lambda v: min(v, key=nan_last)), st.one_of(st.none(), st.floats())),
    Case("max", or_null(lambda v: max(v, key=nan_last)), st.one_of(st.none(), st.floats())),
    Case("max", or_null(max), st.one_of(st.none(), st.integers(-3, 3))),
    Case("min", or_null(min), st.one_of(st.none(), st.text(max_size=2))),
    Case("fmin", lambda v: or_null(min)([x for x, keep in v if keep]),
         st.tuples(st.integers(-3, 3), st.sampled_from([True, False, None]))),
    Case("wavg", weighted, st.tuples(number, number)),
    Case("lot_sum", lambda v: total([x for x in known(v) if x == x]), number),
    Case("lot_count", lambda v: sum(x is not None and x is not False and x == x for x in v), anything),
    Case("first", lambda v: at(v, 0), anything),
    Case("first", lambda v: at(v, 2), anything, (2,)),
    Case("last", lambda v: at(v, -1), anything),
    Case("last", lambda v: at(v, -3), anything, (2,)),
    Case("nth", lambda v: at([x for x in v if x is not None], -2), anything, (1,)),
    Case("lot_nth", lambda v: at(v, 1, "none"), anything, (1, "none")),
    Case("lot_nth", lambda v: at(v, -2, "none"), anything, (-2, "none")),
    Case("last_value", lambda v: at(known(v), -1), anything, (True,)),
    Case("collect", lambda v: v or None, anything),
    Case("merge_agg", lambda v: {k: x for row in known(v) for k, x in row.items()} or None,
         st.one_of(st.none(), st.dictionaries(st.sampled_from("abc"), anything, max_size=2))),
    Case("stddev", spread(sample=True, rooted=True), number),
    Case("stddev_pop", spread(sample=False, rooted=True), number),
    Case("vars", spread(sample=True, rooted=False), number),
    Case("var", spread(sample=False, rooted=False), number),
    Case("median", median, number),
    Case("percentile_cont", quarter, number, (0.25,)),
    Case("percentile_disc", tenth, number, (0.1,)),
    Case("avedev", deviation, number),
    Case("countunique", lambda v: len(once(known(v))),
         st.one_of(st.none(), st.integers(0, 3), st.booleans())),
    Case("sum", or_null(lambda v: total(once(v))), st.one_of(st.none(), st.integers(-3, 3)), distinct=True),
    Case("count", lambda v: len(once(known(v))),
         st.one_of(st.none(), st.integers(0, 3), st.booleans(), st.text(max_size=1)), distinct=True),
    Case("max", or_null(max), st.one_of(st.none(), st.integers(-3, 3)), distinct=True),
]  # fmt: skip

cases = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}{case.constants or ''}")
removals = st.sampled_from(list(Removal))


def check(case: Case, accumulator: Accumulator, live: Live) -> None:
    expected = case.oracle([value for value, _ in live])
    found = accumulator.result()
    assert same(found, expected), f"{[value for value, _ in live]}: {found!r}, not {expected!r}"


@cases
@examples(40)
@given(data=st.data(), removal=removals, seed=st.integers(0, 1000))
def test_equals_plain_python_at_every_step(
    case: Case, data: st.DataObject, removal: Removal, seed: int
) -> None:
    values = data.draw(st.lists(case.values, max_size=12))
    accumulator = case.make(removal)
    for live in steps(accumulator, values, removal, seed):
        check(case, accumulator, live)


@cases
@examples(25)
@given(data=st.data(), removal=removals, seed=st.integers(0, 1000), interrupt=st.integers(0, 20))
def test_goes_on_after_a_restore(
    case: Case, data: st.DataObject, removal: Removal, seed: int, interrupt: int
) -> None:
    """A snapshot taken at any step goes through JSON text; from there on both accumulators say the same."""
    values = data.draw(st.lists(case.values, min_size=1, max_size=12))
    accumulator = case.make(removal)
    other: Accumulator | None = None
    before: Live = []
    for step, live in enumerate(steps(accumulator, values, removal, seed)):
        if other is not None:
            replay(other, before, live)
        elif step == interrupt:
            other = reborn(accumulator, case.make(removal), live)
        if other is not None:
            check(case, other, live)
        before = list(live)


def replay(accumulator: Accumulator, before: Live, live: Live) -> None:
    """The one addition or removal that leads from `before` to `live`."""
    places = {event.seq for _, event in live}
    gone = [(value, event) for value, event in before if event.seq not in places]
    if gone:
        accumulator.remove(*gone[0])
    else:
        accumulator.add(*live[-1])


@cases
@examples(25)
@given(data=st.data(), removal=removals)
def test_merge_is_concatenation(case: Case, data: st.DataObject, removal: Removal) -> None:
    definition = lookup(case.name)
    assert definition is not None
    if not definition.mergeable or (case.distinct and removal is not Removal.NEVER):
        return
    earlier = data.draw(st.lists(case.values, max_size=8))
    later = data.draw(st.lists(case.values, max_size=8))
    merged, pane = case.make(removal), case.make(removal)
    live: Live = []
    for seq, value in enumerate(earlier + later):
        event = Arrival(seq)
        live.append((value, event))
        (merged if seq < len(earlier) else pane).add(value, event)
    merged.merge(pane)
    check(case, merged, live)
    while live and removal is not Removal.NEVER:
        merged.remove(*live.pop(0))
        check(case, merged, live)


@cases
@examples(25)
@given(data=st.data())
def test_adding_and_removing_leaves_no_trace(case: Case, data: st.DataObject) -> None:
    values = data.draw(st.lists(case.values, min_size=2, max_size=8))
    kept, passing = values[:-1], values[-1]
    accumulator, plain = case.make(Removal.ANY), case.make(Removal.ANY)
    for seq, value in enumerate(kept):
        accumulator.add(value, Arrival(seq))
        plain.add(value, Arrival(seq))
    accumulator.add(passing, Arrival(99))
    accumulator.remove(passing, Arrival(99))
    assert same(accumulator.result(), plain.result(), relative=0)


def test_only_nulls_are_null() -> None:
    for name in ("sum", "avg", "min", "max", "last_value", "merge_agg"):
        definition = lookup(name)
        assert definition is not None
        constants = (True,) if name == "last_value" else ()
        assert over(definition.make, [None, None], *constants) is None

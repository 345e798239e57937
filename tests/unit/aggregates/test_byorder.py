"""minby, maxby, sorted, deduplicate: the events they give, against sorting a list."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.aggregates.base import Accumulator, Removal, lookup
from sql.aggregates.byorder import criteria
from sql.types import Descending, key_of
from tests.support.search import examples
from tests.unit.aggregates.support import Arrival, Live, reborn, steps

keys = st.one_of(st.none(), st.integers(-2, 2), st.floats(-2, 2), st.text(max_size=1))
pairs = st.tuples(st.integers(0, 2), st.integers(0, 2).map(Descending))
removals = st.sampled_from(list(Removal))


def make(name: str, removal: Removal, *constants: Any) -> Accumulator:
    definition = lookup(name)
    assert definition is not None
    return definition.make(removal, *constants)


def by_criteria(live: Live) -> list[Any]:
    return [event for _, event in sorted(live, key=lambda item: (criteria(item[0]), item[1].seq))]


def best(live: Live, largest: bool) -> Any:
    """The earliest of those that no other beats."""
    live = [item for item in live if item[0] is not None]
    for value, event in live:
        key = criteria(value)
        if not any(key < criteria(other) if largest else criteria(other) < key for other, _ in live):
            return event
    return None


@examples(60)
@given(st.lists(st.one_of(keys, pairs), max_size=10), removals, st.integers(0, 99), st.integers(0, 15))
def test_events_by_order(values: list[Any], removal: Removal, seed: int, interrupt: int) -> None:
    single = [value if not isinstance(value, tuple) else value[0] for value in values]
    for name, oracle in (
        ("sorted", lambda live: by_criteria(live) or None),
        ("minby", lambda live: best(live, False)),
        ("maxby", lambda live: best(live, True)),
    ):
        accumulator = make(name, removal)
        for step, live in enumerate(steps(accumulator, single, removal, seed)):
            assert accumulator.result() == oracle(live)
            if step == interrupt:
                assert reborn(accumulator, make(name, removal), live).result() == oracle(live)


@examples(40)
@given(st.lists(pairs, max_size=10), removals, st.integers(0, 99))
def test_several_criteria_some_descending(values: list[Any], removal: Removal, seed: int) -> None:
    accumulator = make("sorted", removal)
    for live in steps(accumulator, values, removal, seed):
        expected = sorted(live, key=lambda item: (item[0][0], -item[0][1].key, item[1].seq))
        assert accumulator.result() == ([event for _, event in expected] or None)
        assert reborn(accumulator, make("sorted", removal), live).result() == accumulator.result()


@examples(40)
@given(
    st.lists(st.one_of(st.none(), st.integers(0, 3), st.booleans()), max_size=10),
    removals,
    st.integers(0, 99),
)
@pytest.mark.long
def test_deduplicate(values: list[Any], removal: Removal, seed: int) -> None:
    every, newest = make("deduplicate", removal, True), make("deduplicate", removal, False)
    for live, _ in zip(
        steps(every, values, removal, seed), steps(newest, values, removal, seed), strict=True
    ):
        first: dict[Any, Any] = {}
        for value, event in live:
            first.setdefault(key_of(value), event)
        assert every.result() == (list(first.values()) or None)
        is_new = bool(live) and first[key_of(live[-1][0])] is live[-1][1]
        assert newest.result() == (live[-1][1] if is_new else None)
        assert reborn(every, make("deduplicate", removal, True), live).result() == every.result()


def test_of_equal_events_the_earliest() -> None:
    for removal in Removal:
        for name in ("minby", "maxby"):
            accumulator = make(name, removal)
            for seq in range(3):
                accumulator.add(7, Arrival(seq))
            assert accumulator.result() == Arrival(0)


def test_ever_keeps_what_has_left() -> None:
    accumulator = make("maxbyever", Removal.FIFO)
    accumulator.add(7, Arrival(0))
    accumulator.add(3, Arrival(1))
    assert accumulator.result() == Arrival(0)
    assert list(accumulator.held()) == [Arrival(0)]


def test_merging_panes() -> None:
    for name, expected in (
        ("minby", Arrival(1)),
        ("maxby", Arrival(2)),
        ("sorted", [Arrival(1), Arrival(0), Arrival(2)]),
    ):
        for removal in Removal:
            earlier, later = make(name, removal), make(name, removal)
            for seq, value in ((0, 5), (1, 1)):
                earlier.add(value, Arrival(seq))
            later.add(9, Arrival(2))
            earlier.merge(later)
            assert earlier.result() == expected


def test_a_wrong_constant_is_refused() -> None:
    with pytest.raises(ValueError, match="true or false"):
        make("deduplicate", Removal.ANY, 1)

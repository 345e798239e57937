"""What a call of the engine gives out: a sequence of emissions,
and the rows of a batch as the loop made them."""

from __future__ import annotations

import pytest

from sql import Catalog, Emission, Engine, run_script
from tests.support.engines import engine_of

EVENTS = [{"v": number} for number in range(4)]


def running(rule: str) -> Engine:
    return engine_of(f"create schema m(v int); @name('r') {rule}")


RULES = {
    "select v from m": [0, 1, 2, 3],
    "select v from m#length(9)": [0, 1, 2, 3],
    "select sum(v) as v from m": [0, 1, 3, 6],
}


@pytest.mark.parametrize("rule", RULES)
def test_each_event_of_a_batch_has_an_emission_of_its_own(rule: str) -> None:
    single, batched = running(rule), running(rule)
    one_by_one = [emission for event in EVENTS for emission in single.push("m", [event], 5)]
    assert [*batched.push("m", EVENTS, 5)] == one_by_one
    assert [emission.inserted for emission in one_by_one] == [[{"v": v}] for v in RULES[rule]]
    assert single.counters("r") == batched.counters("r")


def test_it_reads_as_a_list_does() -> None:
    found = running("select v from m where v <> 2").push("m", EVENTS, 5)
    first = Emission("r", 5, "rows", [{"v": 0}])
    rest = [Emission("r", 5, "rows", [{"v": v}]) for v in (1, 3)]
    assert found and len(found) == 3
    assert found[0] == first and found[1:] == rest and found[-1] == rest[-1]
    assert found == [first, *rest] == found and found != rest
    assert found + found[:1] == [first, *rest, first] and found[:1] + found == [first, first, *rest]
    assert repr(found) == repr([first, *rest])
    assert first in found
    assert not running("select v from m where v > 9").push("m", EVENTS, 5)


def test_rows_of_a_batch_are_one_part() -> None:
    (part,) = running("select v from m").push("m", EVENTS, 5).parts
    assert part.inserted == EVENTS


def test_errors_stand_behind_the_rows_of_a_batch() -> None:
    found = running("select 6 / v as q from m#length(3)").push("m", [{"v": 3}, {"v": "x"}, {"v": 2}], 5)
    assert [emission.kind for emission in found] == ["rows", "rows", "error"]


def test_rows_that_move_on_are_moved_one_by_one() -> None:
    engine = Engine(Catalog())
    moving = "create schema m(v int); insert into n select v from m;"
    run_script(engine, f"{moving} @name('r') select v, prior(1, v) as p from n#length(5)", 0)
    found = [emission for emission in engine.push("m", EVENTS, 5) if emission.rule == "r"]
    rows = [row for emission in found for row in emission.inserted]
    assert rows == [{"v": 0, "p": None}, {"v": 1, "p": 0}, {"v": 2, "p": 1}, {"v": 3, "p": 2}]

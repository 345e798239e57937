"""Types that inherit others: what may inherit what, and types that are declared beside running statements."""

from __future__ import annotations

import pytest

from sql import Engine, SqlError, run_script
from tests.support.engines import engine_of

TYPES = "create schema A (x int); create schema B (y int); create schema C () inherits A;"


@pytest.fixture
def engine() -> Engine:
    return engine_of(TYPES)


def rows_of(engine: Engine, stream: str, row: dict[str, object]) -> list[dict[str, object]]:
    return [found for emission in engine.push(stream, [row], 1) for found in emission.inserted]


def test_a_type_declared_after_a_statement_feeds_it(engine: Engine) -> None:
    run_script(engine, "@name('s') select x from A(x > 1)", 0)
    assert rows_of(engine, "C", {"x": 2}) == [{"x": 2}]
    run_script(engine, "create schema D (z int) inherits C", 0)
    assert rows_of(engine, "D", {"x": 3, "z": 1}) == [{"x": 3}]
    assert rows_of(engine, "D", {"x": 1, "z": 1}) == []
    assert engine.counters("s")["events_in"] == 3


def test_a_type_is_not_declared_again_otherwise(engine: Engine) -> None:
    run_script(engine, "@name('s') select x from A", 0)
    with pytest.raises(SqlError, match="1:1: B551 'A' is declared already, otherwise"):
        run_script(engine, "create schema A (z string)", 0)
    assert rows_of(engine, "A", {"x": 2}) == [{"x": 2}]
    run_script(engine, "create schema A (x int); create schema C () inherits A", 0)
    assert rows_of(engine, "C", {"x": 3}) == [{"x": 3}]


def test_a_type_of_two_types_that_a_statement_reads_is_refused(engine: Engine) -> None:
    run_script(engine, "@name('s') select a.x as x, b.y as y from A#lastevent as a, B#lastevent as b", 0)
    with pytest.raises(SqlError, match="B108 an event of 'E' is one of 'A' and of 'B'"):
        run_script(engine, "create schema E () inherits A, B", 0)
    assert "E" not in engine.catalog.streams
    with pytest.raises(SqlError, match="B108"):
        run_script(engine, "create schema C () inherits A, B", 0)
    assert engine.catalog.lineage("C") == ("C", "A")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("create schema E () inherits m", "B107 'm' is a stream with rows of its own"),
        ("create schema E () inherits W", "B107 'W' is a named window with rows of its own"),
        ("create schema E () inherits Nothing", "B202 unknown schema 'Nothing'"),
        ("create schema A () inherits C", "B107 'A' would inherit itself"),
    ],
)
def test_a_type_inherits_from_types(engine: Engine, text: str, why: str) -> None:
    run_script(engine, "create stream m (x bigint) with (DATASOURCE='m')", 0)
    run_script(engine, "create window W#keepall as (x int)", 0)
    with pytest.raises(SqlError, match=why):
        run_script(engine, text, 0)


def test_statements_of_a_context_take_each_of_its_types(engine: Engine) -> None:
    """The context is entered once for each statement; its condition reads neither type."""
    run_script(
        engine, "create schema Begin (n int); create context N initiated by Begin terminated after 1 min", 0
    )
    run_script(engine, "@name('of_a') context N select x, count(*) as n from A", 0)
    run_script(engine, "@name('of_c') context N select x, count(*) as n from C", 0)
    engine.push("Begin", [{"n": 1}], 0)
    found = [(emission.rule, emission.inserted) for emission in engine.push("C", [{"x": 5}], 1)]
    assert sorted(found) == [("of_a", [{"x": 5, "n": 1}]), ("of_c", [{"x": 5, "n": 1}])]

"""The rows of a backfill: many are written together as each would be alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from cloud_sync.spark.backfill.row_writer import RowWriter
from cloud_sync.spark.backfill.rules import compiled
from sql import Emission, Plan

RULES = """
streams: ["CREATE STREAM plant (dev string, n bigint, x float, on boolean) WITH (DATASOURCE='x')"]
rules:
- {id: typed, sql: "SELECT dev, n, x, on FROM plant", actions: [{log: {}}]}
- {id: listed, sql: "SELECT dev, collect(n) AS all FROM plant GROUP BY COUNTWINDOW(2)", actions: [{log: {}}]}
- {id: whole, sql: "SELECT * FROM plant", actions: [{log: {}}]}
"""


def plan(rule: str) -> Plan:
    known = compiled([(RULES, "rules.yaml")], "UTC")
    assert known.ok, [problem.render() for problem in known.problems]
    return known.rules[rule].plan


PLANS = {rule: plan(rule) for rule in ("typed", "listed", "whole")}


def written(*emissions: Emission, rule: str = "typed") -> list[tuple[Any, ...]]:
    """Number, instant, kind, reason and row of what a rule emits."""
    writer, number = RowWriter(rule, PLANS[rule]), 0
    for emission in emissions:
        number = writer.add(emission, number)
    columns = writer.write()
    assert writer.write() is None
    return [] if columns is None else [*zip(*(column.to_pylist() for column in columns), strict=True)]


def rows(*found: dict[str, Any], at_ms: int = 7) -> Emission:
    return Emission("typed", at_ms, "rows", [*found])


def test_rows_come_in_the_order_in_which_they_were_emitted() -> None:
    found = written(
        rows({"n": 1}, {"n": 2}),
        rows(at_ms=8),
        Emission("typed", 9, "late", [{"n": 3, "x": None}]),
        Emission("typed", 10, "rows", [{"n": 4}], [{"n": 1}]),
        Emission("typed", 11, "error", error="why"),
        Emission("typed", 12, "error", [{"n": 5}], error="why not"),
        rows({"dev": "two\nlines"}, at_ms=13),
    )
    assert found == [
        (0, 7, "insert", None, '{"n":1}'),
        (1, 7, "insert", None, '{"n":2}'),
        (2, 9, "late", '{"n": 3}', None),
        (3, 10, "insert", None, '{"n":4}'),
        (4, 10, "remove", None, '{"n":1}'),
        (5, 11, "error", "why", "{}"),
        (6, 12, "error", "why not", '{"n": 5}'),
        (7, 13, "insert", None, '{"dev":"two\\nlines"}'),
    ]


def test_the_number_goes_on_from_what_other_rules_have_emitted() -> None:
    writer = RowWriter("typed", PLANS["typed"])
    assert writer.add(rows({"n": 1}, {"n": 2}), 5) == 7
    assert writer.add(rows({"n": 3}), 10) == 11
    columns = writer.write()
    assert columns is not None and columns.number.to_pylist() == [5, 6, 10]


def test_a_value_that_does_not_fit_its_column_is_an_error_and_the_others_are_written() -> None:
    found = written(rows({"n": 2**63 - 1}, {"n": 2**63}, {"n": -(2**63)}, {"n": -(2**63) - 1}, {"n": True}))
    assert [row[2] for row in found] == ["insert", "error", "insert", "error", "error"]
    assert found[1][3:] == ("column 'n' holds '9223372036854775808', the plan says bigint", None)
    assert json.loads(found[0][4]) == {"n": 2**63 - 1} and json.loads(found[2][4]) == {"n": -(2**63)}


def test_a_float_column_takes_integers_of_any_size() -> None:
    assert [json.loads(row[4]) for row in written(rows({"x": 1}, {"x": 2**64}, {"x": 0.5}))] == [
        {"x": 1},
        {"x": 2**64},
        {"x": 0.5},
    ]


@pytest.mark.parametrize("rule", ["typed", "whole"])
def test_a_lone_surrogate_is_escaped(rule: str) -> None:
    bad = {"dev": "a\ud800", "n": 1}
    found = written(rows(bad, {"dev": "ü"}), Emission("typed", 8, "late", [bad]), rule=rule)
    assert [row[2] for row in found] == ["insert", "insert", "late"]
    assert json.loads(found[0][4]) == bad and r"a\ud800" in found[0][4]
    assert json.loads(found[1][4]) == {"dev": "ü"} and json.loads(found[2][3]) == bad


def test_values_of_other_types_are_json_text() -> None:
    found = written(rows({"dev": "a", "all": [1, None]}), rule="listed")
    assert json.loads(found[0][4]) == {"dev": "a", "all": "[1, null]"}


VALUES = st.none() | st.booleans() | st.integers() | st.integers(-5, 5) | st.floats() | st.text(max_size=3)
ROWS = st.dictionaries(st.sampled_from(["dev", "n", "x", "on", "other", "$meta"]), VALUES, max_size=5)


@given(st.lists(ROWS, max_size=6), st.sampled_from(sorted(PLANS)))
def test_rows_written_together_are_those_written_alone(found: list[dict[str, Any]], rule: str) -> None:
    def shown(row: tuple[Any, ...]) -> tuple[Any, ...]:
        columns = PLANS[rule].columns_with_states
        cells = {} if row[4] is None else json.loads(row[4])
        visible = {
            name: value
            for name, value in cells.items()
            if value is not None and (columns is None or name in columns)
        }
        return *row[1:4], visible

    together = written(*(rows(row) for row in found), rule=rule)
    assert [row[0] for row in together] == [*range(len(found))]
    alone = [row for each in found for row in written(rows(each), rule=rule)]
    assert [*map(shown, together)] == [*map(shown, alone)]

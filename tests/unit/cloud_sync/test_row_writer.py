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
from cloud_sync.spark.backfill.slots import columns_of, slots_of
from sql import Emission, Plan

RULES = """
streams:
- "CREATE STREAM plant (dev string, n bigint, x float, on boolean) WITH (DATASOURCE='x')"
- "CREATE STREAM loose () WITH (DATASOURCE='y')"
rules:
- {id: typed, sql: "SELECT dev, n, x, on FROM plant", actions: [{log: {}}]}
- {id: listed, sql: "SELECT dev, collect(n) AS all FROM plant GROUP BY COUNTWINDOW(2)", actions: [{log: {}}]}
- {id: whole, sql: "SELECT * FROM loose", actions: [{log: {}}]}
"""


def plan(rule: str) -> Plan:
    known = compiled([(RULES, "rules.yaml")], "UTC")
    assert known.ok, [problem.render() for problem in known.problems]
    return known.rules[rule].plan


PLANS = {rule: plan(rule) for rule in ("typed", "listed", "whole")}


def written(*emissions: Emission, rule: str = "typed") -> list[tuple[Any, ...]]:
    """Number, instant, kind, reason and values of what a rule emits."""
    writer = RowWriter(PLANS[rule])
    writer.add(emissions, 0)
    columns = {name: column.to_pylist() for name, column in writer.write().items()}
    assert not writer.write()
    slots = slots_of(columns_of(PLANS[rule]))
    return [
        (
            *(columns[name][place] for name in ("number", "at_ms", "kind", "reason")),
            {name: columns[slot][place] for name, slot in slots.items() if columns[slot][place] is not None},
        )
        for place in range(len(columns.get("number", ())))
    ]


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
        (0, 7, "insert", None, {"n": 1}),
        (1, 7, "insert", None, {"n": 2}),
        (2, 9, "late", '{"n": 3}', {}),
        (3, 10, "insert", None, {"n": 4}),
        (4, 10, "remove", None, {"n": 1}),
        (5, 11, "error", "why", {}),
        (6, 12, "error", "why not", {"n": 5}),
        (7, 13, "insert", None, {"dev": "two\nlines"}),
    ]


def test_the_number_goes_on_from_what_other_rules_have_emitted() -> None:
    writer = RowWriter(PLANS["typed"])
    assert writer.add([rows({"n": 1}, {"n": 2})], 5) == 7
    assert writer.add([rows({"n": 3})], 10) == 11
    assert writer.write()["number"].to_pylist() == [5, 6, 10]


@pytest.mark.long
def test_a_value_that_does_not_fit_its_column_is_an_error_and_the_others_are_written() -> None:
    found = written(rows({"n": 2**63 - 1}, {"n": 2**63}, {"n": -(2**63)}, {"n": -(2**63) - 1}, {"n": True}))
    assert [row[2] for row in found] == ["insert", "error", "insert", "error", "error"]
    assert found[1][3:] == ("column 'n' holds '9223372036854775808', the plan says bigint", {})
    assert found[0][4] == {"n": 2**63 - 1} and found[2][4] == {"n": -(2**63)}


def test_a_float_column_takes_integers_of_any_size() -> None:
    found = [row[4] for row in written(rows({"x": 1}, {"x": 2**64}, {"x": 0.5}, {"x": 10**400}))]
    assert found == [{"x": 1.0}, {"x": 2.0**64}, {"x": 0.5}, {}]
    assert {type(value) for row in found for value in row.values()} == {float}


def test_what_is_no_number_is_null() -> None:
    found = written(rows({"x": float("nan")}, {"x": float("-inf")}, {"x": -0.0}))
    assert [str(row[4].get("x")) for row in found] == ["None", "None", "-0.0"]


def test_an_event_that_failed_shows_the_values_that_the_columns_can_hold() -> None:
    found = written(
        Emission("typed", 7, "error", [{"dev": [1, "a"], "n": 1.5, "x": 2, "on": True}], error="why")
    )
    assert found == [(0, 7, "error", "why", {"dev": '[1, "a"]', "x": 2.0, "on": True})]


def test_a_lone_surrogate_is_written() -> None:
    bad = {"dev": "a\ud800", "n": 1}
    emitted = rows(bad, {"dev": "ü"}), Emission("typed", 8, "late", [bad])
    found = written(*emitted)
    assert [row[2] for row in found] == ["insert", "insert", "late"]
    assert found[0][4] == {"dev": "a?", "n": 1} and found[1][4] == {"dev": "ü"}
    assert json.loads(found[2][3]) == bad, "its escape in JSON"
    whole = written(*emitted, rule="whole")
    assert json.loads(whole[0][4]["row"]) == bad and json.loads(whole[2][3]) == bad


def test_values_of_other_types_are_json_text() -> None:
    found = written(rows({"dev": "a", "all": [1, None]}, {"all": None}), rule="listed")
    assert [row[4] for row in found] == [{"dev": "a", "all": "[1, null]"}, {}]


VALUES = st.none() | st.booleans() | st.integers() | st.integers(-5, 5) | st.floats() | st.text(max_size=3)
ROWS = st.dictionaries(st.sampled_from(["dev", "n", "x", "on", "other", "$meta"]), VALUES, max_size=5)


@given(st.lists(ROWS, max_size=6), st.sampled_from(sorted(PLANS)))
def test_rows_written_together_are_those_written_alone(found: list[dict[str, Any]], rule: str) -> None:
    together = written(*(rows(row) for row in found), rule=rule)
    assert [row[0] for row in together] == [*range(len(found))]
    alone = [row for each in found for row in written(rows(each), rule=rule)]
    assert [repr(row[1:]) for row in together] == [repr(row[1:]) for row in alone]

"""Random typed expressions: the compiled rule gives what a walk over the same tree gives, or both fail."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sql import Engine, RuleOptions, plan_rule
from sql.errors import DataError
from tests.conformance.compare import same_value
from tests.reference.expressions import Place, evaluate
from tests.support.streams import catalog_of

STREAM = (
    "CREATE STREAM s (i BIGINT, j BIGINT, f FLOAT, t STRING, u STRING, b BOOLEAN, a ARRAY(BIGINT)) "
    "WITH (DATASOURCE='s', FORMAT='json', STRICT_VALIDATION='false')"
)
ROW = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-3, 3),
        "j": st.none() | st.sampled_from([0, 1, 2**70]),
        "f": st.none() | st.sampled_from([-1.5, 0.0, 0.5, 3.0]),
        "t": st.none() | st.sampled_from(["", "a", "ab", "1.5"]),
        "u": st.none() | st.sampled_from(["a", "B", "%"]),
        "b": st.none() | st.booleans(),
        "a": st.none() | st.lists(st.integers(0, 3), max_size=3),
    }
)


def numbers(depth: int) -> st.SearchStrategy[str]:
    """Texts of expressions that give a number."""
    leaves = st.sampled_from(
        ["i", "j", "f", "0", "2", "-1", "0.5", "length(t)", "cardinality(a)", "a[0]", "a[-1]"]
    )
    if depth == 0:
        return leaves
    inner = numbers(depth - 1)
    return (
        leaves
        | st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%"]), inner).map(
            "({0[0]} {0[1]} {0[2]})".format
        )
        | inner.map("(- {})".format)
        | inner.map("abs({})".format)
        | st.tuples(conditions(depth - 1), inner, inner).map(
            "CASE WHEN {0[0]} THEN {0[1]} ELSE {0[2]} END".format
        )
        | st.tuples(inner, inner).map("coalesce({0[0]}, {0[1]})".format)
    )


def texts(depth: int) -> st.SearchStrategy[str]:
    """Texts of expressions that give a text."""
    leaves = st.sampled_from(["t", "u", "'a'", "''"])
    if depth == 0:
        return leaves
    inner = texts(depth - 1)
    return (
        leaves
        | inner.map("upper({})".format)
        | st.tuples(inner, inner).map("({0[0]} || {0[1]})".format)
        | st.tuples(conditions(depth - 1), inner, inner).map(
            "CASE WHEN {0[0]} THEN {0[1]} ELSE {0[2]} END".format
        )
        | st.tuples(inner, inner).map("coalesce({0[0]}, {0[1]})".format)
    )


def conditions(depth: int) -> st.SearchStrategy[str]:
    """Texts of expressions that are true, false or NULL."""
    if depth == 0:
        return st.sampled_from(["b", "TRUE", "i > 0", "t = 'a'", "f IS NULL", "b IS NOT NULL"])
    number, text, inner = numbers(depth - 1), texts(depth - 1), conditions(depth - 1)
    compare = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    return (
        st.tuples(number, compare, number).map("({0[0]} {0[1]} {0[2]})".format)
        | st.tuples(text, compare, text).map("({0[0]} {0[1]} {0[2]})".format)
        | st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map("({0[0]} {0[1]} {0[2]})".format)
        | inner.map("(NOT {})".format)
        | st.tuples(number, number, number).map("({0[0]} BETWEEN {0[1]} AND {0[2]})".format)
        | st.tuples(number, number, number).map("({0[0]} IN ({0[1]}, {0[2]}))".format)
        | number.map("(i NOT IN (1, {}))".format)
        | text.map("({} LIKE 'a%')".format)
        | number.map("({} IS NULL)".format)
    )


CLAUSES = (
    "SELECT i FROM s WHERE {}",
    "SELECT i, lag(i) AS before FROM s WHERE {}",
    "SELECT i FROM s WHERE NOT NOT {}",
    "SELECT i FROM s WHERE {} GROUP BY COUNTWINDOW(1)",
    "SELECT i FROM s GROUP BY COUNTWINDOW(1) FILTER(WHERE {})",
    "SELECT i FROM s GROUP BY COUNTWINDOW(1) HAVING count(*) = 1 AND {}",
    "select i from s({})",
    "select i from s#length(2) where {}",
    "select i from s#length_batch(1) having count(*) = 1 and {}",
    "select a.i as i from pattern [every a=s({})]",
)
"""Where a condition may stand; `select` is EPL."""

EXPRESSIONS = numbers(3) | texts(3) | conditions(3)


def expected(expression: Any, row: dict[str, Any]) -> Any:
    """The value by the walk, or the word `error`."""
    try:
        return evaluate(expression, Place((row,)))
    except (DataError, OverflowError, ArithmeticError):
        return "error"


@given(EXPRESSIONS, st.lists(ROW, min_size=1, max_size=4))
def test_compiled_expressions_give_what_the_tree_gives(text: str, rows: list[dict[str, Any]]) -> None:
    catalog = catalog_of(STREAM)
    plan = plan_rule(f"SELECT {text} AS r, 1 AS one FROM s", catalog, RuleOptions(rule_id="r"))
    engine = Engine(catalog)
    engine.deploy("r", plan, 0)
    out = engine.push("s", [dict(row) for row in rows], 0)
    values = [
        value
        for emission in out
        for value in (
            ["error"] if emission.kind == "error" else [dict(row).get("r") for row in emission.inserted]
        )
    ]
    wanted = [expected(plan.items[0].value, row) for row in rows]
    assert len(values) == len(wanted)
    for value, want in zip(values, wanted, strict=True):
        assert _same(value, want), (text, rows, values, wanted)


@pytest.mark.parametrize("clause", CLAUSES)
@given(text=conditions(2), rows=st.lists(ROW, min_size=1, max_size=4), nan=st.booleans())
def test_a_condition_lets_through_the_rows_for_which_it_is_true(
    clause: str, text: str, rows: list[dict[str, Any]], nan: bool
) -> None:
    rows = [{**row, "f": math.nan if nan and row["f"] == 3 else row["f"]} for row in rows]
    catalog = catalog_of(STREAM)
    whole = "select {} as r from s#length(1)" if clause.startswith("select") else "SELECT {} AS r FROM s"
    condition = plan_rule(whole.format(text), catalog, RuleOptions()).items[0].value
    wanted = [expected(condition, row) for row in rows]
    assume("error" not in wanted)
    engine = Engine(catalog)
    engine.deploy("r", plan_rule(clause.format(text), catalog, RuleOptions()), 0)
    out = engine.push("s", [dict(row) for row in rows], 0)
    found = [row["i"] for emission in out for row in emission.inserted]
    assert found == [row["i"] for row, value in zip(rows, wanted, strict=True) if value is True], out


def _same(value: Any, want: Any) -> bool:
    if isinstance(value, float) and isinstance(want, float) and not math.isfinite(want):
        return repr(value) == repr(want)
    return type(value) is type(want) and same_value(value, want)

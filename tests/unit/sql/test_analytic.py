"""Analytic functions, worked out by hand from ekuiper.md part 3 and eKuiper's manual page of them."""

from __future__ import annotations

from typing import Any

from tests.unit.sql.kuiper import each, emissions, errors, refusal, rows

MANUAL = [
    {"ts": 1, "temperature": 23, "humidity": 88},
    {"ts": 2, "temperature": 23, "humidity": 88},
    {"ts": 3, "temperature": 23, "humidity": 88},
    {"ts": 4, "temperature": 25, "humidity": 88},
    {"ts": 5, "temperature": 25, "humidity": 90},
    {"ts": 6, "temperature": 25, "humidity": 91},
    {"ts": 7, "temperature": 25, "humidity": 91},
    {"ts": 8, "temperature": 25, "humidity": 91},
]
"""The input of the examples in eKuiper's manual."""


def values(expression: str, *xs: Any, **more: list[Any]) -> list[Any]:
    """The values of an expression over events whose column x is each of `xs`."""
    events = [{"x": x, **{name: column[i] for name, column in more.items()}} for i, x in enumerate(xs)]
    return [row["out"] for row in each(f"SELECT {expression} AS out FROM s", *events)]


def test_lag_looks_back_over_rows() -> None:
    assert values("lag(x)", 1, 2, 3) == [None, 1, 2]
    assert values("lag(x, 2)", 1, 2, 3, 4) == [None, None, 1, 2]
    assert values("lag(x, 2, 0)", 1, 2, 3) == [0, 0, 1]


def test_lag_does_not_remember_null_unless_told_to() -> None:
    assert values("lag(x)", 1, None, 3) == [None, 1, 1]
    assert values("lag(x, 1, 0, false)", 1, None, 3) == [0, 1, None]


def test_lag_when_false_shows_what_is_stored() -> None:
    # The events at which st changes are 1, 4 and 5; between them the value of the last such event stands.
    got = values(
        "lag(x, 1, x, true) OVER (WHEN had_changed(true, st))", 10, 20, 30, 40, 50, st=[1, 1, 1, 2, 3]
    )
    assert got == [10, 10, 10, 10, 40]


def test_lag_that_counts_back_nothing_is_an_error_event() -> None:
    (error,) = errors("SELECT lag(x, abs(0)) AS out FROM s", ("s", 1, {"x": 1}))
    assert "at least 1 row" in error


def test_latest_is_the_newest_value_that_is_there() -> None:
    assert values("latest(x)", None, 1, None, 2) == [None, 1, 1, 2]
    assert values("latest(x, 0)", None, 1, None) == [0, 1, 1]
    assert values("latest(x) OVER (WHEN x < 5)", 1, 9, 3) == [1, 1, 3]


def test_whether_null_is_ignored_is_a_boolean_also_where_no_type_is_declared() -> None:
    for call in ("changed_col(a, x)", "had_changed(a, x)"):
        (error,) = errors(
            f"SELECT {call} AS out FROM s", ("s", 1, {"x": 1, "a": 1}), ("s", 2, {"x": 2, "a": True})
        )
        assert "TRUE or FALSE, not bigint 1" in error


def test_changed_col_is_the_value_that_differs() -> None:
    assert values("changed_col(true, x)", 1, 1, None, 1, 2) == [1, None, None, None, 2]
    # Without ignore_null a NULL is a change of its own, told as NULL; what follows differs from it.
    assert values("changed_col(false, x)", 1, None, 1) == [1, None, 1]
    assert values("changed_col(true, x) OVER (WHEN x > 1)", 1, 2, 2, 3) == [None, 2, None, 3]


def test_had_changed_of_several_values() -> None:
    assert values("had_changed(true, x)", 1, 1, 2, None) == [True, False, True, False]
    assert values("had_changed(false, x)", 1, None, None) == [True, True, False]
    assert values("had_changed(true, x, y)", 1, 1, 1, y=[1, 2, 2]) == [True, True, False]
    assert values("had_changed(true, x) OVER (WHEN x > 1)", 1, 2, 2) == [False, True, False]


def test_had_changed_of_all_columns() -> None:
    wanted = [{"a": 1, "h": True}, {"a": 1, "h": False}, {"a": 1, "h": True}, {"a": 1, "h": False}]
    events = [{"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1}]
    assert each("SELECT a, had_changed(true, *) AS h FROM s", *events) == wanted
    declared = 'CREATE STREAM s (a bigint, b bigint) WITH (DATASOURCE="s");'
    assert each("SELECT a, had_changed(true, *) AS h FROM s", *events, ddl=declared) == wanted
    # A column that is missing is NULL, which counts only where NULLs are not ignored.
    assert [row["h"] for row in each("SELECT had_changed(false, *) AS h FROM s", *events)] == [
        True,
        False,
        True,
        True,
    ]


def test_had_changed_of_all_columns_does_not_look_at_metadata() -> None:
    events = [{"a": 1, "$meta": {"messageid": number}} for number in (1, 2)]
    assert [row["h"] for row in each("SELECT had_changed(true, *) AS h FROM s", *events)] == [True, False]


def test_running_values() -> None:
    assert values("acc_sum(x)", 1, 2, 3) == [1.0, 3.0, 6.0]
    assert values("acc_max(x)", 1, 3, 2) == [1.0, 3.0, 3.0]
    assert values("acc_min(x)", 2, 1, 3) == [2.0, 1.0, 1.0]
    assert values("acc_avg(x)", 1, 2, 3) == [1.0, 1.5, 2.0]
    assert values("acc_count(x)", 1, None, 3) == [1, 1, 2]


def test_running_values_skip_null() -> None:
    assert values("acc_sum(x)", None, 1, None) == [0.0, 1.0, 1.0]
    assert values("acc_max(x)", None, 1, None) == [None, 1.0, 1.0]
    assert values("acc_avg(x)", 4, None, 2) == [4.0, 4.0, 3.0]


def test_running_values_from_begin_to_reset() -> None:
    # Nothing counts before begin; the row that meets reset does; behind it the value is 0.
    got = values("acc_sum(x, b = 1, r = 1)", 1, 2, 3, 4, 5, b=[0, 1, 0, 0, 1], r=[0, 0, 1, 0, 0])
    assert got == [0.0, 2.0, 5.0, 0.0, 5.0]
    assert values("acc_count(x, b = 1, r = 1)", 1, 2, 3, b=[1, 0, 1], r=[0, 1, 1]) == [1, 2, 1]


def test_running_values_keep_still_when_false() -> None:
    assert values("acc_sum(x) OVER (WHEN x > 1)", 1, 2, 1, 3) == [0.0, 2.0, 2.0, 5.0]


def test_each_partition_has_its_own_state() -> None:
    assert values("lag(x) OVER (PARTITION BY k)", 1, 2, 3, 4, k=["a", "b", "a", "b"]) == [None, None, 1, 2]
    # 1 and "1" are two keys, NULL is one.
    assert values("acc_count(x) OVER (PARTITION BY k)", 1, 1, 1, 1, k=[1, "1", None, None]) == [1, 1, 1, 2]
    got = values("acc_sum(x) OVER (PARTITION BY k WHEN x > 1)", 1, 2, 3, 4, k=["a", "a", "b", "a"])
    assert got == [0.0, 2.0, 3.0, 6.0]


def test_they_see_rows_that_where_drops() -> None:
    sql = "SELECT ts, lag(temperature) AS before FROM s WHERE temperature > 23"
    assert each(sql, *MANUAL[:5]) == [{"ts": 4, "before": 23}, {"ts": 5, "before": 25}]


def test_they_stand_in_where() -> None:
    sql = "SELECT ts FROM s WHERE had_changed(true, temperature, humidity) = true"
    assert [row["ts"] for row in each(sql, *MANUAL)] == [1, 4, 5, 6]
    sql = (
        "SELECT ts FROM s WHERE had_changed(true, temperature) = true AND had_changed(true, humidity) = false"
    )
    assert [row["ts"] for row in each(sql, *MANUAL)] == [4]
    assert [
        row["ts"] for row in each("SELECT ts FROM s WHERE changed_col(true, temperature) > 24", *MANUAL)
    ] == [4]


def test_they_stand_in_expressions_and_in_each_other() -> None:
    assert values("x - lag(x, 1, x)", 1, 4, 9) == [0, 3, 5]
    assert values("lag(lag(x))", 1, 2, 3, 4) == [None, None, 1, 2]
    assert values("acc_max(x - latest(x - 1))", 5, 7) == [1.0, 1.0]


def test_an_alias_of_one_is_the_same_state() -> None:
    assert each("SELECT lag(x) AS before, x - before AS step FROM s", {"x": 1}, {"x": 5}) == [
        {"before": None, "step": None},
        {"before": 1, "step": 4},
    ]


def test_aggregates_take_them() -> None:
    # Steps of x are 2, 3, 4 from the second event on; the first has none.
    sql = "SELECT sum(x - lag(x)) AS steps, count(lag(x)) AS n FROM s GROUP BY COUNTWINDOW(4)"
    assert rows(sql, ("s", 1, *({"x": x} for x in (1, 3, 6, 10)))) == [[{"steps": 9, "n": 3}]]


def test_they_run_before_filter_and_the_window() -> None:
    sql = "SELECT x, lag(x) AS before FROM s GROUP BY COUNTWINDOW(2) FILTER(WHERE x > 1)"
    assert rows(sql, ("s", 1, *({"x": x} for x in (1, 2, 1, 4)))) == [
        [{"x": 2, "before": 1}, {"x": 4, "before": 1}]
    ]
    sql = "SELECT count(*) AS n FROM s GROUP BY STATEWINDOW(had_changed(true, x))"
    assert rows(sql, ("s", 1, *({"x": x} for x in (1, 1, 2, 2, 2, 3)))) == [[{"n": 2}], [{"n": 3}]]


def test_a_row_that_cannot_be_evaluated_does_not_stop_the_rest() -> None:
    found = emissions("SELECT acc_sum(x) AS out FROM s", ("s", 1, {"x": 1}, {"x": "no"}, {"x": 2}))
    assert [item.inserted for item in found if item.kind == "rows"] == [[{"out": 1.0}], [{"out": 3.0}]]
    assert [item.inserted for item in found if item.kind == "error"] == [[{"x": "no"}]]


def test_what_has_no_meaning_is_refused_with_its_place() -> None:
    assert refusal('SELECT lag(x, "a") AS p FROM s')[:2] == ("B301", '"a"')
    assert refusal("SELECT lag(*) AS p FROM s")[:2] == ("B331", "*")
    assert refusal("SELECT lag(x, -1) AS p FROM s")[:2] == ("B307", "-1")
    assert refusal("SELECT acc_sum(x, x > 1) AS p FROM s")[:2] == ("B310", "acc_sum(x, x > 1)")
    assert refusal("SELECT acc_sum(x, 1, 2 > 1) AS p FROM s")[:2] == ("B301", "1")
    assert refusal("SELECT lag() AS p FROM s")[:2] == ("B310", "lag()")
    assert refusal("SELECT lag(x) OVER (ORDER BY x) AS p FROM s")[0] == "B316"
    assert refusal("SELECT abs(x) OVER (PARTITION BY k) AS p FROM s")[0] == "B316"

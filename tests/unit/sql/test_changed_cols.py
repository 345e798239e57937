"""`changed_cols`: the columns that differ from the row emitted before."""

from __future__ import annotations

from typing import Any

from tests.unit.sql.kuiper import each, refusal, rows


def test_changed_cols_shows_what_differs_from_the_output_before() -> None:
    sql = 'SELECT changed_cols("c_", true, t, h) FROM s'
    events: list[dict[str, Any]] = [
        {"t": 23, "h": 88},
        {"t": 23, "h": 88},
        {"t": 25, "h": 88},
        {"t": 25, "h": None},
        {"t": 26, "h": 90},
    ]
    assert each(sql, *events) == [{"c_t": 23, "c_h": 88}, {"c_t": 25}, {"c_t": 26, "c_h": 90}]
    assert each('SELECT changed_cols("", false, *) FROM s', *events) == [
        {"t": 23, "h": 88},
        {"t": 25},
        {"h": None},
        {"t": 26, "h": 90},
    ]
    # Beside other columns each row is given out.
    assert each('SELECT k, changed_cols("", true, t) FROM s', {"k": 1, "t": 5}, {"k": 2, "t": 5}) == [
        {"k": 1, "t": 5},
        {"k": 2},
    ]


def test_changed_cols_leaves_out_and_replaces_columns_of_a_star() -> None:
    events: list[dict[str, Any]] = [{"t": 23, "h": 88}, {"t": 25, "h": 88}, {"t": 26, "h": 90}]
    assert each('SELECT changed_cols("c_", true, * EXCEPT(t)) FROM s', *events) == [{"c_h": 88}, {"c_h": 90}]
    assert each('SELECT changed_cols("", true, * REPLACE(t > 24 AS t)) FROM s', *events) == [
        {"t": False, "h": 88},
        {"t": True},
        {"h": 90},
    ]
    declared = 'CREATE STREAM s (t bigint) WITH (DATASOURCE="s");'
    assert refusal('SELECT changed_cols("", true, * EXCEPT(x)) FROM s', ddl=declared)[0] == "B201"


def test_changed_cols_compares_windows_with_the_window_before() -> None:
    sql = 'SELECT changed_cols("t", true, avg(temperature)) FROM s GROUP BY COUNTWINDOW(2)'
    events = ({"temperature": t} for t in (23, 23, 23, 25, 25, 25, 25, 25))
    assert rows(sql, ("s", 1, *events)) == [[{"tavg": 23.0}], [{"tavg": 24.0}], [{"tavg": 25.0}]]


def test_changed_cols_does_not_see_rows_that_where_drops() -> None:
    sql = 'SELECT changed_cols("", true, v) FROM s WHERE ok'
    assert each(sql, {"v": 1, "ok": True}, {"v": 2, "ok": False}, {"v": 1, "ok": True}) == [{"v": 1}]

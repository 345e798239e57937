"""What can never work in a statement of eKuiper is refused at its place."""

from __future__ import annotations

import pytest

from sql import SqlError, plan_rule
from sql.binder.calls.call_binder import known_names
from sql.functions.refused import NAMED_OTHERWISE
from tests.support.streams import catalog_of
from tests.unit.sql.kuiper import S, each, errors, refusal


@pytest.mark.parametrize(
    ("expression", "place", "message"),
    [
        ("array_create(1, 2)['k']", "'k'", "the index of an array is a whole number, not string"),
        ("array_create(1)['k':]", "'k'", "a bound of a slice is a whole number, not string"),
        ("upper(a)[0]", "upper(a)", "an index reads an array, not string"),
        ("upper(a)[0:1]", "upper(a)", "a slice is cut out of an array, not string"),
        ("parse_json(a)[0] + object_construct('k', 1)[0]", "0", "the key of an object is text, not bigint"),
    ],
)
def test_an_index_that_can_never_work_is_refused(expression: str, place: str, message: str) -> None:
    code, found, text = refusal(f"SELECT {expression} AS x FROM s")
    assert (code, found, text) == ("B301", place, message)


@pytest.mark.parametrize("limit", ["LIMIT a", "LIMIT 1 + a", "LIMIT 1.5"])
def test_a_limit_is_a_whole_number(limit: str) -> None:
    code, place, message = refusal(f"SELECT a FROM s GROUP BY COUNTWINDOW(2) {limit}")
    assert (code, place, message) == ("B304", limit.removeprefix("LIMIT "), "LIMIT takes a whole number")


def test_a_sign_and_its_equals_may_stand_apart() -> None:
    sql = "SELECT a FROM s WHERE a > = 1 AND a < = 3 AND a !  = 2"
    assert each(sql, *({"a": a} for a in range(5))) == [{"a": 1}, {"a": 3}]


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        ("now(9)", "9"),
        ("cur_time(-1)", "-1"),
        ("hex2dec('zz')", "'zz'"),
        ("element_at(a, 1.5)", "1.5"),
        ("erase(a, 1)", "1"),
        ("object_pick(a, true)", "true"),
        ("cast(a, 'datetime') > 'yesterday'", "'yesterday'"),
    ],
)
def test_a_constant_that_can_never_work_is_refused(expression: str, place: str) -> None:
    assert refusal(f"SELECT {expression} AS x FROM s")[:2] == ("B307", place)


def test_all_metadata_has_no_exception() -> None:
    assert refusal("SELECT meta(* EXCEPT(topic)) AS m FROM s")[:2] == ("B321", "* EXCEPT(topic)")


DATES = 'CREATE STREAM s (t DATETIME, x STRING, n BIGINT) WITH (DATASOURCE="s");'


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("t > '2024-01-31 12:00:00'", [1, 2]),
        ("'2024-01-31 12:00:00' < t", [1, 2]),
        ("t = '2024-02-29'", [1, 2]),
        ("t >= 1709164800000", [1, 2]),
        ("t BETWEEN '2023-01-01' AND '2023-12-31'", [3]),
        ("t IN ('2024-02-29T00:00:00Z')", [1, 2]),
        ("t NOT IN ('2024-02-29T00:00:00Z')", [3]),
        ("t > x", [1, 3]),
        ("cast(x, 'datetime') < '2024-06-01'", [1, 3]),
        ("CASE t WHEN '2024-02-29' THEN true ELSE false END", [1, 2]),
    ],
)
def test_a_datetime_compares_as_an_instant(condition: str, kept: list[int]) -> None:
    events = (
        {"n": 1, "t": "2024-02-29", "x": "2024-01-01"},
        {"n": 2, "t": 1709164800000, "x": "2025-01-01"},
        {"n": 3, "t": "2023-01-01T00:00:00Z", "x": "2022-01-01"},
    )
    assert [row["n"] for row in each(f"SELECT n FROM s WHERE {condition}", *events, ddl=DATES)] == kept


@pytest.mark.parametrize("expr", ["a[i]", "a[i:]", "a[:i]", "element_at(a, i)", "round(1.25, i)"])
def test_a_float_that_is_not_whole_is_no_integer(expr: str) -> None:
    (error,) = errors(f"SELECT {expr} AS x FROM s", ("s", 1, {"a": [1, 2], "i": 1.5}))
    assert "1.5" in error


@pytest.mark.parametrize("name", NAMED_OTHERWISE)
def test_a_function_of_another_engine_is_named_as_it_is_called_here(name: str) -> None:
    with pytest.raises(SqlError) as refused:
        plan_rule(f"SELECT {name}(a) AS x FROM s", catalog_of(S))
    assert refused.value.problems[0].hint == f"write {NAMED_OTHERWISE[name]}(…)"
    assert NAMED_OTHERWISE[name] in known_names()


def test_an_event_without_its_time_stamp_is_told_in_words_of_sql() -> None:
    ddl = 'CREATE STREAM s () WITH (DATASOURCE="s", TIMESTAMP="ts");'
    sql = "SELECT count(*) AS c FROM s GROUP BY TUMBLINGWINDOW(ss, 1)"
    reason = "the timestamp column 'ts' is missing or NULL"
    assert errors(sql, ("s", 1, {"a": 1}), ("s", 2, {"ts": None}), ddl=ddl) == [reason, reason]

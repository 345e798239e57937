"""An event that cannot be evaluated is one error, stands in no row, and leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest

from sql import Engine, run_script
from tests.support.streams import engine_of


def free(text: str) -> Engine:
    """An engine with a rule over a stream whose columns are not declared."""
    return engine_of('CREATE STREAM m () WITH (DATASOURCE="m")', text)


def test_without_a_window_it_is_not_kept() -> None:
    engine = free("select dev, sum(v) as s from m group by dev")
    found = engine.push("m", [{"dev": "a", "v": v} for v in (1.0, *["x"] * 50)], 0)
    assert [emission.kind for emission in found].count("error") == 50
    assert engine.counters("r")["retained"] == 1, "the first event of the group, and no other"


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("v > 1", "'>' cannot compare string with bigint"),
        ("v + 1", "arithmetic takes numbers, not string"),
        ("v - 1", "'-' takes numbers, not string and bigint"),
        ("-v", "'-' takes a number, not string"),
        ("v * dev", "arithmetic takes numbers, not string"),
        ("v * 3000000000000000", "arithmetic takes numbers, not string"),
        ("dev * 3000000000000000 * v", "arithmetic takes numbers, not string"),
        ("list * 3000000000000000", "arithmetic takes numbers, not array"),
        ("list + list", "arithmetic takes numbers, not array"),
        ("row | row", "'|' takes numbers, not struct"),
        ("exp(dev * 1000)", "a result is outside the range of floats, or of dates"),
        ("from_days(dev * 1000000000000)", "a result is outside the range of floats, or of dates"),
    ],
)
def test_reasons_are_in_words_of_sql(expression: str, reason: str) -> None:
    engine = free(f"SELECT {expression} AS w FROM m")
    (error,) = engine.push("m", [{"v": "x", "dev": 2, "list": [1], "row": {"a": 1}}], 0)
    assert error.error == f"1:8: cannot evaluate {expression}: {reason}"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("flag + 1", 2),
        ("-flag", -1),
        ("flag > 0", True),
        ("flag = 1", None),
        ("flag IN (1)", None),
        ("abs(flag)", None),
    ],
)
def test_booleans_in_place_of_numbers_are_as_the_manual_says(expression: str, value: Any) -> None:
    """`docs/semantics.md`, Numbers: operators take an undeclared TRUE as 1; the others
    refuse it, here as None."""
    engine = free(f"SELECT {expression} AS x FROM m")
    (found,) = engine.push("m", [{"flag": True}], 0)
    assert found.inserted == ([{"flag": True}] if value is None else [{"x": value}])
    assert (found.kind == "error") is (value is None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "select exists (select * from m(v > 1)#length(3) as q where q.dev = e.dev) as x from m as e",
            "1:32: cannot evaluate v > 1: '>' cannot compare string with bigint",
        ),
        (
            "select b from pattern [every a=m(dev = 1) -> [a.v:] b=m until c=m(dev = 3)]",
            "1:47: cannot evaluate a.v: a number of matches is a whole number, not string 'x'",
        ),
        (
            "select sum(v) as s from m group by dev, TUMBLINGWINDOW(ss, 1)",
            "1:12: cannot evaluate v: sum takes numbers, not string 'x'",
        ),
        (
            "select correlation from m#correl(v, dev)",
            "1:26: cannot evaluate #correl(v, dev): correl takes numbers, not string 'x'",
        ),
        (
            "select dev from m#expr(sum(v) < 9)",
            "1:24: cannot evaluate sum(v) < 9: sum takes numbers, not string 'x'",
        ),
        (
            "select a from pattern [every a=m -> timer:interval(a.v sec)]",
            "1:52: cannot evaluate a.v sec: 'x' seconds is no length of time",
        ),
        (
            "select dev from m#timetolive(v - 1)",
            "1:30: cannot evaluate v - 1: '-' takes numbers, not string and bigint",
        ),
    ],
)
def test_reasons_have_a_place_also_inside_a_statement(text: str, reason: str) -> None:
    errors = [found.error for found in free(text).push("m", [{"v": "x", "dev": 1}], 0) if found.error]
    assert errors == [reason]


def test_an_error_in_a_parameter_of_a_named_window_names_the_window() -> None:
    engine = free("select v from m where v is null")
    run_script(engine, "create window Kept#sort(3, v - 1) as (v int); insert into Kept select v from m", 0)
    (error,) = [found.error for found in engine.push("m", [{"v": "x"}], 0) if found.error]
    reason = "'-' takes numbers, not string and bigint"
    assert error == f"named window 'Kept': 1:28: cannot evaluate v - 1: {reason}"


@pytest.mark.parametrize("action", ["delete from Kept where k = e.dev", "update Kept set k = 'y'"])
def test_an_error_in_the_filter_of_a_trigger_has_a_place(action: str) -> None:
    engine = free("select v from m where v is null")
    run_script(engine, f"create window Kept#keepall as (k string); on m(v > 1) as e {action}", 0)
    (error,) = [found.error for found in engine.push("m", [{"v": "x"}], 0) if found.error]
    assert error.endswith("cannot evaluate v > 1: '>' cannot compare string with bigint")
    assert error.startswith("1:48: ")


@pytest.mark.parametrize("condition", ["a.v > b.v + 1", "a.v between b.v + 1 and 9"])
@pytest.mark.parametrize("join", ["a join m#lastevent as b on", "a left join m#lastevent as b on"])
def test_an_error_in_the_bound_of_a_join_has_a_place(join: str, condition: str) -> None:
    engine = free("select v from m where v is null")
    run_script(engine, f"create schema n(v int); select a.v as v from n#keepall as {join} {condition}", 0)
    engine.push("n", [{"v": 5}], 0)
    (error,) = [found.error for found in engine.push("m", [{"v": {"w": 1}}], 0) if found.error]
    assert error.endswith("cannot evaluate b.v + 1: '+' takes numbers, not struct and bigint")

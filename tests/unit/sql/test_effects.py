"""What has no effect, and what cannot be evaluated where it stands, is told before a rule runs."""

from __future__ import annotations

import pytest

from sql import Catalog, Engine, SqlError, plan_rule, run_script
from tests.support.streams import catalog_of

STREAM = 'CREATE STREAM m (dev STRING, v FLOAT, a ARRAY(FLOAT)) WITH (DATASOURCE="m")'


def catalog() -> Catalog:
    return catalog_of(STREAM)


ERRORS = [
    ("SELECT DISTINCT v FROM m", "B607", "SELECT DISTINCT v FROM m"),
    ("SELECT v FROM m unidirectional", "B608", "m unidirectional"),
    ("SELECT v FROM m#length(3) OUTPUT WHEN v > 5", "B529", "v > 5"),
    ("SELECT v FROM m#length(3) OUTPUT EVERY 0 EVENTS", "B504", "0"),
    ("SELECT v FROM m#time(-1 sec)", "B506", "-1 sec"),
    ("SELECT v FROM m#time(101 years)", "B506", "101 years"),
    ("SELECT v FROM m#time_batch(9999999 days)", "B506", "9999999 days"),
    ("SELECT count(*) FROM m GROUP BY TUMBLINGWINDOW(dd, 40000)", "B504", "40000"),
    ("SELECT count(*) FROM m GROUP BY HOPPINGWINDOW(dd, 3, 40000)", "B504", "40000"),
    ("SELECT sum(v) OVER (PARTITION BY dev) AS s FROM m", "B316", "OVER (PARTITION BY dev)"),
    ("SELECT v FROM m WHERE regexp_matches(dev, '(')", "B307", "'('"),
    ("SELECT v FROM m WHERE regexp_matches(dev, concat('(', 'a'))", "B307", "concat('(', 'a')"),
    ("SELECT v FROM m WHERE dev REGEXP '['", "B307", "'['"),
    ("SELECT v FROM m WHERE dev REGEXP '[' || upper('a')", "B307", "'[' || upper('a')"),
]

WARNINGS = [
    ("SELECT v FROM m ORDER BY v", "B704"),
    ("SELECT v FROM m LIMIT 3", "B704"),
    ("SELECT istream v FROM m ORDER BY v", "B704"),
    ("SELECT rstream v FROM m", "B705"),
    ("insert into m select v from m", "B707"),
    ("SELECT dev, max(v) AS top FROM m GROUP BY TUMBLINGWINDOW(ss, 10)", "B719"),
    ("SELECT v + 1 AS w, count(*) AS n FROM m GROUP BY dev, COUNTWINDOW(3)", "B719"),
    ("@Foo SELECT v FROM m", "B706"),
    ("@Hint('reclaim_group_freq=3') SELECT v FROM m#groupwin(dev)#length(2)", "B706"),
    ("@Hint('reclaim_grp_aged=3') SELECT v FROM m#groupwin(dev)#length(2)", "B706"),
]

SILENT = [
    "SELECT v FROM m LIMIT 0",
    "SELECT unnest(a) FROM m LIMIT 2",
    "SELECT v FROM m#length(3) OUTPUT AFTER 0 EVENTS ORDER BY v LIMIT 1",
    "SELECT v FROM m#length_batch(3) ORDER BY v LIMIT 1",
    "SELECT DISTINCT v FROM m GROUP BY COUNTWINDOW(3)",
    "SELECT dev, max(v) AS top FROM m GROUP BY dev, TUMBLINGWINDOW(ss, 10)",
    "SELECT dev, max(v) AS top FROM m GROUP BY COUNTWINDOW(3) OVER (PARTITION BY dev)",
    "SELECT v, last_value(v, true) AS w FROM m GROUP BY v, COUNTWINDOW(3)",
    "SELECT v FROM m GROUP BY COUNTWINDOW(3) HAVING count(*) > 2",
    "SELECT v FROM m WHERE regexp_matches(dev, concat('(', 'a)'))",
    "SELECT v FROM m WHERE regexp_matches(dev, concat('(', dev))",
    "SELECT v FROM m WHERE regexp_matches(dev, concat('(', NULL, repeat('a', -1)))",
    "@Hint('reclaim_group_aged=3') @Hint('reclaim_group_freq=1') SELECT v FROM m#groupwin(dev)#length(2)",
    "@Name('x') @Hint('reclaim_group_aged=3,reclaim_group_freq=1') SELECT v FROM m#groupwin(dev)#length(2)",
]


@pytest.mark.parametrize(("text", "code", "marked"), ERRORS)
def test_errors_mark_what_is_in_vain(text: str, code: str, marked: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule(text, catalog())
    (problem,) = caught.value.problems
    assert (problem.code, text[problem.span.start : problem.span.end]) == (code, marked)


@pytest.mark.parametrize(("text", "code"), WARNINGS)
def test_what_epl_allows_is_a_warning(text: str, code: str) -> None:
    assert [problem.code for problem in plan_rule(text, catalog()).warnings] == [code]


@pytest.mark.parametrize("text", SILENT)
def test_what_has_an_effect_is_not_told(text: str) -> None:
    assert plan_rule(text, catalog()).warnings == ()


@pytest.mark.parametrize(
    ("window", "hint"),
    [
        ("TUMBLINGWINDOW(sec, 10)", "write SS"),
        ("HOPPINGWINDOW(minutes, 10, 1)", "write MI"),
        ("TUMBLINGWINDOW(10, ss)", "the unit stands first: TUMBLINGWINDOW(ss, 10)"),
    ],
)
def test_a_unit_that_was_meant_is_named(window: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule(f"SELECT avg(v) FROM m GROUP BY {window}", catalog())
    assert caught.value.problems[0].hint == hint


def test_a_misspelt_window_is_guessed() -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule("SELECT avg(v) FROM m GROUP BY TUMBLINGWINDW(ss, 1)", catalog())
    assert caught.value.problems[0].hint == "did you mean 'tumblingwindow'?"


def test_the_alias_of_an_unknown_column_is_no_hint() -> None:
    with pytest.raises(SqlError) as caught:
        plan_rule("select sum(vv) as vv from m#keepall", catalog())
    assert caught.value.problems[0].hint == "did you mean 'v'?"


def test_a_stream_query_feeds_the_next() -> None:
    streams = catalog()
    engine = Engine(streams)
    engine.deploy(
        "pairs", plan_rule("insert into Means from x in m retain 2 select avg(x.v) as mean", streams), 0
    )
    engine.deploy("tops", plan_rule("from y in Means retain 2 select max(y.mean) as top", streams), 0)
    tops = []
    for at, value in enumerate((10.0, 20.0, 0.0, 2.0), start=1):
        tops += [row for e in engine.push("m", [{"v": value}], at) if e.rule == "tops" for row in e.inserted]
    # Means of the last two: 10, 15, 10, 1. The greatest of the last two of them: 10, 15, 15, 10.
    assert [row["top"] for row in tops] == [10.0, 15.0, 15.0, 10.0]


def test_an_answer_to_an_event_has_no_remove_stream() -> None:
    engine = Engine(catalog())
    run_script(engine, "create window W#keepall as (v double)", 0)
    (warning,) = plan_rule("on m as e select irstream w.v as v from W as w", engine.catalog).warnings
    assert warning.code == "B705"
    with pytest.raises(SqlError) as caught:
        plan_rule("on m as e select rstream w.v as v from W as w", engine.catalog)
    assert [problem.code for problem in caught.value.problems] == ["B604"]

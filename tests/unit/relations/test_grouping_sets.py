"""Where `rollup`, `cube` and `grouping sets` may stand, and what beside them."""

from __future__ import annotations

import pytest

from sql import Catalog, Engine, RuleOptions, SqlError, plan_rule, run_script
from sql.explain.probes import probes
from tests.support.streams import catalog_of

KEYS = "abcdefghi"
COLUMNS = ", ".join(f"{name} int" for name in KEYS)


def run(text: str) -> None:
    engine = Engine(Catalog())
    run_script(engine, f"create schema E({COLUMNS}); create schema F(a int)", 0)
    run_script(engine, text, 0)


def sets_of(group_by: str) -> list[str]:
    """The grouping sets, each as the names of its keys."""
    catalog = catalog_of(f"create schema E({COLUMNS})")
    plan = plan_rule(f"select count(*) as n from E group by {group_by}", catalog, RuleOptions())
    names = [getattr(key, "column", "?") for key in plan.group_by]
    return ["".join(names[place] for place in chosen) for chosen in plan.grouping_sets]


@pytest.mark.parametrize(
    ("group_by", "sets"),
    [
        ("a, b", []),
        ("rollup(a, b)", ["ab", "a", ""]),
        ("rollup((a, b), c)", ["abc", "ab", ""]),
        ("cube(a, b)", ["ab", "a", "b", ""]),
        ("grouping sets(b, (), (a, b))", ["b", "", "ba"]),
        ("grouping sets(rollup(a, b), c)", ["ab", "a", "", "c"]),
        ("a, rollup(b, c)", ["abc", "ab", "a"]),
        ("rollup(a), rollup(b)", ["ab", "a", "b", ""]),
        ("rollup(a), cube(a)", ["a", ""]),
        ("grouping sets(a, b), b", ["ab", "b"]),
    ],
)
def test_the_sets_of_a_clause(group_by: str, sets: list[str]) -> None:
    assert sets_of(group_by) == sets


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("select count(*) from E group by cube(a, b, c, d, e, f, g, h, i)", "more than 256", "cube"),
        ("select count(*) from E group by grouping sets(a, b, a)", "have the same keys", "grouping"),
        ("select count(*) from E group by rollup(a, a)", "have the same keys", "rollup"),
        ("select count(*) from E group by grouping sets(())", "no grouping set has a key", "grouping"),
        ("select count(*) from E group by grouping sets()", "no grouping set has a key", "grouping"),
        ("select a, b, count(*) from E group by rollup(a)", "neither", "b,"),
        ("select *, count(*) from E group by rollup(a)", "neither", "*,"),
        ("select a, count(*) from E group by rollup(a) having c > 1", "neither", "c > 1"),
        ("select a, count(*) from E#keepall group by rollup(a) order by c", "neither", "c"),
        ("select count(*, group_by:b) from E group by rollup(a)", "no keys of its own", "count"),
        ("select grouping(b) from E group by rollup(a)", "takes keys", "b)"),
        ("select grouping_id(a, a) from E group by rollup(a)", "takes keys", "a)"),
        ("select grouping(a) from E group by a", "beside rollup", "grouping"),
        ("select a from E where grouping(a) = 1 group by rollup(a)", "beside rollup", "grouping"),
        ("select sum(grouping(a)) from E group by rollup(a)", "beside rollup", "grouping"),
        ("select a, count(*) from E group by rollup(a), TUMBLINGWINDOW(ss, 1)", "windows of EPL", "rollup"),
        ("from x in E retain 2 group by rollup(x.a) select count(*)", "windows of EPL", "rollup"),
    ],
)
def test_what_is_refused(text: str, message: str, at: str) -> None:
    with pytest.raises(SqlError, match=rf"B545 .*{message}") as caught:
        run(text)
    problem = next(problem for problem in caught.value.problems if problem.code == "B545")
    assert text[problem.span.start :].startswith(at)


def test_a_column_may_be_called_rollup() -> None:
    text = "select rollup, grouping, count(*) from G group by rollup, grouping"
    run(f"create schema G(rollup int, grouping int); {text}")


def test_questions_and_subqueries_have_rows_of_each_set() -> None:
    engine = Engine(Catalog())
    run_script(engine, "create schema E(k string, n int); create schema Q(k string)", 0)
    run_script(engine, "create window W#keepall as (k string, n int); insert into W select k, n from E", 0)
    query = "select k, sum(n) as s, grouping(k) as g from W group by rollup(k)"
    run_script(engine, f"@name('asked') select ({query}) as rows from Q", 0)
    for number, key in enumerate("aba", 1):
        engine.push("E", [{"k": key, "n": number}], 0)
    rows = [{"k": "a", "s": 4, "g": 0}, {"k": "b", "s": 2, "g": 0}, {"k": None, "s": 6, "g": 1}]
    assert engine.query(query, 0).rows == rows
    asked = [out for out in engine.push("Q", [{"k": "a"}], 0) if out.rule == "asked"]
    assert [out.inserted for out in asked] == [[{"rows": rows}]]


def test_the_probe_of_having_shows_null_for_a_key_that_is_rolled_up() -> None:
    catalog = catalog_of("create schema E(k string, n int)")
    plan = plan_rule("select k from E group by rollup(k) having sum(n) > 1", catalog, RuleOptions())
    probe = next(probe for probe in probes(plan) if probe.stage == "samples")
    engine = Engine(catalog)
    engine.deploy("probe", probe.plan, 0)
    (shown,) = engine.push("E", [{"k": "a", "n": 2}], 0)
    assert [(row["k0"], row["c0"]) for row in shown.inserted] == [("a", True), (None, True)]

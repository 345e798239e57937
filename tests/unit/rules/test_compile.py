"""From files to plans: the engine's problems at their place in the file, whatever style
the SQL is written in."""

from __future__ import annotations

import pytest

from rules.compile import compile_rules
from rules.compiled import Compiled
from rules.loader import load_text, unite
from rules.problems import render_all

STREAM = "streams: ['CREATE STREAM s (dev string, temp float, ts bigint) WITH (DATASOURCE=\"x\")']\n"
BARE = "streams: [\"CREATE STREAM s () WITH (DATASOURCE='x')\"]\n"


def compiled(*texts: str) -> Compiled:
    return compile_rules(unite(load_text(text, f"{number}.yaml") for number, text in enumerate(texts)))


def failed_paths(result: Compiled) -> set[str]:
    return {problem.path for problem in result.problems if problem.is_error}


def short(result: Compiled) -> list[str]:
    return [
        f"{problem.path}:{problem.line}:{problem.column}: {problem.code[0]}" for problem in result.problems
    ]


def test_a_right_file_compiles() -> None:
    result = compiled(STREAM + "rules: [{id: a, sql: SELECT dev FROM s, actions: [{log: {}}]}]\n")
    assert (result.ok, result.problems, list(result.rules)) == (True, [], ["a"])
    rule = result.rules["a"]
    assert (rule.plan.streams, rule.path, rule.actions[0].sink) == (("s",), "0.yaml", "log")


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        ("sql: SELECT tmp FROM s\n", 4, 17),
        ("sql: 'SELECT ''x'' AS x, tmp FROM s'\n", 4, 30),
        ('sql: "SELECT \\"x\\" AS x,\\n tmp FROM s"\n', 4, 32),
        ("sql: |\n      SELECT dev,\n        tmp\n      FROM s\n", 6, 9),
        ("sql: >-\n      SELECT dev,\n      tmp\n      FROM s\n", 6, 7),
        ("sql: SELECT dev,\n      tmp FROM s\n", 5, 7),
    ],
)
def test_an_unknown_column_is_found_in_the_file(sql: str, line: int, column: int) -> None:
    result = compiled(STREAM + "rules:\n  - id: a\n    " + sql + "    actions: [{log: {}}]\n")
    (problem,) = result.problems
    assert (problem.line, problem.column) == (line, column), problem.render()
    assert problem.length == len("tmp")
    assert problem.hint == "did you mean 'temp'?"
    shown = problem.render().split("\n")
    assert shown[1][shown[2].index("^") :][:3] == "tmp"
    assert result.rules == {}


def test_yaml_model_and_sql_problems_show_together() -> None:
    """A misspelt option hides neither the unknown column nor what is wrong with the next rule."""
    result = compiled(
        STREAM
        + """\
rules:
  - id: a
    sql: SELECT tmp FROM s
    options: {lateTolerence: 5s}
    actions: [{lgo: {}}]
  - id: b
    sql: SELEC dev FROM s
  - id: c
    sql: SELECT dev FROM t
    id: d
"""
    )
    assert short(result) == [
        "0.yaml:4:17: B",
        "0.yaml:5:15: R",
        "0.yaml:6:16: R",
        "0.yaml:8:10: P",
        "0.yaml:10:26: B",
        "0.yaml:11:5: R",
    ], render_all(result.problems)
    assert failed_paths(result) == {"0.yaml"}


def test_a_broken_stream_is_not_blamed_on_its_rules() -> None:
    result = compiled(
        "streams:\n"
        "  - {name: s, topic: x, columns: {temp: float}}\n"
        "  - {name: t, datasource: y, columns: {temp: flot}}\n",
        "rules:\n"
        "  a: {sql: SELECT temp FROM s, actions: [{log: {}}]}\n"
        "  b: {sql: SELECT tmp FROM t, actions: [{log: {}}]}\n",
    )
    assert short(result) == ["0.yaml:2:15: R", "0.yaml:3:46: B"], render_all(result.problems)
    assert failed_paths(result) == {"0.yaml"}


def test_problems_of_a_stream_text_have_their_place() -> None:
    result = compiled(
        "streams:\n  - |\n    CREATE STREAM s (\n      temp flot\n    ) WITH (DATASOURCE='x', "
        "TIMESTMP='ts')\n"
    )
    assert short(result) == ["0.yaml:4:12: B", "0.yaml:5:29: B"], render_all(result.problems)
    assert [problem.hint for problem in result.problems] == [
        "did you mean 'float'?",
        "did you mean 'TIMESTAMP'?",
    ]


def test_a_rule_reads_what_another_inserts_wherever_it_stands() -> None:
    result = compiled(
        "rules:\n  reader: {sql: SELECT dev FROM hot, actions: [{log: {}}]}\n",
        STREAM + "rules:\n  writer: {sql: insert into hot select dev from s}\n",
    )
    assert result.problems == [], render_all(result.problems)
    assert set(result.rules) == {"reader", "writer"}


def test_a_rule_without_actions_is_an_error() -> None:
    result = compiled(STREAM + "rules:\n  a: {sql: SELECT dev FROM s}\n")
    assert [(problem.line, problem.column, problem.code) for problem in result.problems] == [(3, 3, "R102")]
    assert result.rules == {}


def test_one_bad_rule_does_not_stop_the_others() -> None:
    result = compiled(
        BARE + "rules:\n  a: {sql: SELECT dev FROM s, actions: [{log: {}}]}\n",
        "id: b\nsql: SELECT (\nactions: [{log: {}}]\n",
    )
    assert list(result.rules) == ["a"]
    assert failed_paths(result) == {"1.yaml"}


def test_variables_reach_the_engine() -> None:
    result = compiled(
        STREAM + "variables: {limit: 80}\n"
        "rules:\n  a: {sql: SELECT dev FROM s WHERE temp > limit, actions: [{log: {}}]}\n"
    )
    assert result.problems == [], render_all(result.problems)
    assert result.catalog.variables["limit"].value == 80


def test_compiling_again_gives_the_same() -> None:
    loaded = unite(
        [load_text(STREAM + "rules:\n  a: {sql: SELECT tmp FROM s, actions: [{log: {}}]}\n", "x.yaml")]
    )
    first, second = compile_rules(loaded), compile_rules(loaded)
    assert [problem.render() for problem in first.problems] == [
        problem.render() for problem in second.problems
    ]


@pytest.mark.parametrize(
    ("timed", "sql", "settings", "keys"),
    [
        (
            False,
            "SELECT temp FROM s",
            "options: {lateTolerance: 1s, idleTimeout: 1s}",
            ["lateTolerance", "idleTimeout"],
        ),
        (False, "SELECT temp FROM s", "options: {lateTolerance: 1s, isEventTime: false}", []),
        (
            False,
            "SELECT temp FROM s",
            "options: {lateTolerance: 2s, isEventTime: false}",
            ["lateTolerance"],
        ),
        (False, "SELECT temp FROM s", "late: [{log: {}}]", ["late"]),
        (False, "SELECT temp FROM s", "options: {emitEmpty: true, align: epoch}", ["emitEmpty", "align"]),
        (
            False,
            "SELECT count(*) AS n FROM s GROUP BY TUMBLINGWINDOW(ss, 1)",
            "options: {catchUp: once}",
            ["catchUp"],
        ),
        (False, "SELECT count(*) AS n FROM s GROUP BY TUMBLINGWINDOW(ss, 1)", "options: {catchUp: skip}", []),
        (False, "from x in s within 2 every 1 select x.temp", "options: {align: epoch}", []),
        (True, "SELECT temp FROM s", "options: {lateTolerance: 1s, catchUp: step}\n  late: [{log: {}}]", []),
        (True, "SELECT temp FROM s", "options: {catchUp: skip}", ["catchUp"]),
    ],
)
def test_settings_that_the_query_gives_nothing_to_do_are_noted(
    timed: bool, sql: str, settings: str, keys: list[str]
) -> None:
    stream = (
        "streams:\n- {name: s, datasource: x, columns: {temp: float, ts: bigint}, "
        + "timestamp: ts" * timed
        + "}\n"
    )
    result = compiled(f"{stream}rules:\n- id: a\n  sql: {sql}\n  actions: [{{log: {{}}}}]\n  {settings}\n")
    assert result.ok, render_all(result.problems)
    assert [problem.message.split("'")[1] for problem in result.problems] == keys

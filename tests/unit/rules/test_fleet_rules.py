"""Rules over the fleet: which of them have keys, and what is said of the others."""

from __future__ import annotations

import pytest

from rules.compile import compile_rules
from rules.compiled import Compiled
from rules.loader import load_text, unite

FILE = """
streams: ["CREATE STREAM plant (dev string, line string, n bigint, ts bigint)
          WITH (DATASOURCE='x', TIMESTAMP='ts')"]
contexts:
  by_dev: {sql: partition by dev from plant, idle: 1h}
  night: {sql: 'start (0, 20, *, *, *) end (0, 6, *, *, *)'}
tables: {newest: "create table newest (dev string primary key, n bigint)"}
variables: {most: 1}
rules:
- id: r
  scope: fleet
  sql: >-
    SQL
"""


def compiled(sql: str, more: str = "") -> Compiled:
    return compile_rules(unite([load_text(FILE.replace("SQL", sql) + more, "rules.yaml")]))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT dev, n % 3 AS third, sum(n) AS s FROM plant GROUP BY dev, n % 3, TUMBLINGWINDOW(ss, 10)",
        "SELECT dev, avg(n) AS s FROM plant GROUP BY dev, HOPPINGWINDOW(ss, 10, 5) HAVING count(*) > 2",
        "SELECT dev, count(*) AS c FROM plant GROUP BY dev, COUNTWINDOW(3) OVER (PARTITION BY dev)",
        "SELECT dev, lag(n) OVER (PARTITION BY dev) AS before FROM plant",
        "select dev, sum(n) as s from plant group by dev",
        "context by_dev select sum(n) as s from plant#length(3) output last every 5 sec",
    ],
)
def test_a_rule_with_a_key_is_accepted_without_actions(sql: str) -> None:
    found = compiled(sql)
    assert [problem.code for problem in found.problems if problem.is_error] == []
    assert not found.rules["r"].rule.starts_here


@pytest.mark.parametrize(
    ("sql", "part", "hint"),
    [
        ("SELECT n FROM plant", "the rule has no key", "GROUP BY columns"),
        ("SELECT count(*) AS c FROM plant GROUP BY TUMBLINGWINDOW(ss, 10)", "has no key", "GROUP BY columns"),
        (
            "SELECT dev, count(*) AS c FROM plant GROUP BY dev, COUNTWINDOW(3)",
            "count window",
            "OVER (PARTITION BY",
        ),
        ("SELECT dev, count(*) AS c FROM plant GROUP BY dev, SLIDINGWINDOW(ss, 3)", "sliding window", "OVER"),
        (
            "SELECT dev, lag(n) AS b FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)",
            "lag() reads events of several keys",
            "OVER (PARTITION BY key)",
        ),
        (
            "SELECT dev, count(*) AS c FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10) ORDER BY c",
            "puts the rows of several keys in order",
            "run it in a context",
        ),
        ("select dev, sum(n) as s from plant#length(3) group by dev", "one by one", "run it in a context"),
        ("select dev, n + most as m from plant", "reads a variable", "write its value"),
        (
            "select p.dev as dev, t.n as n from plant as p, newest as t",
            "'newest', which all keys share",
            "context",
        ),
        ("context night select count(*) as c from plant", "not those of keys alone", "run it in a context"),
        ("insert into other select dev from plant", "feeds other rules", "one query"),
    ],
)
def test_a_rule_without_a_key_is_refused(sql: str, part: str, hint: str) -> None:
    found = compiled(sql)
    (problem,) = [problem for problem in found.problems if problem.is_error]
    assert problem.code == "R113" and part in problem.message and hint in (problem.hint or "")
    assert problem.line == 13 and "r" not in found.rules


def test_parts_of_a_gateways_rule_are_refused_at_their_keys() -> None:
    sql = "SELECT dev, sum(n) AS s FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)"
    found = compiled(sql, "  actions: [{log: {}}]\n  expect: [{column: s, notNull: true}]\n")
    told = [(problem.code, problem.line, problem.hint) for problem in found.problems if problem.is_error]
    assert told == [("R113", 14, "delete 'actions'"), ("R113", 15, "delete 'expect'")]

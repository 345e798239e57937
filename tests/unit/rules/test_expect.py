"""Checks beside a rule (`expect:`): their errors at their place, and the rows that break them."""

from __future__ import annotations

import pytest

import sinks  # noqa: F401  (registers the sinks)
from rules.compile import compile_rules
from rules.compiled import Compiled
from rules.inline import run_tests
from rules.loader import load_text, unite
from rules.problems import render_all

HEAD = """\
streams: ["CREATE STREAM s (dev string, temp float) WITH (DATASOURCE='x')"]
rules:
  - id: r
    sql: SELECT dev, temp, temp * 2 AS double FROM s
    actions: [{nop: {}}]
"""


def compiled(checks: str, more: str = "") -> Compiled:
    return compile_rules(unite([load_text(f"{HEAD}    expect: [{checks}]\n{more}", "r.yaml")]))


@pytest.mark.parametrize(
    ("check", "error"),
    [
        ("{column: tmp, notNull: true}", "r.yaml:6:23: R112 the SELECT has no column 'tmp'"),
        ("{column: dev, range: [0, 1]}", "r.yaml:6:23: R112 column 'dev' holds string, which has no range"),
        ("{column: temp, range: [2, 1]}", "r.yaml:6:29: R104 'range' must begin with the smaller number"),
        ("{column: temp, range: [null, null]}", "r.yaml:6:29: R104 'range' must name a bound"),
        ("{column: temp, range: [.nan, 1]}", "r.yaml:6:29: R104 'range' must have numbers or null"),
        ("{column: temp}", "r.yaml:6:15: R104 'column' needs 'range', 'notNull: true' or both"),
        ("{freshness: 1m, notNull: true}", "r.yaml:6:15: R104 'freshness' is about the rule"),
        ("{notNull: true}", "r.yaml:6:14: R104 a check needs 'column'"),
        ("{column: temp, notNull: true, then: stop}", "'then' must be 'warn', 'quarantine' or 'fail'"),
    ],
)
def test_a_wrong_check_is_an_error_at_its_place(check: str, error: str) -> None:
    result = compiled(check)
    assert error in render_all(result.problems)
    assert "r" not in result.rules


def test_the_messages_decide_the_columns_of_select_star() -> None:
    text = HEAD.replace("dev, temp, temp * 2 AS double", "*").replace("(dev string, temp float)", "()")
    more = "    expect: [{column: anything, range: [0, null]}]\n"
    assert "r" in compile_rules(unite([load_text(text + more, "r.yaml")])).rules


TEST = """\
    tests:
      - name: bounds belong to the range, NULL breaks notNull alone
        events: [{at: 1s, send: [{temp: -1}, {temp: 5}, {temp: 5.1}, {dev: a}, {dev: b, temp: -2}]}]
        expect:
          - at: 1s
            rows: [{temp: -1, double: -2}, {temp: 5, double: 10}, {temp: 5.1, double: 10.2}, {dev: a},
                   {dev: b, temp: -2, double: -4}]
            broken: [dev, dev, temp, dev, temp]
"""
CHECKS = "{column: temp, range: [-1, 5]}, {column: dev, notNull: true, then: fail}, {freshness: 1m}"


def test_an_inline_test_names_what_rows_break() -> None:
    (result,) = run_tests(compiled(CHECKS, TEST))
    assert result.passed, render_all(result.failures)
    (result,) = run_tests(compiled(CHECKS, TEST.replace("[dev, dev, temp, dev, temp]", "[dev]")))
    assert "- broken: dev\n" in render_all(result.failures)
    assert "+ broken: dev, dev, temp, dev, temp" in render_all(result.failures)

"""Expressions of a rule file: what queries call by name."""

from __future__ import annotations

from rules.compile import compile_rules
from rules.inline import run_tests
from rules.loader import load_text, unite
from rules.problems import render_all

FILE = """
streams:
  air: {datasource: air, columns: {k: string, t: float, rh: float}}
expressions:
  warm: x => x.t > 30
  apart: (a, b) => a - b
  damp: x => warm(x) and x.rh > 50
rules:
  hot:
    sql: SELECT k, apart(t, rh) AS d FROM air WHERE damp(air)
    actions: [log: {}]
    tests:
      - name: warm and damp
        events:
          - {at: 0s, stream: air, send: {k: a, t: 31, rh: 60}}
          - {at: 1s, stream: air, send: {k: b, t: 31, rh: 10}}
        expect: [{at: 0s, rows: [{k: a, d: -29}]}]
"""

WRONG = """
streams:
  air: {datasource: air, columns: {t: float}}
expressions:
  warm: x => x.t >
  sum: x => x.t
  n: 3
  apart: (a, b) => a - b
rules:
  one: {sql: "SELECT apart(t) AS d FROM air", actions: [log: {}]}
  two: {sql: "SELECT apart(zz, t) AS d FROM air", actions: [log: {}]}
"""


def test_queries_call_them() -> None:
    loaded = load_text(FILE, "f.yaml")
    assert loaded.problems == [], render_all(loaded.problems)
    (result,) = run_tests(compile_rules(unite([loaded])))
    assert list(result.failures) == [], render_all(result.failures)


def test_what_is_wrong_is_told_with_its_place() -> None:
    compiled = compile_rules(unite([load_text(WRONG, "f.yaml")]))
    found = [f"{problem.line}:{problem.column} {problem.code}" for problem in compiled.problems]
    assert found == ["5:19 P001", "6:8 B551", "7:6 R103", "10:22 B310", "11:28 B201"]


def test_a_name_is_declared_once() -> None:
    two = [load_text("expressions: {half: x => x / 2}", name) for name in ("a.yaml", "b.yaml")]
    assert "b.yaml:1:15: R106 the expression 'half' is already defined in a.yaml:1" in render_all(
        unite(two).problems
    )

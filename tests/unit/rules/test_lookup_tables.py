"""Lookup tables as eKuiper's users declare them: they load, explain says what is asked, a test gives their rows."""

from __future__ import annotations

from rules.compile import compile_rules
from rules.inline import run_tests
from rules.loader import load_text, unite
from rules.problems import render_all
from sql.explain.tree import explain

FILE = """
streams:
  demo: CREATE STREAM demo () WITH (DATASOURCE="demo", FORMAT="json")
  users: CREATE TABLE users (id bigint, name string) WITH (DATASOURCE="t", TYPE="sql", CONF_KEY="c", KIND="lookup")
  alerts: CREATE TABLE alerts() WITH (DATASOURCE="0", TYPE="memory", KIND="lookup", KEY="id")
rules:
  one:
    sql: >-
      SELECT demo.id AS id, users.name AS name, alerts.level AS level FROM demo
      INNER JOIN users ON demo.id = users.id LEFT JOIN alerts ON demo.kind = alerts.id
    actions: [log: {}]
    tests:
      - name: rows of the tables
        events:
          - {at: 0s, stream: users, send: {id: 1, name: ann}}
          - {at: 0s, stream: alerts, send: {id: k, level: 3}}
          - {at: 1s, stream: demo, send: [{id: 1, kind: k}, {id: 2, kind: k}]}
          - {at: 2s, stream: alerts, send: {id: k, level: 4}}
          - {at: 3s, stream: demo, send: {id: 1, kind: k}}
        expect:
          - {at: 1s, rows: [{id: 1, name: ann, level: 3}]}
          - {at: 3s, rows: [{id: 1, name: ann, level: 4}]}
"""


def test_declarations_load_and_a_test_gives_the_rows() -> None:
    loaded = load_text(FILE, "f.yaml")
    assert loaded.problems == [], render_all(loaded.problems)
    compiled = compile_rules(unite([loaded]))
    (result,) = run_tests(compiled)
    assert list(result.failures) == [], render_all(result.failures)
    assert "stream demo, asking users by id, asking alerts by id" in explain(compiled.rules["one"].plan)

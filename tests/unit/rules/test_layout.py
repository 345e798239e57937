"""`penstock fmt`: queries get a clause a line, and a file keeps its meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from rules.source.layout import formatted
from sql.language import parse
from sql.language.layout import laid_out, on_one_line
from tests.property.queries import QUERIES

FILE = """\
rules:
  - id: a   # a comment stays
    sql: SELECT a ,b FROM s   WHERE a > 1 and b in (1,2)
    actions: [{log: {}}]
  - id: b
    sql: |
        SELECT *   FROM a INNER JOIN b ON a.x=b.x
          WHERE a.y > 1
    actions: [{mqtt: {topic: t, dataTemplate: "{{.x}}  {{.y}}"}}]
  - id: c
    sql: |
      SELECT a   -- the author's own layout
        FROM s
    actions: [{log: {}}]
"""

AFTER = """\
rules:
  - id: a   # a comment stays
    sql: SELECT a, b FROM s WHERE a > 1 and b in (1, 2)
    actions: [{log: {}}]
  - id: b
    sql: |
        SELECT *
        FROM a
        INNER JOIN b ON a.x=b.x
        WHERE a.y > 1
    actions: [{mqtt: {topic: t, dataTemplate: "{{.x}}  {{.y}}"}}]
  - id: c
    sql: |
      SELECT a   -- the author's own layout
        FROM s
    actions: [{log: {}}]
"""


def test_a_file_gets_its_layout_once() -> None:
    assert formatted(FILE, "f.yaml") == AFTER
    assert formatted(AFTER, "f.yaml") == AFTER


def test_a_long_query_becomes_a_block() -> None:
    columns = ", ".join(f"avg(column_{number}) AS mean_{number}" for number in range(6))
    text = f"rules:\n  - id: a\n    sql: SELECT {columns} FROM s GROUP BY dev, TUMBLINGWINDOW(ss, 10)\n"
    assert (
        formatted(text, "f.yaml")
        == """\
rules:
  - id: a
    sql: |
      SELECT avg(column_0) AS mean_0, avg(column_1) AS mean_1, avg(column_2) AS mean_2,
        avg(column_3) AS mean_3, avg(column_4) AS mean_4, avg(column_5) AS mean_5
      FROM s
      GROUP BY dev, TUMBLINGWINDOW(ss, 10)
"""
    )


@pytest.mark.parametrize(
    "text", ["{", "rules: 7\n", "a: |\n  x\n", "sql: 'SELECT  a FROM s'\n", "sql: SELECT  a FROM 'x\n"]
)
def test_what_it_does_not_understand_stays(text: str) -> None:
    assert formatted(text, "f.yaml") == text


def test_the_examples_have_the_layout() -> None:
    for path in sorted(Path("rules/examples").glob("*.yaml")):
        text = path.read_text("utf-8")
        assert formatted(text, path.name) == text


@given(text=QUERIES)
def test_a_query_says_the_same_afterwards(text: str) -> None:
    shown = laid_out(text, 40)
    assert shown is not None and on_one_line(shown) == on_one_line(text)
    assert len(parse(shown)) == len(parse(text))

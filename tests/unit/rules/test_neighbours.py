"""What rules find in other places: the files of a folder, tables with errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.compile import compile_rules
from rules.loader import load_paths, load_text, unite


def test_a_file_goes_before_neighbours_that_define_the_same(tmp_path: Path) -> None:
    text = (
        "streams: {s: {datasource: y}}\ntables: {t: create table t (k string primary key)}\n"
        "contexts: {c: partition by k from s}\nexpressions: {twice: x => 2 * x}\n"
    )
    (tmp_path / "mine.yaml").write_text(text)
    (tmp_path / "other.yaml").write_text(text)
    compiled = compile_rules(load_paths([tmp_path / "mine.yaml"]))
    assert [problem.render() for problem in compiled.problems] == []


@pytest.mark.parametrize(
    "sql",
    ["SELECT m.a FROM m INNER JOIN t ON m.a = t.a", "on m as e update t set a = e.a where t.a = e.a"],
)
@pytest.mark.parametrize("table", ["create table t (a strin)", "{sql: create table t (a string), maxRow: 3}"])
def test_a_rule_over_a_table_with_errors_says_so(sql: str, table: str) -> None:
    text = (
        "streams: {m: {datasource: m, columns: {a: string}}}\n"
        f"tables: {{t: {table if table[0] == '{' else repr(table)}}}\n"
        f"rules: {{r: {{sql: {sql!r}, actions: [log: {{}}]}}}}\n"
    )
    messages = [problem.message for problem in compile_rules(unite([load_text(text, "f.yaml")])).problems]
    assert "table 't' has errors" in messages
    assert not any(message.startswith(("unknown stream", "unknown named")) for message in messages)

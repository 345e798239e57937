"""A file that is checked alone, and the other files of its folder."""

from __future__ import annotations

from pathlib import Path

from rules.compile import compile_rules
from rules.loader import load_paths


def test_a_file_goes_before_neighbours_that_define_the_same(tmp_path: Path) -> None:
    text = (
        "streams: {s: {datasource: y}}\ntables: {t: create table t (k string primary key)}\n"
        "contexts: {c: partition by k from s}\nexpressions: {twice: x => 2 * x}\n"
    )
    (tmp_path / "mine.yaml").write_text(text)
    (tmp_path / "other.yaml").write_text(text)
    compiled = compile_rules(load_paths([tmp_path / "mine.yaml"]))
    assert [problem.render() for problem in compiled.problems] == []

"""Every recipe of the cookbook passes its tests, raises no doubt, has a title, three
sentences and a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.deploy.checks.stream_problems import stream_problems
from edge.docs.cookbook import CHAPTERS, pages
from edge.plugins.sink_kinds import register_sinks
from rules.compile import compile_rules
from rules.inline import run_tests
from rules.lint.check import lint
from rules.loader import load_paths
from rules.source.layout import formatted

ROOT = Path(__file__).parents[3] / "rules" / "cookbook"
FILES = sorted(ROOT.rglob("*.yaml"))

register_sinks()


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
@pytest.mark.long
def test_a_recipe_is_tested_and_explained(path: Path) -> None:
    compiled = compile_rules(load_paths([path]))
    assert [*compiled.problems, *stream_problems(compiled), *lint(compiled)] == []
    results = run_tests(compiled)
    assert results and [failure.render() for result in results for failure in result.failures] == []
    text = path.read_text("utf-8")
    title, *about = [line.removeprefix("#").strip() for line in text.partition("\n\n")[0].splitlines()]
    assert title and " ".join(about).count(". ") == 2, "a title, then three sentences"
    assert formatted(text, path.name) == text


@pytest.mark.long
def test_all_chapters_are_written() -> None:
    assert {path.parent.name for path in FILES} == set(CHAPTERS)
    assert len(FILES) >= 30
    made = pages()
    assert all(f"{folder}.md" in made for folder in CHAPTERS)
    assert made["index.md"].count("\n- [") == len(FILES)

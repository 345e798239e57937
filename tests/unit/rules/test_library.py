"""The library of rules: each compiles without a note, has tests, and passes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.compile import compile_rules
from rules.inline import run_tests
from rules.loader import load_directory

RULES = Path(__file__).parents[3] / "rules"


@pytest.mark.long
def test_every_rule_of_the_library_has_a_test_that_passes() -> None:
    compiled = compile_rules(load_directory(RULES / "library"))
    assert compiled.problems == []
    results = run_tests(compiled)
    assert [result.name for result in results if not result.passed] == []
    assert {result.rule for result in results} == set(compiled.rules)


def test_there_are_sixty_rules_to_learn_from() -> None:
    rules = [rule for folder in ("library", "examples") for rule in load_directory(RULES / folder).rules]
    assert len(rules) >= 60

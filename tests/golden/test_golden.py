"""The compiled text of some rules is what was last read and found good."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.rules import RULES, compiled

FOLDER = Path(__file__).parent
LINES_MAX = 155


@pytest.mark.parametrize("name", RULES)
def test_text(name: str) -> None:
    expected = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert compiled(name) == expected, "python -m tests.golden writes it anew; read the difference"


def test_each_file_has_a_rule() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_it_is_short(name: str) -> None:
    assert len(compiled(name).splitlines()) <= LINES_MAX

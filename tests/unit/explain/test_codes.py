"""The register of codes and the code agree: nothing is raised unexplained, nothing explained
that is never raised."""

from __future__ import annotations

import re
from pathlib import Path

from sql.codes import CODES

ROOT = Path(__file__).resolve().parents[3] / "sql"


def test_every_code_is_listed_and_every_listed_code_is_raised() -> None:
    raised = {
        code
        for path in ROOT.rglob("*.py")
        if path.name != "codes.py"
        for code in re.findall(r'"([BP]\d{3})"', path.read_text(encoding="utf-8"))
    }
    assert raised == set(CODES)


def test_entries_are_sorted_and_say_something() -> None:
    assert list(CODES) == sorted(CODES, key=lambda code: (code[0] != "P", code))
    for code, entry in CODES.items():
        assert entry.title and entry.remedy and not entry.title.endswith("."), code

"""docs/architecture.md names files that exist, and one for each of twelve tasks."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
PATH = re.compile(r"`((?:sql|rules|sinks|cloud_sync|edge)/[\w/.]*)`")


def test_every_path_exists() -> None:
    paths = PATH.findall(PAGE)
    assert len(paths) > 25
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_each_task_has_one_place() -> None:
    table = PAGE.split("## Where to change what")[1].split("\n## ")[0]
    tasks = [
        line
        for line in table.splitlines()
        if line.startswith("| ") and not line.startswith(("| to ", "| ---"))
    ]
    assert len(tasks) >= 12
    assert all(PATH.search(task) or "CONTRIBUTING.md#" in task for task in tasks)


def test_the_layers_are_those_that_are_checked() -> None:
    layers = re.search(
        r"^layers = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert layers is not None
    assert " → ".join(re.findall(r'"(\w+)"', layers[1])) in PAGE


def test_every_decision_is_linked_and_has_three_parts() -> None:
    for path in (ROOT / "docs/decisions").glob("*.md"):
        assert f"decisions/{path.name}" in PAGE
        text = path.read_text(encoding="utf-8")
        assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Consequences")), path.name

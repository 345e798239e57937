"""The walks through CONTRIBUTING.md, done: each file is added to a copy of the project and used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.tidy.sources import PACKAGES, ROOT, text

BLOCK = re.compile(r"^```python (?:file=(?P<file>\S+)|test)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


class Walk(NamedTuple):
    """One section: the new file, and the program that shows that it works."""

    title: str
    file: str
    content: str
    program: str


def walks() -> list[Walk]:
    found = []
    for section in text(Path("CONTRIBUTING.md")).split("\n### ")[1:]:
        new, used = BLOCK.finditer(section)
        found.append(Walk(section.split("\n", 1)[0], new["file"], new["code"], used["code"]))
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages, with all new files in it."""
    folder = tmp_path_factory.mktemp("project")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for walk in walks():
        path = folder / walk.file
        assert not path.exists(), f"{walk.file} is not a new file"
        path.write_text(walk.content, encoding="utf-8")
    return folder


def run(project: Path, *words: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(project)}
    done = subprocess.run(
        [sys.executable, *words], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_is_a_walk_for_everything_that_people_add() -> None:
    assert [walk.title for walk in walks()] == [
        "Add a function",
        "Add an aggregate",
        "Add a window of FROM",
        "Add a window of GROUP BY",
        "Add a window of stream queries",
        "Add a sink",
    ]


@pytest.mark.parametrize("walk", walks(), ids=lambda walk: walk.title)
def test_the_new_thing_works(project: Path, walk: Walk) -> None:
    run(project, "-c", walk.program)


def test_the_new_files_are_in_the_style_of_the_house(project: Path) -> None:
    files = [walk.file for walk in walks()]
    settings = ["--config", str(ROOT / "pyproject.toml")]
    run(project, "-m", "ruff", "check", "--no-cache", *settings, *files)
    run(project, "-m", "ruff", "format", "--no-cache", "--check", *settings, *files)

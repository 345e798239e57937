"""The README's rule is right, its tests pass, and its output is what the rule gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.tidy.sources import text

BLOCK = re.compile(r"^```\w+ (?:file|output)=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
README = text(Path("README.md"))
BLOCKS = dict(BLOCK.findall(README))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("hot_pumps.yaml", "readings.jsonl"):
        (tmp_path / name).write_text(BLOCKS[name], encoding="utf-8")
    return tmp_path


def penstock(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from edge.cli import main; sys.exit(main())"
    rules = [str(folder / word) if (folder / word).exists() else word for word in words]
    return subprocess.run([sys.executable, "-c", code, *rules], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["check", "test", "explain"])
def test_the_rule_is_right(folder: Path, command: str) -> None:
    done = penstock(folder, command, "hot_pumps.yaml")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_output_is_what_the_rule_gives(folder: Path) -> None:
    assert penstock(folder, "replay", "hot_pumps.yaml", "readings.jsonl").stdout == BLOCKS["replay"]


def test_every_command_it_shows_exists() -> None:
    listed = penstock(Path(), "--help").stdout
    shown = set(re.findall(r"(?:^|`|/)penstock ([a-z]+)", README, re.MULTILINE))
    assert {"run", "check", "cloud"} <= shown
    assert all(re.search(rf"^    {name} ", listed, re.MULTILINE) for name in shown), shown

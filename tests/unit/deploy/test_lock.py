"""The lock file pins what pyproject.toml asks for, with hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXTRAS = ("object-store", "re2")


def test_every_dependency_is_pinned_within_its_range() -> None:
    requirements = pytest.importorskip("packaging.requirements")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(item for extra in EXTRAS for item in project["optional-dependencies"][extra]),
    ]
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    for text in wanted:
        requirement = requirements.Requirement(text)
        assert requirement.name in pinned, f"{requirement.name} is not locked: make lock"
        assert requirement.specifier.contains(pinned[requirement.name]), (
            f"{text}: locked {pinned[requirement.name]}"
        )


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-build.lock"])
def test_every_pin_has_hashes(name: str) -> None:
    text = re.sub(r"^\s*#.*\n", "", (ROOT / name).read_text(), flags=re.MULTILINE)
    pins = re.split(r"\n(?=\w)", text.strip())
    assert len(pins) >= 2
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", pin) for pin in pins)


def test_the_image_takes_the_extras_that_are_locked() -> None:
    lock = re.search(
        r"^\t\$\(UV\).* pyproject.toml (.*) --output-file", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert lock is not None
    assert tuple(re.findall(r"--extra (\S+)", lock[1])) == EXTRAS

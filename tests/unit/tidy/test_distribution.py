"""What `pip install` brings: the wheel has everything that the command needs, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.unit.tidy.sources import PACKAGES, ROOT, python_files


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel, built from a copy: a build leaves files beside the sources."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in (*PACKAGES, "tests", "benchmarks"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(target)]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(source)], check=True, capture_output=True
    )
    (wheel,) = target.glob("penstock-*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target / "site")
    return target / "site"


def run(installed: Path, folder: Path, *words: str) -> str:
    """Run penstock from the wheel's files, away from the sources."""
    code = (
        "import sys, edge.cli, sql; assert sys.argv[1] in sql.__file__; sys.exit(edge.cli.main(sys.argv[2:]))"
    )
    command = [sys.executable, "-P", "-c", code, str(installed), *words]
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_has_every_module_and_no_tests(installed: Path) -> None:
    files = {path.relative_to(installed) for path in installed.rglob("*.py")}
    assert files == set(python_files(*PACKAGES))


def test_the_command_and_the_extras_are_declared(installed: Path) -> None:
    (info,) = installed.glob("penstock-*.dist-info")
    assert "penstock = edge.cli:main" in (info / "entry_points.txt").read_text()
    metadata = (info / "METADATA").read_text()
    for extra in ("cloud", "demo", "object-store", "re2", "zstd", "dev"):
        assert f"Provides-Extra: {extra}\n" in metadata


def test_the_examples_run_from_it(installed: Path, tmp_path: Path) -> None:
    examples = installed / "rules" / "examples"
    assert {path.name for path in examples.iterdir()} == {
        path.name for path in (ROOT / "rules/examples").iterdir()
    }
    assert ", 0 errors, 0 warnings" in run(installed, tmp_path, "check", str(examples))
    assert ", 0 failed" in run(installed, tmp_path, "test", str(examples))

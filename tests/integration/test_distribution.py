"""How the tests are given to several workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

TESTS = """
import os
import pytest

@pytest.mark.parametrize("number", range(12))
def test_it(number):
    with open("{folder}/seen", "a") as seen:
        seen.write(os.environ["PYTEST_XDIST_WORKER"] + f" {{number}}\\n")
"""


def test_the_tests_of_a_file_run_on_one_worker_and_in_their_order(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "integration"
    folder.mkdir(parents=True)
    (folder / "test_one.py").write_text(TESTS.format(folder=tmp_path))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.conftest",
        "-n",
        "2",
    ]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(folder)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    seen = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    assert len({worker for worker, _ in seen}) == 1
    assert [int(number) for _, number in seen] == list(range(12))

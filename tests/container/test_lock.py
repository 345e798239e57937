"""Wheels of everything that is locked exist for the processors that gateways have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.container.engine import ROOT

pytestmark = pytest.mark.container

GLIBC_MINOR = 36
"""The image's C library is 2.36 (Debian bookworm): wheels for it and for older ones run there."""


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_wheels_resolve(machine: str, tmp_path: Path) -> None:
    versions = ["2014", *(f"_2_{minor}" for minor in range(17, GLIBC_MINOR + 1))]
    platforms = [f"--platform=manylinux{version}_{machine}" for version in versions]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
         "--only-binary=:all:",
         "--implementation=cp", "--python-version=3.11", *platforms, "--dest", str(tmp_path),
         "--requirement", str(ROOT / "requirements.lock")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    unreachable = "NewConnectionError" in done.stderr or "NameResolutionError" in done.stderr
    if unreachable and not os.environ.get("PENSTOCK_REQUIRE_CONTAINER"):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    names = [path.name for path in tmp_path.iterdir()]
    assert len(names) == (ROOT / "requirements.lock").read_text().count("==")
    assert any(name.endswith(f"_{machine}.whl") for name in names)

"""What runs in Spark's workers is imported there without the packages that those of a server do not have."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CONTRACT = "what runs in Spark's workers needs no package but pyarrow"


@pytest.mark.long
def test_modules_of_workers_can_be_imported_without_other_packages() -> None:
    """The contract of imports sees no `__init__` of a package that an import runs on its way."""
    pytest.importorskip("pyspark")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [item for item in settings["tool"]["importlinter"]["contracts"] if item["name"] == CONTRACT]
    for module in contract["source_modules"]:
        script = f"import sys; sys.modules |= dict.fromkeys({contract['forbidden_modules']}); import {module}"
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{module}: {done.stderr}"

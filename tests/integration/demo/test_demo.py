"""The demo, run as `make demo` runs it, only shorter: what it prints is what came out of
the rules and of Spark."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.slow

DEMO_S = 4 * PATIENCE_S
"""The demo runs a gateway, and then Spark several times."""


def demo(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edge.demo", "--folder", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEMO_S, check=False)


@pytest.mark.spark
@pytest.mark.skipif(
    find_spec("amqtt") is None or find_spec("pyspark") is None, reason="needs penstock[demo,cloud]"
)
def test_from_machines_to_the_fleet_table(tmp_path: Path) -> None:
    done = demo(tmp_path / "run", "--seconds", "14")
    assert done.returncode == 0, done.stdout + done.stderr
    for rule in ("average_10s", "peak_10s", "average_by_sensor_clock (late)"):
        assert re.search(rf"^ +[\d.]+ s  {re.escape(rule)} +\d+ rows?  ", done.stdout, re.MULTILINE), rule
    assert re.search(r"\d{3} messages received, [1-9]\d* late, [1-9]\d* rejected", done.stdout)
    assert re.search(r"\|[a-z]+-\d\d *\|", done.stdout), "no machine in the fleet table"
    assert list((tmp_path / "run" / "fleet" / "fleet").glob("run=*/of_rule=*/of_level=*/of_day=*/*.parquet"))


def test_a_broker_that_is_not_there_ends_the_demo_with_a_sentence(tmp_path: Path) -> None:
    done = demo(tmp_path / "run", "--broker", "http://nowhere")
    assert done.returncode == 1
    assert "scheme 'http'" in done.stderr
    assert "Traceback" not in done.stderr


def test_foreign_files_are_not_removed(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    done = demo(tmp_path, "--broker", f"mqtt://127.0.0.1:{free_port()}")
    assert done.returncode == 1
    assert "holds other files" in done.stderr
    assert (tmp_path / "precious").exists()

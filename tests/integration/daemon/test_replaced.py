"""Files of penstock that are replaced while a gateway runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from edge.base.loaded_code import PACKAGES
from tests.integration.daemon.support import ROOT, STREAM, Process


def spawned(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """A process of its own: one that is forked has loaded the files of the tests."""
    with log.open("ab") as file:
        return subprocess.Popen(command, cwd=log.parent, env=environment, stdout=file, stderr=file)


def test_why_asks_for_a_restart(tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, installed / package, ignore=ignored)
    gateway = Process(tmp_path, None, environment={"PYTHONPATH": str(installed)}, spawn=spawned)
    gateway.write_rule("m.yaml", STREAM + "rules:\n  - {id: r, sql: SELECT x FROM m, actions: [nop: {}]}\n")
    gateway.start()
    try:
        assert gateway.get("/why/r")[0] == 200
        question = installed / "edge" / "monitor" / "flight" / "question.py"
        question.write_text(question.read_text().replace("from_ms: int", "from_ms: int\n    zones: str"))
        status, text = gateway.get("/why/r")
        assert status == 503
        assert "have been replaced since the gateway started" in text
        assert "restart the gateway" in text
    finally:
        gateway.kill()

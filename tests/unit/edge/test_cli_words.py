"""What the command line says about words that it does not know, and to terminals that lack characters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edge.cli import main
from tests.support.waiting import PATIENCE_S

STREAMS = "streams:\n  - {name: temperature, datasource: t, columns: {temp: float}}\n"
RULE = (
    "rules:\n  - {id: r, sql: SELECT temp FROM temperature GROUP BY COUNTWINDOW(2), actions: [{nop: {}}]}\n"
)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "streams.yaml").write_text(STREAMS)
    (tmp_path / "rule.yaml").write_text(RULE)
    return tmp_path


def test_a_misspelt_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["chekc", "rules"])
    assert end.value.code == 2
    assert capsys.readouterr().err.endswith(
        "penstock: error: there is no command 'chekc'; did you mean 'check'?\n"
    )


def test_a_word_that_is_near_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["zzz"])
    assert "there is no command 'zzz'; there are init, run, check, " in capsys.readouterr().err


def test_a_terminal_without_a_character_gets_its_code(rules: Path) -> None:
    command = [sys.executable, "-m", "edge.cli", "explain", str(rules / "rule.yaml")]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    found = subprocess.run(command, check=False, env=environment, capture_output=True, timeout=PATIENCE_S)
    assert (found.returncode, found.stderr) == (0, b"")
    assert b"\\u2514\\u2500" in found.stdout


def test_a_file_without_rules_has_none_to_choose(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = rules / "streams.yaml"
    assert main(["explain", str(file)]) == 2
    assert capsys.readouterr().err == f"penstock explain: {file} has no rules\n"


def test_recorded_events_of_a_stream_that_is_nearly_declared(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = rules / "data.jsonl"
    data.write_text('{"at": 1, "temp": 5}\n')
    words = ["sql", str(rules / "streams.yaml"), "--execute", "SELECT temp FROM temperature", "--recorded"]
    assert main([*words, f"temperatur={data}"]) == 0
    assert capsys.readouterr().err == (
        "note: no file declares the stream 'temperatur' of --recorded; did you mean 'temperature'?\n"
    )
    assert main([*words, f"temperature={data}"]) == 0
    assert capsys.readouterr().err == ""


def test_recorded_events_are_read_from_what_is_no_plain_file(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sql", str(rules / "streams.yaml"), "--execute", "SELECT temp FROM temperature", "--recorded"]
    assert main([*words, "temperature=/dev/null"]) == 0
    assert main([*words, f"temperature={rules}"]) == 2
    assert f"temperature={rules}: '{rules}' is a directory" in capsys.readouterr().err

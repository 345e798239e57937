"""Commands of daily work: check and test for machines and while editing, init, fmt, dead-letters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from edge.cli import main
from edge.config import load
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.letters import FOLDER
from tests.support.waiting import wait_for

WRONG = """\
streams: [{name: m, datasource: m, columns: {dev: string, temp: float}}]
rules:
  - id: r
    sql: SELECT dev, tmp FROM m
    actions: [{log: {}}]
"""

TESTED = """\
streams: [{name: m, datasource: m, columns: {dev: string, temp: float}}]
rules:
  - id: r
    sql: SELECT dev FROM m WHERE temp > 5
    actions: [{log: {}}]
    tests:
      - name: above
        events: [{at: 1s, send: {dev: a, temp: 6}}]
        expect: [{at: 1s, rows: [{dev: a}]}]
      - name: equal & more
        events: [{at: 1s, send: {dev: a, temp: 5}}]
        expect: [{at: 1s, rows: [{dev: a}]}]
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "r.yaml"
    path.write_text(WRONG)
    return path


def test_check_as_json(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(rules), "--format", "json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)
    assert problem == {
        "file": str(rules),
        "line": 4,
        "column": 22,
        "end_column": 25,
        "code": "B201",
        "severity": "error",
        "message": "unknown column 'tmp' in stream 'm'; it has dev, temp",
        "hint": "did you mean 'temp'?",
    }
    rules.write_text(WRONG.replace("tmp", "temp"))
    assert main(["check", str(rules), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_check_for_github(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(rules), "--format", "github"]) == 1
    assert capsys.readouterr().out == (
        f"::error file={rules},line=4,col=22,title=B201::unknown column 'tmp' in stream 'm'; it has dev, temp"
        "%0Ahint: did you mean 'temp'?\n"
    )


def test_results_as_junit(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_text(TESTED)
    report = tmp_path / "out" / "junit.xml"
    assert main(["test", str(rules), "--junit", str(report)]) == 1
    (suite,) = ElementTree.parse(report).getroot()
    assert suite.attrib == {"name": str(rules), "tests": "2", "failures": "1", "errors": "0"}
    good, bad = suite
    assert (good.attrib["name"], list(good)) == ("above", [])
    (failure,) = bad
    assert bad.attrib["name"] == "equal & more" and failure.attrib["type"] == "R302"
    assert failure.text is not None and '- {"dev": "a"}' in failure.text
    rules.write_text(WRONG)
    assert main(["test", str(rules), "--junit", str(report)]) == 1
    (suite,) = ElementTree.parse(report).getroot()
    assert (suite.attrib["name"], suite.attrib["errors"]) == ("check", "1")
    capsys.readouterr()


@pytest.mark.long
def test_watch_does_it_again(rules: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "edge.cli", "check", str(rules), "--watch"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, env=environment) as child:
        try:
            wait_for(lambda: "1 error" in log.read_text(), "the first result")
            rules.write_text(WRONG.replace("tmp", "temp"))
            wait_for(lambda: "0 errors" in log.read_text(), "the second result")
        finally:
            child.terminate()


@pytest.mark.long
def test_init_gives_a_project_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = tmp_path / "plant"
    assert main(["init", str(project)]) == 0
    assert main(["check", str(project / "rules")]) == 0
    assert main(["test", str(project / "rules")]) == 0
    assert "2 files, 1 rule, 0 errors, 0 warnings\n1 passed, 0 failed\n" in capsys.readouterr().out
    assert load(project / "gateway.yaml").gateway.latency_ms == 5
    (project / "rules" / "too_hot.yaml").write_text("rules: []\n")
    assert main(["init", str(project)]) == 0
    assert (project / "rules" / "too_hot.yaml").read_text() == "rules: []\n"


def test_every_key_of_the_first_configuration_may_be_taken(tmp_path: Path) -> None:
    """Uncommented as a whole it loads: the keys exist, and the values are of their types."""
    assert main(["init", str(tmp_path)]) == 0
    lines = (tmp_path / "gateway.yaml").read_text().splitlines()
    head = lines.index("")
    body = "\n".join(line.removeprefix("# ") for line in lines[head:] if line.startswith("# "))
    (tmp_path / "all.yaml").write_text(body + "\n")
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for name in ("mqtt-password", "http-token", "push-token"):
        (secrets / name).write_text("x")
    text = (tmp_path / "all.yaml").read_text().replace("/run/secrets", str(secrets))
    (tmp_path / "all.yaml").write_text(text)
    found = load(tmp_path / "all.yaml")
    assert (found.gateway.id, found.mqtt.qos, found.journal.compression) == ("gateway-7", 1, "auto")


def test_fmt(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_text(WRONG.replace("dev, tmp", "dev ,tmp"))
    assert main(["fmt", "--check", str(rules)]) == 1
    assert main(["fmt", str(rules)]) == 0
    assert rules.read_text() == WRONG
    assert main(["fmt", "--check", str(rules)]) == 0
    assert capsys.readouterr().out == f"{rules} would change\n{rules} written\n"


def test_fmt_says_written_of_written_files_only(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules.write_text(WRONG.replace("dev, tmp", "dev ,tmp"))
    rules.with_name(f".{rules.name}.new").mkdir()
    assert main(["fmt", str(rules)]) == 2
    assert capsys.readouterr().out == ""


def test_fmt_keeps_links_and_permissions(rules: Path) -> None:
    rules.write_text(WRONG.replace("dev, tmp", "dev ,tmp"))
    rules.chmod(0o640)
    link = rules.with_name("link.yaml")
    link.symlink_to(rules)
    assert main(["fmt", str(link)]) == 0
    assert (link.is_symlink(), rules.read_text()) == (True, WRONG)
    assert rules.stat().st_mode & 0o777 == 0o640
    assert not list(rules.parent.glob(".*.new"))


def test_dead_letters_are_listed_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    letters = DeadLetters(tmp_path / FOLDER)
    letters.write(1_000, "not JSON: byte 3", "plant/7/temp", b"{x", streams=["m", "k"])
    letters.write(2_000, "not JSON: byte 9", "plant/8/temp", b"{yyyyyyy")
    letters.write(3_000, "the broker refuses 'a'", rule="hot", sink="mqtt", target="alarms/a", payload=b"[]")
    letters.close()
    with (letters.path).open("ab") as file:
        file.write(b'{"at_ms": 4000, "rea')  # cut off by a power cut
    assert main(["dead-letters", "ls", "--data", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (
        "     2  last 1970-01-01 00:00:02Z  topic plant/8/temp: not JSON: byte 9\n"
        "     1  last 1970-01-01 00:00:03Z  rule hot, mqtt: the broker refuses 'a'\n"
        f"3 dead letters in {tmp_path}\n"
    )
    assert main(["dead-letters", "show", "--data", str(tmp_path), "--topic", "plant/7/#"]) == 0
    shown = capsys.readouterr().out
    assert "payload: {x" in shown and "topic: plant/7/temp" in shown and "yyy" not in shown
    assert 'streams: ["m", "k"]' in shown
    assert main(["dead-letters", "retry", "--data", str(tmp_path), "--dry-run"]) == 0
    assert [line.split()[1:2] for line in capsys.readouterr().out.splitlines()[:3]] == [
        ["plant/7/temp"],
        ["plant/8/temp"],
        ["alarms/a"],
    ]
    assert main(["dead-letters", "retry", "--data", str(tmp_path)]) == 2
    assert "no broker" in capsys.readouterr().err

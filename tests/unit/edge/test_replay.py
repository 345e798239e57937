"""Replays of recordings in other forms: `penstock record`, `mosquitto_sub -F %j`, CSV;
joins and chains of rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edge.cli import main

STREAMS = """streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/+/temp")'
  - 'CREATE STREAM k () WITH (DATASOURCE="plant/+/pressure")'
  - 'CREATE STREAM hot () WITH (TYPE="memory", DATASOURCE="hot/#")'
"""

RULES = """rules:
  - id: both
    sql: SELECT m.temp, k.bar FROM m INNER JOIN k ON m.dev = k.dev GROUP BY TUMBLINGWINDOW(ss, 10)
    actions: [{nop: {}}]
  - id: above
    sql: SELECT dev, temp FROM m WHERE temp > 80
    actions: [{memory: {topic: hot/all}}]
  - id: often
    sql: SELECT dev, count(*) AS c FROM hot GROUP BY dev, COUNTWINDOW(2)
    actions: [{nop: {}}]
  - id: named
    sql: SELECT dev, meta(topic) AS topic FROM hot
    actions: [{nop: {}}]
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(STREAMS + RULES)
    return path


def write(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def replayed(capsys: pytest.CaptureFixture[str], *words: str) -> list[Any]:
    assert main(["replay", *words]) == 0
    return [json.loads(line)["rows"] for line in capsys.readouterr().out.splitlines()]


JOINED = [[{"temp": 81, "bar": 2}]]


def test_a_recording_of_two_streams(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {"at": 1000, "stream": "m", "topic": "plant/1/temp", "event": {"dev": "a", "temp": 81}},
        {"at": 2000, "stream": "k", "topic": "plant/1/pressure", "event": {"dev": "a", "bar": 2}},
    ]
    path = write(tmp_path / "r.jsonl", lines)
    assert replayed(capsys, str(rules), path, "--rule", "both") == JOINED


@pytest.mark.parametrize("as_text", [True, False], ids=["%j", "%J"])
def test_what_mosquitto_sub_prints(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], as_text: bool
) -> None:
    def line(second: int, topic: str, event: dict[str, Any]) -> dict[str, Any]:
        stamp = f"2026-01-01T00:00:{second:02}.250000+0100"
        payload = json.dumps(event) if as_text else event
        return {"tst": stamp, "topic": topic, "qos": 0, "retain": 0, "payloadlen": 9, "payload": payload}

    lines = [
        line(1, "plant/1/temp", {"dev": "a", "temp": 81}),
        line(2, "plant/1/pressure", {"dev": "a", "bar": 2}),
        line(3, "other", {"dev": "a"}),
    ]
    path = write(tmp_path / "sub.jsonl", lines)
    assert replayed(capsys, str(rules), path, "--rule", "both") == JOINED


def test_a_payload_that_is_bad_is_told_with_its_line(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = {"tst": "2026-01-01T00:00:01+0000", "topic": "plant/1/temp", "payload": "{nonsense"}
    path = write(tmp_path / "sub.jsonl", [bad])
    assert main(["replay", str(rules), path, "--rule", "above"]) == 1
    assert f"rejected {path}:1: JSON is malformed" in capsys.readouterr().err


def test_csv_and_json_side_by_side(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.csv").write_text("at,dev,temp\n1000,a,81\n1970-01-01T00:00:01.500Z,b,\n")
    other = write(tmp_path / "k.jsonl", [{"at": 2000, "dev": "a", "bar": 2}])
    words = [str(rules), f"m={tmp_path / 'm.csv'}", f"k={other}", "--rule", "both"]
    assert replayed(capsys, *words) == JOINED


def test_rules_that_feed_the_rule_run_as_well(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [{"at": 1000 * number, "dev": "a", "temp": temp} for number, temp in enumerate((85, 70, 90), 1)]
    path = write(tmp_path / "m.jsonl", events)
    assert replayed(capsys, str(rules), f"m={path}", "--rule", "often") == [[{"dev": "a", "c": 2}]]
    named = [[{"dev": "a", "topic": "hot/all"}]] * 2
    assert replayed(capsys, str(rules), f"m={path}", "--rule", "named") == named


def test_a_file_of_nobody_knows_which_stream(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "k.jsonl", [{"at": 2000, "dev": "a"}])
    assert main(["replay", str(rules), path, path, "--rule", "both"]) == 2
    assert f"STREAM={path}, with one of m, k" in capsys.readouterr().err


def test_bytes_are_printed_as_a_sink_writes_them(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT cast(dev, 'bytea') AS raw FROM m"
    rules.write_text(f'{STREAMS}rules:\n  - id: raw\n    sql: "{sql}"\n    actions: [{{nop: {{}}}}]\n')
    path = write(tmp_path / "m.jsonl", [{"at": 1000, "dev": "YWI="}])
    assert replayed(capsys, str(rules), f"m={path}", "--rule", "raw") == [[{"raw": "YWI="}]]


def test_bytes_of_a_recording_are_bytes_again(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = 'CREATE STREAM b () WITH (DATASOURCE="raw", FORMAT="binary")'
    rule = "{id: r, sql: 'SELECT self, length(self) AS n FROM b', actions: [{nop: {}}]}"
    rules.write_text(f"streams: ['{stream}']\nrules: [{rule}]\n")
    path = write(
        tmp_path / "b.jsonl", [{"at": 1000, "stream": "b", "topic": "raw", "event": {"self": "YWI="}}]
    )
    assert replayed(capsys, str(rules), path, "--rule", "r") == [[{"self": "YWI=", "n": 2}]]


TABLES = """streams:
  - 'CREATE STREAM m () WITH (DATASOURCE="plant/+/temp")'
  - 'CREATE STREAM k (dev STRING, bar FLOAT) WITH (DATASOURCE="plant/+/pressure")'
tables:
  limits: create table limits (dev string primary key, bar double)
  newest: create window newest#unique(dev) as select dev, bar from k
rules:
  - id: keep
    sql: >
      on k merge limits where limits.dev = k.dev
      when not matched then insert select k.dev as dev, k.bar as bar
    actions: []
  - id: fill
    sql: insert into newest select dev, bar from k
    actions: []
  - id: by_table
    sql: select m.temp as temp, limits.bar as bar from m unidirectional, limits where limits.dev = m.dev
    actions: [{nop: {}}]
  - id: by_window
    sql: select m.temp as temp, newest.bar as bar from m unidirectional, newest where newest.dev = m.dev
    actions: [{nop: {}}]
"""


@pytest.mark.parametrize("rule", ["by_table", "by_window"])
def test_rules_that_fill_what_the_rule_reads_run_as_well(
    rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(TABLES)
    lines = [
        {"at": 1000, "stream": "k", "topic": "plant/1/pressure", "event": {"dev": "a", "bar": 2.5}},
        {"at": 2000, "stream": "m", "topic": "plant/1/temp", "event": {"dev": "a", "temp": 81}},
        {"at": 3000, "stream": "m", "topic": "plant/1/temp", "event": {"dev": "b", "temp": 82}},
    ]
    path = write(tmp_path / "r.jsonl", lines)
    assert replayed(capsys, str(rules), path, "--rule", rule) == [[{"temp": 81, "bar": 2.5}]]


@pytest.mark.parametrize("data", [["--stream", "m", "{}"], ["m={}"]])
def test_a_stream_without_events_is_named(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], data: list[str]
) -> None:
    path = write(tmp_path / "m.jsonl", [{"at": 1000, "dev": "a", "temp": 81}])
    assert main(["replay", str(rules), "--rule", "both", *(word.format(path) for word in data)]) == 0
    assert capsys.readouterr().err == "note: no events of 'k': add k=FILE\n"


def test_streams_that_rules_feed_are_not_missed(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "m.jsonl", [{"at": 1000, "dev": "a", "temp": 81}])
    assert main(["replay", str(rules), "--rule", "often", f"m={path}"]) == 0
    assert capsys.readouterr().err == ""

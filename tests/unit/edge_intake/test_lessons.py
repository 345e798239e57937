"""What samples of payloads teach: columns that are never there, near misses, other types;
said once, and bounded."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from edge.cli import main
from edge.intake.lessons import ENOUGH, EVERY, FIRST, KEYS_MAX, Lessons
from edge.intake.stream_decoder import StreamSpec
from edge.intake.streams import StreamTable
from sql.types import Type

DECLARED = {"dev": Type.STRING, "temp": Type.FLOAT, "n": Type.INTEGER}


def taught(*payloads: bytes, read: frozenset[str] | None = frozenset({"temp"})) -> dict[str, str]:
    lessons = Lessons("m", DECLARED, read)
    for payload in payloads:
        lessons.sample(payload)
    return lessons.texts()


def test_a_column_that_is_never_there_with_its_near_miss() -> None:
    assert taught(*[b'{"dev": "a", "tmp": 20.5, "n": 1}'] * ENOUGH) == {
        "temp": "none of 5 sampled messages has the column 'temp'; did you mean 'tmp'?"
    }
    far = taught(*[b'{"dev": "a", "n": 1, "pressure": 3}'] * ENOUGH)
    assert far == {"temp": "none of 5 sampled messages has the column 'temp'; they have dev, n, pressure"}
    assert taught(*[b'{"dev": "a", "tmp": 20.5}'] * (ENOUGH - 1)) == {}, "too few to say anything"


def test_columns_that_rules_read_of_a_schemaless_stream() -> None:
    lessons = Lessons("m", {}, {"temperature"})
    for _ in range(ENOUGH):
        lessons.sample(b'{"temperatur": 1}')
    text = "none of 5 sampled messages has the column 'temperature'; did you mean 'temperatur'?"
    assert lessons.texts() == {"temperature": text}


def test_values_of_other_types() -> None:
    good = b'{"dev": "a", "temp": 20, "n": 3.0}'
    assert taught(*[good] * ENOUGH) == {}
    other = "but 1 of 5 sampled messages hold another type, such as"
    assert taught(*[good] * 4, b'{"dev": null, "temp": "21,5", "n": 3.5}') == {
        "temp": f"column 'temp' is declared float, {other} string '21,5'",
        "n": f"column 'n' is declared bigint, {other} float 3.5",
    }


def test_rubbish_teaches_nothing_and_keys_are_bounded() -> None:
    lessons = Lessons("m", {}, None)
    for payload in (b"rubbish", b"7", b"[]", b"\xff", b'[{"a": 1}]'):
        lessons.sample(payload)
    assert lessons.samples == 1
    for number in range(2 * KEYS_MAX):
        lessons.sample(json.dumps({f"key{number}": 1}).encode())
    assert len(lessons._seen) == KEYS_MAX


def test_the_first_ones_and_then_one_in_a_hundred_is_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    lessons = Lessons("m", DECLARED, frozenset({"temp"}))
    table = StreamTable([StreamSpec("m", "#", columns=frozenset({"temp"}), lessons=lessons)])
    with caplog.at_level(logging.WARNING, "penstock.streams"):
        for _ in range(10 * EVERY):
            table.decode([("t", b'{"dev": "a", "tmp": 1, "n": 1}', None, 0)])
    assert lessons.samples == FIRST + 10
    assert [record.message for record in caplog.records] == ["payload.unexpected"]


def test_replay_and_test_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = tmp_path / "r.yaml"
    rule.write_text("""\
streams: [{name: m, datasource: m, columns: {dev: string, temp: float}}]
rules:
  - id: r
    sql: SELECT dev FROM m WHERE temp > 5
    actions: [{nop: {}}]
    tests:
      - name: never
        events: [{at: 1s, send: {dev: a, tmp: 6}}, {at: 2s, send: {dev: 7, temp: 1}}]
""")
    data = tmp_path / "d.jsonl"
    data.write_text("".join(f'{{"at": {n}, "dev": "a", "tmp": {n}}}\n' for n in range(9)))
    assert main(["replay", str(rule), str(data)]) == 0
    told = capsys.readouterr().err
    assert "note: stream 'm': none of 9 sampled messages has the column 'temp'; did you mean 'tmp'?" in told
    assert main(["test", str(rule)]) == 1
    told = capsys.readouterr().out
    assert "+ error: column 'dev' of stream 'm' must be a string, not bigint 7\n" in told
    assert told.endswith(
        "note: stream 'm': a test sends the key 'tmp', which is no column; did you mean 'temp'?\n"
        "note: stream 'm': column 'dev' is declared string, and a test sends bigint 7\n"
        "0 passed, 1 failed\n"
    )

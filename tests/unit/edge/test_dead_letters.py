"""Dead letters: readable, bounded, and never a reason to stop."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from edge.delivery.dead_letters import DeadLetters


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_letter_keeps_the_payload_as_it_came(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path)
    letters.write(5, "not JSON", "plant/1", b"\xff{\x00", stream="m")
    letters.sync()
    (letter,) = lines(letters.path)
    assert letter["at_ms"] == 5
    assert (letter["reason"], letter["topic"], letter["stream"]) == ("not JSON", "plant/1", "m")
    assert base64.b64decode(str(letter["payload"])) == b"\xff{\x00"
    letters.close()


def test_a_topic_that_is_no_unicode_does_no_harm(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path)
    letters.write(5, "bad topic", "a\ud800b")
    letters.close()
    assert "a" in letters.path.read_text("utf-8")


def test_files_are_rotated_and_the_oldest_is_deleted(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path, bytes_max=120, files_max=3)
    for number in range(10):
        letters.write(number, "x" * 60)
    letters.close()
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["dead-letters.jsonl", "dead-letters.jsonl.1", "dead-letters.jsonl.2"]
    assert [letter["at_ms"] for letter in lines(letters.path)] == [9]
    assert [letter["at_ms"] for letter in lines(tmp_path / "dead-letters.jsonl.2")] == [7]
    assert letters.written == 10


def test_an_earlier_file_is_continued(tmp_path: Path) -> None:
    for number in range(2):
        letters = DeadLetters(tmp_path)
        letters.write(number, "again")
        letters.close()
    assert [letter["at_ms"] for letter in lines(letters.path)] == [0, 1]


def test_what_the_disk_refuses_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way of a directory")
    letters = DeadLetters(tmp_path / "file")
    letters.keep(1, "lost")
    assert letters.lost == 1
    assert caplog.messages == ["dead_letter.lost"]
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        letters.write(1, "lost")


def test_a_large_letter_is_written_with_the_next_sync(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path)
    letters.keep(1, "too large", "plant/1", b"x" * 100_000)
    letters.keep(2, "not JSON", "plant/1", b"{")
    assert [letter["at_ms"] for letter in lines(letters.path)] == [2], (
        "the loop has not waited for the large one"
    )
    assert letters.waiting_bytes == 100_000
    letters.sync()
    assert [letter["at_ms"] for letter in lines(letters.path)] == [2, 1]
    assert (letters.waiting_bytes, letters.written) == (0, 2)
    payload = bytes(range(256)) * 400
    letters.keep(3, "too large", "plant/1", payload)
    letters.close()
    assert [letter["at_ms"] for letter in lines(letters.path)] == [2, 1, 3]
    assert base64.b64decode(str(lines(letters.path)[-1]["payload"])) == payload, "encoded in pieces"

"""The place up to which rows of a file are safe, on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.intake.sources.files.position import FilePlace, FilePosition


@pytest.fixture
def failures() -> list[str]:
    return []


@pytest.fixture
def position(tmp_path: Path, failures: list[str]) -> FilePosition:
    return FilePosition(tmp_path / "positions" / "s.json", tmp_path / "rows.jsonl", failures.append)


def test_the_file_stays_the_same_one_and_is_never_shorter(tmp_path: Path, position: FilePosition) -> None:
    """A power cut leaves the old number or the new one."""
    seen = set()
    for rows in (1, 999, 1_000, 10**12, 0, 7):
        place = FilePlace(rows, rows * 10, 2**63 if rows else 0, "0123456789abcdef" if rows else "")
        position.store(place)
        position.sync()
        status = (tmp_path / "positions" / "s.json").stat()
        seen.add((status.st_ino, status.st_size))
        assert position.read() == place
    assert len(seen) == 1


def test_a_number_that_cannot_be_stored_is_told_and_stored_later(
    tmp_path: Path, position: FilePosition, failures: list[str]
) -> None:
    """Instead of the folder there is a file."""
    (tmp_path / "positions").write_text("")
    position.store(FilePlace(3))
    position.sync()
    assert [failure.partition(": '")[0] for failure in failures] == [
        "the position in the file is not stored: file exists"
    ] * 2
    assert not position.is_stored
    (tmp_path / "positions").unlink()
    position.sync()
    assert position.is_stored
    assert position.read() == FilePlace(3)


def test_a_file_that_was_removed_is_made_again(
    tmp_path: Path, position: FilePosition, failures: list[str]
) -> None:
    position.store(FilePlace(3))
    (tmp_path / "positions" / "s.json").unlink()
    position.store(FilePlace(4))
    assert len(failures) == 1
    position.sync()
    assert position.read() == FilePlace(4)


def test_a_position_in_another_file_is_none(tmp_path: Path, position: FilePosition) -> None:
    position.store(FilePlace(3))
    other = FilePosition(tmp_path / "positions" / "s.json", tmp_path / "other.jsonl", print)
    assert other.read() == FilePlace()


def test_the_number_of_an_earlier_version_is_read(tmp_path: Path, position: FilePosition) -> None:
    position.store(FilePlace())
    path = tmp_path / "positions" / "s.json"
    path.write_text(f'{{"rows":                   12, "file": "{tmp_path / "rows.jsonl"}"}}')
    assert position.read() == FilePlace(12)

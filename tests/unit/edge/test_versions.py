"""A journal, snapshot or cache of a newer version is refused, and stays as it is."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edge.base.errors import UsageError
from edge.cli import main
from edge.clock import SystemClock
from edge.journal.frame import encode
from edge.journal.reader import SEGMENT_HEADER_BYTES, SEGMENT_MAGIC
from edge.journal.record import Tick
from edge.journal.snapshots import Snapshots
from edge.journal.versions import check_versions


class Later(msgspec.Struct, array_like=True, tag="later", frozen=True):
    """A kind of record that this version does not know."""

    at_ms: int


NEWER = {
    "journal/00000000000000000000.journal": b"penstock journal 2\n\0\0\0\0\0",
    "snapshots/00000000000000000100.snapshot": b"penstkS4\0\0\0\0",
}


@pytest.mark.parametrize("name", NEWER)
def test_a_newer_form_ends_the_start_with_the_remedy(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "data" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(NEWER[name])
    with pytest.raises(UsageError, match=re.escape(f"{file} was written by a newer version of penstock")):
        check_versions(tmp_path / "data")
    (tmp_path / "rules").mkdir()
    assert main(["run", str(tmp_path / "rules"), "--data", str(tmp_path / "data"), "--http", "off"]) == 2
    assert "start that version; or move the folders journal and snapshots" in capsys.readouterr().err


def started(data: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What a start prints that is refused; it must leave the files of the data directory as they were."""
    (data.parent / "rules").mkdir()
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    assert before
    assert main(["run", str(data.parent / "rules"), "--data", str(data), "--http", "off"]) == 2
    assert before == {path: path.read_bytes() for path in before}
    return capsys.readouterr().err


def test_a_record_of_a_kind_that_is_not_known_is_not_taken_for_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "data/journal/00000000000000000000.journal"
    file.parent.mkdir(parents=True)
    known = encode([Tick(5)], SEGMENT_HEADER_BYTES, 0, None)
    position = SEGMENT_HEADER_BYTES + len(known)
    later: Any = Later(7)
    file.write_bytes(SEGMENT_MAGIC + known + encode([later], position, 0, None))
    told = started(tmp_path / "data", capsys)
    assert told.startswith(f"penstock run: {file} was written by a newer version of penstock (")
    assert "start that version; or move the folders journal and snapshots" in told


def test_a_state_of_a_later_form_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data/snapshots"
    Snapshots(folder, SystemClock()).make(0, lambda: {"version": 2, "rules": {}})
    (file,) = folder.glob("*.snapshot")
    assert f"{file} was written by a newer version of penstock (state 2)" in started(
        tmp_path / "data", capsys
    )


def test_a_cache_of_a_later_form_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "data/cache/hot.db"
    file.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 1")
    told = started(tmp_path / "data", capsys)
    assert f"{file} was written by a newer version of penstock: start that version" in told
    assert "or move the file away" in told


@pytest.mark.parametrize("head", [SEGMENT_MAGIC, b"", b"\0" * 24, b"penstock journal \xff\n\0\0"])
def test_our_own_form_and_a_damaged_head_are_read(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal/00000000000000000000.journal").write_bytes(head)
    check_versions(tmp_path)

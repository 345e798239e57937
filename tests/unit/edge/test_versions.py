"""A journal or snapshot of a newer version is refused before it is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edge.base.errors import UsageError
from edge.cli import main
from edge.journal.reader import SEGMENT_MAGIC
from edge.journal.versions import check_versions

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


@pytest.mark.parametrize("head", [SEGMENT_MAGIC, b"", b"\0" * 24, b"penstock journal \xff\n\0\0"])
def test_our_own_form_and_a_damaged_head_are_read(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal/00000000000000000000.journal").write_bytes(head)
    check_versions(tmp_path)

"""Watching a directory, both ways."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from edge import watch
from edge.watch import DirectoryWatch


@pytest.mark.parametrize("poll", [False, True])
def test_each_kind_of_change_is_noticed(tmp_path: Path, poll: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "POLL_MS", 50)
    changed = threading.Event()
    watching = DirectoryWatch(tmp_path, changed.set, poll=poll)
    path = tmp_path / "rule.yaml"
    try:
        changed.wait(0.3)  # the operating system's watch needs a moment to be in place
        for number, change in enumerate((lambda: path.write_text("a"), lambda: path.write_text("bc"), path.unlink)):
            changed.clear()
            change()
            assert changed.wait(5), number
    finally:
        watching.close()


def test_files_that_are_no_rules_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("")
    (tmp_path / ".hidden.yaml").write_text("")
    (tmp_path / "notes.txt").write_text("")
    assert [Path(name).name for name in watch.fingerprint(tmp_path)] == ["a.yaml"]

"""Watching a directory, both ways."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from edge.deploy import watch
from edge.deploy.watch import DirectoryWatch
from tests.support.waiting import PATIENCE_MS, PATIENCE_S, wait_for


class Changed(threading.Event):
    """Acts on a report by remembering that there was one."""

    def __call__(self) -> bool:
        self.set()
        return True


@pytest.mark.parametrize("poll", [False, True])
def test_each_kind_of_change_is_noticed(tmp_path: Path, poll: bool) -> None:
    changed = Changed()
    watching = DirectoryWatch(tmp_path, changed, poll=poll, poll_ms=50)
    path = tmp_path / "rule.yaml"
    try:
        changes: list[Callable[[], object]] = [
            lambda: path.write_text("a"),
            lambda: path.write_text("bc"),
            lambda: path.chmod(0o640),  # it may be readable now
            path.unlink,
        ]
        for number, change in enumerate(changes):
            changed.clear()
            change()
            assert changed.wait(PATIENCE_S), number
    finally:
        watching.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_the_system_tells_before_the_next_look(tmp_path: Path) -> None:
    changed = Changed()
    watching = DirectoryWatch(tmp_path, changed, poll_ms=10 * PATIENCE_MS)
    try:
        for number in range(3):
            changed.clear()
            (tmp_path / "rule.yaml").write_text("a" * number)
            assert changed.wait(PATIENCE_S), number
    finally:
        watching.close()
    wait_for(lambda: all(thread.name != "rule-watch" for thread in threading.enumerate()), "the end")


def test_a_directory_that_is_gone_is_looked_at_until_it_is_back(tmp_path: Path) -> None:
    directory = tmp_path / "rules"
    directory.mkdir()
    changed = Changed()
    watching = DirectoryWatch(directory, changed, poll_ms=20)
    try:
        directory.rename(tmp_path / "away")
        directory.mkdir()
        (directory / "rule.yaml").write_text("a")
        assert changed.wait(PATIENCE_S)
    finally:
        watching.close()


def test_files_that_are_no_rules_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("")
    (tmp_path / ".hidden.yaml").write_text("")
    (tmp_path / "notes.txt").write_text("")
    assert [Path(name).name for name in watch.fingerprint(tmp_path)] == ["a.yaml"]


def test_a_change_before_the_watch_is_noticed(tmp_path: Path) -> None:
    """Files are read first and watched then; what happens in between must not be lost."""
    seen = watch.fingerprint(tmp_path)
    (tmp_path / "rule.yaml").write_text("a")
    changed = Changed()
    watching = DirectoryWatch(tmp_path, changed, seen, poll_ms=50)
    try:
        assert changed.wait(PATIENCE_S)
    finally:
        watching.close()


def test_a_report_that_could_not_be_acted_on_is_made_again(tmp_path: Path) -> None:
    reports, done = 0, threading.Event()

    def changed() -> bool:
        nonlocal reports
        reports += 1
        if reports == 1:
            raise OSError("no process can be started")
        if reports == 3:
            done.set()
        return reports == 3

    (tmp_path / "rule.yaml").write_text("a")
    watching = DirectoryWatch(tmp_path, changed, {}, poll_ms=20, again_ms=60)
    try:
        assert done.wait(PATIENCE_S)
    finally:
        watching.close()
    assert reports == 3

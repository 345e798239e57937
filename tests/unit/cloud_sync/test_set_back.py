"""A spool that was restored from an older copy: its numbers have been given already."""

from __future__ import annotations

import gzip
import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from cloud_sync.spool import Spool
from cloud_sync.spool.store import SEQ_GAP
from cloud_sync.uploader import Uploader, UploadSettings
from tests.unit.cloud_sync.support import NOW_MS, MemoryTarget
from tests.unit.cloud_sync.test_uploader import arrived, fill

BEATING = UploadSettings(heartbeat_ms=3_600_000)


def uploads(spool: Spool, target: MemoryTarget) -> None:
    """A start of the gateway that uploads what waits."""
    uploader = Uploader(spool, target, BEATING)
    while uploader.step(NOW_MS, force=True) == 0:
        pass


def sent(folder: Path, target: MemoryTarget, count: int, start: int) -> None:
    """A start of the gateway that stores and uploads rows."""
    with closing(Spool(folder / "spool.db", "gw1")) as spool:
        fill(spool, count, start=start)
        uploads(spool, target)


def numbers(target: MemoryTarget) -> list[tuple[int, int]]:
    """First and last sequence number of each file, in order."""
    manifests = (json.loads(target.files[place]) for place in target.names("v2-arrivals"))
    return sorted((listed["first_seq"], listed["last_seq"]) for listed in manifests)


@pytest.fixture
def restored(tmp_path: Path) -> tuple[Path, MemoryTarget]:
    """A spool with 3 rows sent, its copy from before 4 others were sent, and the target that has all 7."""
    target, now, copy = MemoryTarget(), tmp_path / "now", tmp_path / "copy"
    sent(now, target, 3, 1)
    shutil.copytree(now, copy)
    sent(now, target, 4, 4)
    return copy, target


def test_rows_of_a_restored_spool_get_numbers_of_their_own(
    restored: tuple[Path, MemoryTarget], caplog: pytest.LogCaptureFixture
) -> None:
    copy, target = restored
    with closing(Spool(copy / "spool.db", "gw1")) as spool:
        fill(spool, 2, start=8)  # before the gateway has met the target
        uploads(spool, target)
        fill(spool, 1, start=10)
        uploads(spool, target)
    first = 7 + SEQ_GAP + 1  # the heartbeat of the other branch, behind its first file, says 7
    assert numbers(target) == [(1, 3), (4, 7), (first, first + 1), (first + 2, first + 2)]
    assert arrived(target) == list(range(1, 11))
    (told,) = [found for found in caplog.records if found.message == "spool.set_back"]
    assert told.levelname == "ERROR"


def test_a_restored_spool_is_told_once(
    restored: tuple[Path, MemoryTarget], caplog: pytest.LogCaptureFixture
) -> None:
    copy, target = restored
    with closing(Spool(copy / "spool.db", "gw1")) as spool:
        uploads(spool, target)
    caplog.clear()
    sent(copy, target, 1, 8)
    sent(copy, target, 1, 9)
    first = 7 + SEQ_GAP + 1
    assert numbers(target) == [(1, 3), (4, 7), (first, first), (first + 1, first + 1)]
    assert "spool.set_back" not in caplog.text


def test_rows_that_waited_in_the_copy_keep_their_numbers(tmp_path: Path) -> None:
    """The other branch has sent them too: with other numbers they would count twice."""
    target, now, copy = MemoryTarget(), tmp_path / "now", tmp_path / "copy"
    sent(now, target, 1, 1)
    with closing(Spool(now / "spool.db", "gw1")) as spool:
        fill(spool, 2, start=2)
    shutil.copytree(now, copy)
    sent(now, target, 1, 4)
    sent(copy, target, 1, 5)
    first = 4 + SEQ_GAP + 1
    names = {json.loads(target.files[place])["name"] for place in target.names("v2-arrivals")}
    lines = [json.loads(line) for name in names for line in gzip.decompress(target.files[name]).splitlines()]
    assert sorted((line["seq"], line["n"]) for line in lines) == [
        *((1, 1), (2, 2), (2, 2), (3, 3), (3, 3), (4, 4)),
        (first, 5),
    ]


def test_a_spool_that_was_not_set_back_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    target = MemoryTarget()
    for start in range(1, 5):
        sent(tmp_path, target, 1, start)
    assert numbers(target) == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert "spool.set_back" not in caplog.text


@pytest.mark.parametrize("told", [b"", b"[]", b'{"beat":"x"}', b'{"beat":9,"highest_seq":-1}'])
def test_a_heartbeat_that_is_none_changes_nothing(tmp_path: Path, told: bytes) -> None:
    target = MemoryTarget()
    with closing(Spool(tmp_path / "spool.db", "gw1")) as spool:
        target.files[f"v2-heartbeats/gw=gw1/{spool.spool_id}.json"] = told
        fill(spool, 1)
        uploads(spool, target)
    assert numbers(target) == [(1, 1)]


def test_a_target_that_lets_nobody_read_takes_uploads(tmp_path: Path) -> None:
    class WriteOnly(MemoryTarget):
        def get(self, name: str) -> bytes | None:
            from cloud_sync.errors import TargetError

            raise TargetError("cannot read")

    target = WriteOnly()
    sent(tmp_path, target, 2, 1)
    assert numbers(target) == [(1, 2)]

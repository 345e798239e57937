"""A gateway that was restored from an older copy of its spool: what is missing of both branches.

Expected numbers are counted by hand: the first branch stores rows 1 to 9, of which 8 and 9 come behind its
last heartbeat; the copy is from behind row 3, with row 3 waiting.
"""

from __future__ import annotations

import json
import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.heartbeat import Pulse
from cloud_sync.sink import RecordMaker
from cloud_sync.spark import view
from cloud_sync.spool import Spool
from cloud_sync.spool.store import SEQ_GAP
from cloud_sync.targets import open_target
from cloud_sync.uploader import Uploader, UploadSettings
from tests.spark.support import DAY_MS, SETTINGS, rows, run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]

FIRST = 7 + SEQ_GAP + 1
"""The first number of the restored branch: the other one has told 7."""


def started(folder: Path, count: int, bucket: Path | None = None, *, beats: bool = True) -> None:
    """A start of the gateway that stores rows; with its bucket it uploads each row that waits as a file, and
    a heartbeat behind them."""
    with closing(Spool(folder / "spool.db", "gw1")) as spool:
        made = rows(random.Random(spool.highest_seq), count)
        spool.append([RecordMaker(SETTINGS, "hot").record(row, 0) for row in made], DAY_MS)
        spool.commit(DAY_MS)
        if bucket is None:
            return
        target = open_target(str(bucket))
        pulse = Pulse(spool, target, 1)
        if beats:
            pulse.compare()
        Uploader(spool, target, UploadSettings(rows_max=1)).drain(DAY_MS)
        if beats:
            pulse.beat(DAY_MS)


@pytest.fixture
def restored(bucket: Path, tmp_path: Path) -> Path:
    """The bucket that the first branch has left behind, and the restored one has gone on with."""
    now, copy = tmp_path / "now", tmp_path / "copy"
    started(now, 2, bucket)
    started(now, 1)
    shutil.copytree(now, copy)
    started(now, 4, bucket)
    started(now, 2, bucket, beats=False)
    started(copy, 2, bucket)
    (beat,) = (bucket / "v2-heartbeats").rglob("*.json")
    told = json.loads(beat.read_bytes())
    assert told["left_out"] == [[7, FIRST]]
    assert (told["stored"], told["uploaded"], told["waiting"]) == (9, 9, 0)
    return bucket


def delete(bucket: Path, *numbers: int) -> None:
    """Delete the files of rows, and their manifests."""
    for number in numbers:
        found = [path for path in bucket.rglob(f"{number}-{number}-*") if path.is_file()]
        assert len(found) >= 2
        for path in found:
            path.unlink()


@pytest.mark.parametrize(
    ("gone", "missing"),
    [((), 0), ((3,), 1), ((4, 5, 6, 7), 4), ((4, 8, FIRST), 3), ((9,), 0)],
)
def test_rows_of_both_branches_that_have_not_arrived_are_missing(
    spark: Any, restored: Path, out: Path, gone: tuple[int, ...], missing: int
) -> None:
    """Row 9 is the last one of the first branch, behind its last heartbeat: without it nobody knows of it."""
    delete(restored, *gone)
    run(restored, out)
    (found,) = view.gateways(spark, str(out)).collect()
    assert (found["rows"], found["missing"]) == (11 - len(gone), missing)


def test_rows_that_only_the_lost_disk_had_are_missing(
    spark: Any, bucket: Path, out: Path, tmp_path: Path
) -> None:
    """Two rows waited on it when its last heartbeat told so; of a third one, stored later, nobody knows."""
    now, copy = tmp_path / "now", tmp_path / "copy"
    started(now, 1, bucket)
    shutil.copytree(now, copy)
    started(now, 2)
    with closing(Spool(now / "spool.db", "gw1")) as spool:
        Pulse(spool, open_target(str(bucket)), 1).beat(DAY_MS)
    started(now, 1)
    started(copy, 1, bucket)
    run(bucket, out)
    (found,) = view.gateways(spark, str(out)).collect()
    assert (found["rows"], found["missing"], found["waiting"]) == (2, 2, 0)

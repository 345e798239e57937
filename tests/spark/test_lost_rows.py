"""A gateway whose spool has lost its newest changes, as by a damaged log: what is missing in the cloud.

Expected numbers are counted by hand: rows 1 and 2 are uploaded and row 3 waits when the database is copied.
Rows 3 and 4 are uploaded behind that, and row 5 waits, when the copy takes the place of the database.
"""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.heartbeat import Pulse
from cloud_sync.spark import view
from cloud_sync.spool import Spool
from cloud_sync.targets import open_target
from tests.spark.support import DAY_MS, run
from tests.spark.test_restored_spool import delete, started

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]


@pytest.fixture
def damaged(bucket: Path, tmp_path: Path) -> Path:
    """The folder of the gateway: its mark knows rows 4 and 5, and its database does not."""
    gateway = tmp_path / "gateway"
    started(gateway, 2, bucket)
    started(gateway, 1)
    copy = shutil.copy(gateway / "spool.db", tmp_path / "copy.db")
    started(gateway, 1, bucket)
    started(gateway, 1)
    shutil.copy(copy, gateway / "spool.db")
    return gateway


def test_a_gap_shows_after_rows_were_lost(
    spark: Any, bucket: Path, out: Path, damaged: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next rows are numbered behind the lost ones. Of these row 4 has arrived; row 3 arrives twice."""
    started(damaged, 2, bucket)
    (beat,) = (bucket / "v2-heartbeats").rglob("*.json")
    told = json.loads(beat.read_bytes())
    assert (told["stored"], told["uploaded"], told["waiting"], told["lost"]) == (7, 6, 0, 1)
    assert "spool.lost" in caplog.text and "spool.set_back" not in caplog.text
    delete(bucket, told["highest_seq"])
    run(bucket, out)
    (found,) = view.gateways(spark, str(out)).collect()
    assert (found["rows"], found["missing"], found["lost"]) == (5, 1, 1)


def test_lost_rows_are_no_missing_ones(spark: Any, bucket: Path, out: Path, damaged: Path) -> None:
    started(damaged, 0)
    started(damaged, 2, bucket)
    run(bucket, out)
    (found,) = view.gateways(spark, str(out)).collect()
    assert (found["rows"], found["missing"], found["lost"]) == (6, 0, 1)


def test_a_lost_heartbeat_is_that_of_no_other_branch(
    bucket: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gateway = tmp_path / "gateway"
    started(gateway, 1, bucket)
    copy = shutil.copy(gateway / "spool.db", tmp_path / "copy.db")
    for _ in range(2):
        with closing(Spool(gateway / "spool.db", "gw1")) as spool:
            Pulse(spool, open_target(str(bucket)), 1).beat(DAY_MS)
        shutil.copy(copy, gateway / "spool.db")
    assert "spool.set_back" not in caplog.text and "spool.lost" not in caplog.text

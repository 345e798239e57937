"""Which gateways are silent, missing rows, sending twice or skewed; which windows are not final yet."""

from __future__ import annotations

import gzip
import json
import os
import random
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.heartbeat import Pulse
from cloud_sync.names import arrival_name, manifest_name
from cloud_sync.records import SpooledRow
from cloud_sync.spark import completeness, job, report, view
from cloud_sync.spool import Spool
from cloud_sync.targets import open_target
from cloud_sync.upload_files import form_file, manifest
from tests.spark.support import DAY_MS, Row, lines, rows, run, upload

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]

HOUR = 60


def at(minute: int) -> list[Row]:
    """One row, of the first ten seconds of a minute."""
    (row,) = rows(random.Random(minute), 1)
    start_ms = DAY_MS + minute * 60_000
    return [row | {"dev": "a", "window_start": start_ms, "window_end": start_ms + 10_000}]


def again(bucket: Path, gateway: str) -> None:
    """The row of the gateway's only file comes once more, in another spelling under another name."""
    (path,) = (bucket / "v2" / f"gw={gateway}").rglob("*.gz")
    fields = json.loads(gzip.decompress(path.read_bytes()))
    identity = {name: fields.pop(name) for name in ("gateway", "spool", "rule", "seq")}
    body = json.dumps(fields).encode()
    spooled = [SpooledRow(identity["seq"], "hot", "2025-11-21", 0, body, 0)]
    planned, content = form_file(spooled, gateway, identity["spool"])
    target = open_target(str(bucket))
    assert target.put_if_absent(planned.name, content)
    target.put_if_absent(manifest_name(planned.name), manifest(planned, gateway, identity["spool"]))


def test_gateways_have_a_state_and_windows_are_final_when_all_live_gateways_have_passed(
    spark: Any, bucket: Path, out: Path
) -> None:
    upload(bucket, "silent", at(0))
    upload(bucket, "slow", at(5 * HOUR - 1))
    upload(bucket, "twice", at(5 * HOUR))
    again(bucket, "twice")
    gap = upload(bucket, "gap", at(0) + at(5 * HOUR), rows_max=1)[0]
    for name in (gap, arrival_name(gap, DAY_MS)):
        (bucket / name).unlink()
    upload(bucket, "skewed", at(5 * HOUR))
    with closing(Spool(bucket.parent / "skewed" / "spool.db", "skewed")) as spool:
        Pulse(spool, open_target(str(bucket)), 1).beat(DAY_MS)
    # The bucket's clock says that it came with the last windows, five hours after the gateway's own clock.
    (beat,) = (bucket / "v2-heartbeats").rglob("*.json")
    arrived = DAY_MS / 1000 + 5 * HOUR * 60
    os.utime(beat, (arrived, arrived))
    assert run(bucket, out, now_ms=lambda: DAY_MS + 5 * HOUR * 60_000 + 10_000)[0] == job.OK
    states = {row["gateway"]: row["state"] for row in completeness.gateways(spark, str(out)).collect()}
    assert states == {
        "silent": ["silent"],
        "slow": [],
        "twice": ["duplicate"],
        "gap": ["missing"],
        "skewed": ["skewed"],
    }
    windows = completeness.windows(spark, str(out), "hot").orderBy("window_start").collect()
    assert [(row["gateways"], row["waiting_for"], row["is_final"]) for row in windows] == [
        (1, 0, True),
        (1, 1, False),
        (3, 4, False),
    ]
    html = report.page(spark, str(out))
    assert (
        "<td class=bad>silent</td>" in html and "<td class=bad>skewed</td>" in html and "final until" in html
    )


@pytest.mark.parametrize("ahead", [5 * HOUR, 80 * 365 * 24 * HOUR])
def test_a_clock_that_is_ahead_makes_no_other_gateway_silent(
    spark: Any, bucket: Path, out: Path, ahead: int
) -> None:
    """The fleet window of a minute waits for each gateway that has sent its first ten seconds, or less."""
    upload(bucket, "ahead", at(ahead))
    upload(bucket, "gw1", at(10))
    upload(bucket, "gw2", at(0))
    assert run(bucket, out, now_ms=lambda: DAY_MS + 20 * 60_000)[0] == job.OK
    states = {row["gateway"]: row["state"] for row in completeness.gateways(spark, str(out)).collect()}
    assert states == {"ahead": [], "gw1": [], "gw2": []}
    windows = completeness.windows(spark, str(out), "hot").orderBy("window_start").collect()
    assert [(row["waiting_for"], row["is_final"]) for row in windows] == [(1, False), (2, False), (3, False)]


def test_a_gateway_whose_clock_is_ahead_is_silent_when_it_sends_no_more(
    spark: Any, bucket: Path, out: Path
) -> None:
    """Both send at minute 20, one of them by a clock that is a day ahead; at minute 260 only the other one is
    left."""
    upload(bucket, "ahead", at(24 * HOUR))
    upload(bucket, "gw1", at(20))
    assert run(bucket, out, now_ms=lambda: DAY_MS + 20 * 60_000)[0] == job.OK
    upload(bucket, "gw1", at(260))
    assert run(bucket, out, now_ms=lambda: DAY_MS + 260 * 60_000)[0] == job.OK
    states = {found["gateway"]: found["state"] for found in completeness.gateways(spark, str(out)).collect()}
    assert states == {"ahead": ["silent"], "gw1": []}


def test_the_report_has_the_gateways_of_all_keys_of_the_newest_window(
    spark: Any, bucket: Path, out: Path
) -> None:
    """Two gateways with a device each have rows of the newest minute, a third one of the day before. The
    clock of a fourth one is three days ahead: its window is not the newest one of the fleet."""
    upload(bucket, "gw1", at(24 * HOUR))
    upload(bucket, "gw2", [at(24 * HOUR)[0] | {"dev": "b"}])
    upload(bucket, "gw3", at(0))
    upload(bucket, "ahead", at(96 * HOUR))
    assert run(bucket, out, now_ms=lambda: DAY_MS + 25 * HOUR * 60_000)[0] == job.OK
    html = report.page(spark, str(out))
    assert lines(html, "Rules") == [
        ["hot", "1m", "3", "2025-11-22 00:00:00", "2", "2", "4", "2025-11-22 00:00:10"]
    ]
    assert [line[0] for line in lines(html, "Gateways")] == ["gw3", "gw1", "gw2", "ahead"]


def test_the_report_is_in_utc_wherever_it_is_made(
    spark: Any, bucket: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(bucket, "gw1", at(61))
    run(bucket, out, now_ms=lambda: DAY_MS + 62 * 60_000)
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        html = report.page(spark, str(out))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert lines(html, "Rules")[0][3] == "2025-11-21 01:01:00"
    (gateway,) = lines(html, "Gateways")
    first = view.gateways(spark, str(out)).columns.index("first")
    assert gateway[first : first + 3] == [f"2025-11-21 01:{at}" for at in ("01:00", "01:10", "02:00")]

"""A gateway archives its events, and `penstock cloud backfill` makes the gateway's own rows of them again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.names import ARCHIVE_FOLDER
from edge.cli import main
from tests.integration.daemon.support import bucket_rows, daemon, publisher
from tests.support.brokers import mosquitto
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.broker, pytest.mark.usefixtures("spark")]

RULES = """
streams:
  - "CREATE STREAM plant (dev string, temp float, ts bigint) WITH (DATASOURCE='plant/#', TIMESTAMP='ts')"
rules:
  - id: raw
    sql: SELECT * FROM plant
    options: {isEventTime: false}
    actions: [{archive: {}}]
  - id: hot
    sql: >
      SELECT dev, count(temp) AS n, sum(temp) AS total, window_start() AS window_start,
        window_end() AS window_end
      FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)
    options: {isEventTime: true, lateTolerance: 3s}
    late: [{file: {path: late.jsonl, sendSingle: true}}]
    actions:
      - cloud: {window: 1m}
"""
BASE_MS = 1_763_683_200_000
TIMES_S = [1, 4, 2, 8, 12, 9.5, 15, 3, 21, 19, 30, 11, 29, 41, 38.5, 20, 55]
"""When events happened, in the order in which they arrive: some within the tolerance, some too late."""
COLUMNS = ("dev", "n", "total", "window_start", "window_end")


def test_a_backfill_of_the_archive_gives_the_gateways_rows(spark: Any, tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    settings = {"PENSTOCK__CLOUD__TARGET": str(bucket), "PENSTOCK__CLOUD__INTERVAL_MS": "100"}
    with (
        mosquitto(tmp_path / "broker") as broker,
        publisher(broker.port) as plant,
        daemon(tmp_path / "gw", broker.url, {"r.yaml": RULES}, **settings) as gateway,
    ):
        gateway.wait_ready()
        for number, at_s in enumerate(TIMES_S):
            event = {"dev": "ab"[number % 2], "temp": number / 10, "ts": BASE_MS + int(at_s * 1000)}
            plant.send("plant/x", event)
            if number == 8:
                gateway.kill()
                gateway.start()
        wait_for(lambda: len(archived(bucket)) == len(TIMES_S), "the archive")
        wait_for(lambda: gateway.status()["spool"]["rows"] == 0, "the results' upload")
        late = gateway.output("late.jsonl")
        (archive,) = gateway.status()["archive"]
        assert (archive["rows"], archive["uploaded"]) == (0, len(TIMES_S))
    assert [event["event"]["ts"] - BASE_MS for event in archived(bucket)] == [
        int(at * 1000) for at in TIMES_S
    ]
    own = sorted(
        (record["keys"]["dev"], *(value[value["type"]] for value in record["values"]), record["window_start"],
         record["window_end"])
        for record in bucket_rows(bucket)
    )  # fmt: skip
    # By hand: windows end 3 s after the newest event; 3 comes after 15, 11 after 30, 20 after 41.
    assert len(own) == 7 and sum(row[1] for row in own) == 13
    assert sorted(event["ts"] - BASE_MS for event in late) == [3_000, 11_000, 20_000]

    rules, out = tmp_path / "gw" / "rules" / "r.yaml", tmp_path / "out"
    raw = bucket / ARCHIVE_FOLDER
    assert main(["cloud", "backfill", str(rules), str(raw), str(out)]) == 0
    copied = spark.read.parquet(str(out / "raw")).where("kind = 'insert'")
    assert copied.count() == len(TIMES_S)
    table = spark.read.parquet(str(out / "hot")).collect()
    again = sorted(tuple(row[name] for name in COLUMNS) for row in table if row["kind"] == "insert")
    still_open = [row for row in again if row[-1] > BASE_MS + 52_000]
    assert [row for row in again if row not in still_open] == own
    assert sum(row["kind"] == "late" for row in table) == len(late)


def archived(bucket: Path) -> list[dict[str, Any]]:
    """The archived events in the order of the files' names."""
    paths = sorted((bucket / ARCHIVE_FOLDER).rglob("*.jsonl.gz"))
    return [json.loads(line) for path in paths for line in gzip.decompress(path.read_bytes()).splitlines()]

"""`cloud reconcile`: what gateways uploaded beside a backfill of their events;
each difference has its reason."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from cloud_sync.declaration import CloudSettings
from cloud_sync.heartbeat import Pulse
from cloud_sync.names import arrival_name
from cloud_sync.records import Record
from cloud_sync.sink import RecordMaker
from cloud_sync.spark import backfill, job
from cloud_sync.spool import Spool
from cloud_sync.targets import open_target
from cloud_sync.uploader import Uploader, UploadSettings
from edge.cli import main
from rules.drive import Arrival, drive, in_runs
from sql import Engine
from tests.spark.support import DAY_MS

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]

RULES = """
streams: ["CREATE STREAM plant (dev string, n bigint, ts bigint) WITH (DATASOURCE='x', TIMESTAMP='ts')"]
rules:
- id: sums
  sql: >
    SELECT dev, count(n) AS c, sum(n) AS total, window_start() AS window_start, window_end() AS window_end
    FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)
  actions: [{cloud: {window: 1m}}]
- id: states
  sql: >
    SELECT dev, count(n) AS c, window_start() AS window_start FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)
  actions: [{cloud: {window: 1m, restates: true}}]
"""
EVENTS: list[Arrival] = [
    (DAY_MS + second * 1000, "plant", {"dev": "a", "n": second, "ts": DAY_MS + second * 1000})
    for second in (1, 4, 11, 12, 25, 31, 43)
]
"""One machine: windows at 0, 10, 20, 30 and, open at the end, 40 s."""


GATEWAYS = ("same", "gone", "bad", "old", "late", "full", "anew")
"""Those of which there are raw events."""


def emitted(text: str, events: list[Arrival], *, to_the_end: bool = False) -> dict[str, list[Record]]:
    """Rule to records: what a gateway with these rules makes of these events;
    of windows that are open at the end only if asked for."""
    known = backfill.compiled([(text, "r.yaml")], "UTC")
    plans = {rule: found.plan for rule, found in known.rules.items()}
    last_ms = max(at_ms for at_ms, _, _ in events)
    records: dict[str, list[Record]] = {rule: [] for rule in plans}
    for emission in drive(Engine(known.catalog.copied()), plans, in_runs(events, 1)):
        settings = known.rules[emission.rule].actions[0].settings
        assert isinstance(settings, CloudSettings)
        if emission.kind == "rows":
            records[emission.rule] += [
                RecordMaker(settings, emission.rule).record(row, emission.at_ms)
                for row in emission.inserted
                if to_the_end or row["window_start"] + 10_000 <= last_ms
            ]
    return records


def upload(bucket: Path, gateway: str, records: dict[str, list[Record]], *, beats: bool = True) -> None:
    """Upload records, a file each, and send a heartbeat."""
    with closing(Spool(bucket.parent / gateway / "spool.db", gateway)) as spool:
        for listed in records.values():
            spool.append(listed, DAY_MS)
        spool.commit(DAY_MS)
        target = open_target(str(bucket))
        Uploader(spool, target, UploadSettings(rows_max=1)).drain(DAY_MS)
        if beats:
            Pulse(spool, target, 1).beat(DAY_MS)


def raw(folder: Path, gateway: str, events: list[Arrival]) -> None:
    lines = [
        json.dumps({"at": at, "stream": stream, "event": event}).encode() for at, stream, event in events
    ]
    (folder / f"gw={gateway}").mkdir(parents=True)
    (folder / f"gw={gateway}" / "1.jsonl").write_bytes(b"\n".join(lines))


def early(record: Record) -> Record:
    """An earlier statement of the same window, over one event."""
    body = json.loads(record.body)
    body["values"][0]["int"] = 1
    return Record(record.rule, record.date, json.dumps(body | {"revision": body["revision"] - 1}).encode())


def files_of(bucket: Path, gateway: str, rule: str, total: int) -> list[Path]:
    """The files of a gateway and rule whose row has this count or total."""
    found = []
    for path in (bucket / "v2" / f"gw={gateway}" / f"rule={rule}").rglob("*.gz"):
        values = json.loads(gzip.decompress(path.read_bytes()))["values"]
        found += [path] if total in [value["int"] for value in values] else []
    return found


def test_every_difference_has_its_reason(
    bucket: Path, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, events, rows = tmp_path / "rules.yaml", tmp_path / "raw", tmp_path / "rows"
    rules.write_text(RULES, "utf-8")
    made = emitted(RULES, EVENTS)
    assert {rule: len(records) for rule, records in made.items()} == {"sums": 4, "states": 4}
    for gateway in GATEWAYS:
        raw(events, gateway, EVENTS)
    # One gateway is as it should be; of the others one thing each is wrong.
    upload(bucket, "same", made)
    upload(bucket, "gone", made)
    (lost,) = files_of(bucket, "gone", "sums", 25)
    upload(bucket, "bad", made)
    (torn,) = files_of(bucket, "bad", "sums", 31)
    torn.write_bytes(b"torn")
    for path in (lost, bucket / arrival_name(lost.relative_to(bucket).as_posix(), DAY_MS)):
        path.unlink()
    upload(bucket, "old", emitted(RULES.replace("sum(n)", "sum(n + 1)"), EVENTS))
    # The event of second 4 came after its window was closed; the raw events have another order.
    upload(
        bucket,
        "late",
        emitted(RULES, [*EVENTS[:1], *EVENTS[2:4], (EVENTS[4][0], "plant", EVENTS[1][2]), *EVENTS[4:]]),
    )
    upload(bucket, "full", {"sums": made["sums"][:3], "states": made["states"]})
    with closing(Spool(bucket.parent / "full" / "spool.db", "full")) as spool:
        beat = bucket / "v2-heartbeats" / "gw=full" / f"{spool.spool_id}.json"
    beat.write_text(json.dumps(json.loads(beat.read_text()) | {"dropped": 1}))
    upload(bucket, "anew", {"sums": made["sums"], "states": [early(made["states"][0]), *made["states"][1:]]})
    upload(bucket, "no raw", {"sums": made["sums"][:1], "states": []})
    assert (
        job.main(str(bucket), str(out), job.Options(lambda: DAY_MS, metrics_file="/dev/null"))
        == job.QUARANTINED
    )
    assert main(["cloud", "backfill", str(rules), str(events), str(rows)]) == 0
    capsys.readouterr()

    assert main(["cloud", "reconcile", str(rules), str(rows), str(out), "--format", "json"]) == 2
    sums, states = json.loads(capsys.readouterr().out)
    found = {(row["gateway"], row["window_start"] - DAY_MS): row["reason"] for row in sums["listed"]}
    open_ = {(gateway, 40_000): "not final" for gateway in GATEWAYS}
    assert found == open_ | {
        ("gone", 20_000): "missing upload",
        ("bad", 30_000): "quarantined",
        **{("old", start): "other rule" for start in (0, 10_000, 20_000, 30_000)},
        ("late", 0): "late data",
        ("full", 30_000): "dropped",
        ("no raw", 0): "no raw events",
    }
    assert sums["reasons"] == Counter(found.values()) and (sums["equal"], sums["refused"]) == (20, 0)
    (late,) = [row for row in sums["listed"] if row["reason"] == "late data"]
    assert late["detail"] == "1 events counted at the gateway, 2 in the backfill"
    assert states["reasons"] == {"not final": 7, "late data": 1, "restated": 1}
    (anew,) = [row for row in states["listed"] if row["reason"] == "restated"]
    assert anew["gateway"] == "anew" and anew["detail"].endswith("the backfill's is newer")

    assert (
        main(["cloud", "reconcile", str(rules), str(rows), str(out), "--rule", "sums", "--limit", "1"]) == 2
    )
    told = capsys.readouterr().out
    assert "rule sums: 20 windows equal, 16 differ\n" in told and "and 15 more (--limit)" in told
    rules.write_text(RULES.replace("sum(n)", "sum(n + 1)"), "utf-8")
    assert main(["cloud", "reconcile", str(rules), str(rows), str(out), "--rule", "sums"]) == 1
    assert "another version of rule sums" in capsys.readouterr().err

"""The cloud job on files that real spools and uploaders wrote: exact, repeatable, and not to
be fooled or stopped."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import shutil
import statistics
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.declaration import CloudSettings
from cloud_sync.heartbeat import Pulse
from cloud_sync.names import arrival_name, manifest_name
from cloud_sync.records import SpooledRow
from cloud_sync.sink import RecordMaker
from cloud_sync.spark import completeness, job, maintenance, report, tables, view
from cloud_sync.spark.storage import open_storage
from cloud_sync.spark.tables import Tables
from cloud_sync.spool import Spool
from cloud_sync.targets import open_target
from cloud_sync.upload_files import form_file, manifest
from cloud_sync.uploader import Uploader
from tests.spark.support import (
    DAY_MS,
    SETTINGS,
    Row,
    brute_force,
    data_files,
    fleet_table,
    now_ms,
    put,
    rows,
    run,
    upload,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]


def quarantine(spark: Any, out: Path) -> dict[str, str]:
    """File to reason."""
    return {row["file"]: row["reason"] for row in view.quarantine(spark, str(out)).collect()}


def test_a_fleet_over_days_of_trouble(
    spark: Any, bucket: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One bucket through everything that happens; after each event the table equals the brute force."""
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    sent: list[tuple[str, Row]] = []

    def send(gateway: str, count: int, **options: Any) -> list[str]:
        made = rows(rng, count, **options)
        sent.extend((gateway, row) for row in made)
        return upload(bucket, gateway, made, rows_max=40)

    for gateway in ("gw1", "gw2", "gw3"):
        send(gateway, 60)

    # The run ends between its last write and its commit: nothing has happened.
    with monkeypatch.context() as patch:
        patch.setattr(Tables, "commit", power_cut)
        assert run(bucket, out)[0] == job.FAILED
    assert "the power went off" in capsys.readouterr().err and (out / "records").exists()
    assert Tables(spark, open_storage(spark, str(out))).current().number == 0

    send("gw1", 5)
    code, metrics = run(bucket, out, show=True)
    assert (code, metrics["files"], metrics["rows"], metrics["version"]) == (job.OK, 7, 185, 1)
    table = fleet_table(spark, out)
    assert table == brute_force(sent), f"seed {seed}"
    assert "fleet of rule hot" in capsys.readouterr().out
    assert spark.conf.get("spark.sql.session.timeZone") == "Pacific/Kiritimati"  # the host's session

    # A late file; one cut, one not announced yet, a manifest of rubbish, lines that stop no run.
    send("gw2", 30)
    restored = rows(rng, 10)
    damaged = upload(bucket, "gw3", restored)
    whole = (bucket / damaged[0]).read_bytes()
    (bucket / damaged[0]).write_bytes(whole[:-9] + b"\0" * 9)
    waiting_rows = rows(rng, 10)
    waiting = upload(bucket, "gw1", waiting_rows)
    announcement = bucket / arrival_name(waiting[0], DAY_MS)
    hidden = announcement.rename(bucket.parent / "hidden.json")
    rubbish = announcement.with_name("r" * 250 + ".json")  # its file's name would be too long
    rubbish.write_text("no json", encoding="utf-8")
    evil = upload_evil(bucket)
    code, metrics = run(bucket, out, everything=True)
    assert (code, metrics["rows"], metrics["files"]) == (job.QUARANTINED, 30, 1)
    reasons = quarantine(spark, out)
    assert len(reasons) == metrics["quarantined"] == 6 and set(evil) < set(reasons)
    assert "sha256" in reasons[damaged[0]] and "no manifest (yet)" in reasons[waiting[0]]
    assert fleet_table(spark, out) == brute_force(sent), f"seed {seed}"

    # The file is restored, the announcement arrives, and the same rows come in another file.
    (bucket / damaged[0]).write_bytes(whole)
    hidden.rename(announcement)
    rubbish.unlink()
    sent.extend([("gw3", row) for row in restored] + [("gw1", row) for row in waiting_rows])
    again = upload_again(bucket)
    code, metrics = run(bucket, out, files_per_batch=4)
    assert (metrics["duplicates"], metrics["conflicting"], metrics["twins"]) == (again, 0, [])
    assert set(quarantine(spark, out)) == set(evil)
    table = fleet_table(spark, out)
    assert table == brute_force(sent), f"seed {seed}"
    known = {
        row["gateway"]: (row["rows"], row["missing"]) for row in view.gateways(spark, str(out)).collect()
    }
    assert known == {"gw1": (75, 0), "gw2": (90, 0), "gw3": (70, 0)}

    code, again_metrics = run(bucket, out)
    expected = (job.QUARANTINED, metrics["version"], 0)
    assert (code, again_metrics["version"], again_metrics["files"]) == expected


def upload_evil(bucket: Path) -> list[str]:
    """Well announced files of which no record may count: beyond the range of instants, no numbers."""
    body = b'{"window_start":%s,"window_end":0,"window":%s,"keys":{},"values":[]}'
    value = (
        b'{"window_start":1763683200000,"window_end":1763683200000,"window":60000,"keys":{},"values":[%s]}'
    )
    return [
        put(bucket, "gw9", [body % (b"0", b"9223372036854775807")]),
        put(bucket, "gw8", [body % (b"NaN", b"1")]),
        put(bucket, "gw7", [value % b'{"as":"n","merge":"sum","type":"float","float":1e999}']),
    ]


def power_cut(*_: object) -> None:
    raise OSError("the power went off")


def upload_again(bucket: Path) -> int:
    """Upload what two good files hold a second time, as one file under another name; the number of rows."""
    files = sorted((bucket / "v2" / "gw=gw2").rglob("*.jsonl.gz"))
    lines = [line for path in files[:2] for line in gzip.decompress(path.read_bytes()).splitlines()]
    found = sorted((json.loads(line) for line in lines), key=lambda fields: int(fields["seq"]))
    again = []
    for fields in found:
        identity = {name: fields.pop(name) for name in ("gateway", "spool", "rule", "seq")}
        again.append(SpooledRow(identity["seq"], "hot", "2025-11-21", 0, json.dumps(fields).encode(), 0))
    planned, content = form_file(again, "gw2", identity["spool"])
    target = open_target(str(bucket))
    assert target.put_if_absent(planned.name, content)
    target.put_if_absent(manifest_name(planned.name), manifest(planned, "gw2", identity["spool"]))
    return len(again)


def test_one_identity_with_two_contents_counts_once_whatever_came_first(
    spark: Any, bucket: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A disk is set back: its sequence numbers come again, with other rows, on another day too."""
    first = rows(random.Random(1), 6)
    second = rows(random.Random(2), 6, first_minute=1_440)
    other = tmp_path / "other"
    other.mkdir()
    for target, parts in ((bucket, (first, second)), (other, (second, first))):
        disk = target.parent / "gw1"
        upload(target, "gw1", [])
        if target is bucket:
            shutil.copytree(disk, tmp_path / "copy")
        else:
            shutil.rmtree(disk)
            shutil.copytree(tmp_path / "copy", disk)
        for number, part in enumerate(parts):
            upload(target, "gw1", part)
            shutil.rmtree(disk)
            shutil.copytree(tmp_path / "copy", disk)
            code, metrics = run(target, target.parent / f"out-{target.name}")
            assert (metrics["rows"], metrics["conflicting"]) == (6, 6 * number)
            assert (code, metrics["copied"]) == ((job.QUARANTINED, ["gw1"]) if number else (job.OK, []))
    told = capsys.readouterr().err.splitlines()
    sentence = (
        "penstock cloud aggregate: conflicting records: 6, of gateways gw1: each has the number of another"
    )
    assert len([line for line in told if line.startswith(sentence)]) == 2
    for target in (bucket, other):
        (gateway,) = completeness.gateways(spark, str(tmp_path / f"out-{target.name}")).collect()
        assert [gateway[name] for name in ("rows", "conflicting", "missing")] == [6, 6, 0]
        assert gateway["state"] == ["duplicate", "conflicting"]
    one, two = (fleet_table(spark, tmp_path / f"out-{target.name}") for target in (bucket, other))
    assert one == two and sum(line[-1] for line in one.values()) == 6
    assert {start // 86_400_000 for start, _ in one} == {DAY_MS // 86_400_000, DAY_MS // 86_400_000 + 1}, (
        "both occur"
    )
    kept = view.records(spark, str(tmp_path / f"out-{bucket.name}"))
    assert kept.count() == 6


def test_rules_levels_and_a_column_that_changed_its_meaning(spark: Any, bucket: Path, out: Path) -> None:
    hour = 3_600_000
    one = {"window_start": DAY_MS, "window_end": DAY_MS, "line": "x", "n": 2}
    next_day = {**one, "window_start": DAY_MS + 24 * hour, "window_end": DAY_MS + 24 * hour}
    declared = {"keys": ["line"], "window": ["1h", "1d", "1mo"]}
    count = CloudSettings.model_validate(declared | {"merge": {"n": "count"}})
    total = CloudSettings.model_validate(declared | {"merge": {"n": "sum"}})
    alerts = CloudSettings.model_validate({"keys": ["line"], "window": "1d", "zone": "Europe/Berlin"})
    upload(bucket, "gw1", [one, next_day], rule="shift", settings=count)
    upload(bucket, "gw1", [{"window_start": DAY_MS, "line": "y"}] * 3, rule="alert 1", settings=alerts)
    made_of = {"kind": "stddev", "sum": "s", "count": "n"}
    deviation = CloudSettings.model_validate({"keys": [], "window": "1d", "merge": {"sd": made_of}})
    for gateway, heard in (("gw1", [1, 2, 4]), ("gw2", [10, 20])):
        row = {"window_start": DAY_MS, "sd": statistics.stdev(heard), "s": sum(heard), "n": len(heard)}
        upload(bucket, gateway, [row], rule="spread", settings=deviation)
    assert run(bucket, out)[0] == job.OK
    (spread,) = view.fleet(spark, str(out), "spread").collect()
    assert spread["sd"] == pytest.approx(statistics.stdev([1, 2, 4, 10, 20]), rel=1e-15)
    shift = view.fleet(spark, str(out), "shift").collect()
    assert sorted((row["level"], row["n"], row["records"]) for row in shift) == [
        ("1d", 2, 1),
        ("1d", 2, 1),
        ("1h", 2, 1),
        ("1h", 2, 1),
        ("1mo", 4, 2),
    ]
    (alert,) = (
        view.fleet(spark, str(out), "alert 1").selectExpr("*", "unix_millis(window_start) AS at").collect()
    )
    assert (alert["line"], alert["records"], alert["gateways"], alert["at"]) == ("y", 3, 1, DAY_MS - hour)

    before = Tables(spark, open_storage(spark, str(out))).current()
    upload(bucket, "gw1", [{**one, "n": 2.5}], rule="shift", settings=total)
    assert run(bucket, out)[0] == job.OK
    after = Tables(spark, open_storage(spark, str(out))).current()
    written = {key for key, path in after.fleet.items() if before.fleet.get(key) != path}
    assert written == {
        "of_rule=shift/of_level=1h/of_day=2025-11-21",
        "of_rule=shift/of_level=1d/of_day=2025-11-21",
        "of_rule=shift/of_level=1mo/of_day=2025-11-01",
    }
    shift = view.fleet(spark, str(out), "shift", level="1d").orderBy("window_start").collect()
    assert [(row["n_count_int"], row["n_sum_float"], row["records"]) for row in shift] == [
        (2, 2.5, 2),
        (2, None, 1),
    ]


def test_a_gateway_is_forgotten_and_old_days_are_dropped(spark: Any, bucket: Path, out: Path) -> None:
    old, mine, theirs = (
        rows(random.Random(seed), 20, first_minute=day * 1_440) for seed, day in ((1, 0), (2, 1), (3, 1))
    )
    upload(bucket, "gw1", old + mine, rows_max=10)
    upload(bucket, "gw2", theirs)
    assert run(bucket, out, files_per_batch=2)[1]["batches"] == 3
    killed = out / "records" / "run=killed"
    killed.mkdir()
    assert maintenance.compact(spark, str(out), now_ms) == 1 and not killed.exists()
    assert fleet_table(spark, out) == brute_force(
        [("gw1", row) for row in old + mine] + [("gw2", row) for row in theirs]
    )

    assert maintenance.forget(spark, str(out), maintenance.Forgotten("gw1"), now_ms) == 40
    assert fleet_table(spark, out) == brute_force([("gw2", row) for row in theirs])
    assert maintenance.forget(spark, str(out), maintenance.Forgotten("gw1"), now_ms) == 0

    tomorrow = now_ms() + 86_400_000
    assert maintenance.retain(spark, str(out), 1, lambda: tomorrow) == 0, "nothing of the first day is left"
    assert maintenance.retain(spark, str(out), 1, lambda: tomorrow + 86_400_000) == 2
    upload(bucket, "gw2", rows(random.Random(4), 5))
    metrics = run(bucket, out)[1]
    assert (metrics["rows"], metrics["expired"]) == (5, 5)
    assert view.records(spark, str(out)).count() == 0
    run(bucket, out, now_ms=lambda: tomorrow + 3 * 86_400_000, retain_days=2)
    assert Tables(spark, open_storage(spark, str(out))).current().retained_from == "2025-11-24"


def test_heartbeats_make_loss_countable(spark: Any, bucket: Path, out: Path) -> None:
    first = rows(random.Random(1), 20)
    names = upload(bucket, "gw1", first, rows_max=10)
    with closing(Spool(bucket.parent / "gw1" / "spool.db", "gw1")) as spool:
        spool.append([RecordMaker(SETTINGS, "hot").record(row, 0) for row in first[:3]], DAY_MS)
        spool.commit(DAY_MS)
        Pulse(spool, open_target(str(bucket)), 1).beat(DAY_MS)
    (bucket / names[0]).unlink()
    (bucket / arrival_name(names[0], DAY_MS)).unlink()
    foreign = bucket / "v2-heartbeats" / "gw=gw1" / "x.json"
    foreign.write_bytes(b'{"gateway": "gw2", "spool": "x", "at": "now"}')
    old = upload(bucket, "gw2", rows(random.Random(2), 10), rows_max=4)
    for name in (old[0], arrival_name(old[0], DAY_MS)):
        (bucket / name).unlink()
    assert run(bucket, out)[0] == job.OK
    found, without = view.gateways(spark, str(out)).orderBy("gateway").collect()
    assert (found["rows"], found["highest_seq"], found["missing"], found["waiting"]) == (10, 23, 10, 3)
    assert (without["rows"], without["missing"], without["heartbeat"]) == (6, 4, None), (
        "by sequence numbers alone"
    )
    assert found["clock_behind_ms"] == found["heartbeat"].timestamp() * 1000 - DAY_MS
    reasons = quarantine(spark, out)
    assert list(reasons) == ["v2-heartbeats/gw=gw1/x.json"] and all(
        "below 0" in reason for reason in reasons.values()
    )

    version = Tables(spark, open_storage(spark, str(out))).current().number
    assert run(bucket, out)[1]["version"] == version, "the same heartbeats are nothing new"
    foreign.unlink()
    with closing(Spool(bucket.parent / "gw1" / "spool.db", "gw1")) as spool:
        Uploader(spool, open_target(str(bucket))).drain(DAY_MS)
        Pulse(spool, open_target(str(bucket)), 1).beat(DAY_MS + 1)
    assert run(bucket, out)[1]["version"] == version + 1
    found = view.gateways(spark, str(out)).where("gateway = 'gw1'").collect()[0]
    assert (found["rows"], found["missing"], found["waiting"], found["lost"]) == (13, 10, 0, 0)


def test_two_machines_under_one_gateway_id_are_named(
    spark: Any, bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, "gw1", rows(random.Random(1), 5))
    shutil.rmtree(bucket.parent / "gw1")
    upload(bucket, "gw1", rows(random.Random(2), 5))
    code, metrics = run(bucket, out)
    assert (code, metrics["twins"], metrics["rows"]) == (job.OK, ["gw1"], 10)
    assert "two machines at a time send as gateway gw1: give each" in capsys.readouterr().err
    html = report.page(spark, str(out))
    assert (
        html.count("<td>gw1</td>") == 2
        and "<h1>Fleet, version 1</h1>" in html
        and "<h2>Newest runs (1)</h2>" in html
    )


def test_a_dry_run_checks_everything_and_writes_nothing(
    bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, "gw1", rows(random.Random(1), 20), rows_max=10)
    (bucket / data_files(bucket)[0]).unlink()
    code, metrics = run(bucket, out, dry_run=True)
    assert (code, metrics["files"], metrics["quarantined"]) == (job.QUARANTINED, 1, 1)
    assert not out.exists()
    assert run(bucket, out)[0] == job.QUARANTINED
    dry, wet = (line for line in capsys.readouterr().err.splitlines() if line.startswith("penstock"))
    assert dry == "penstock cloud aggregate: files that do not count: 1, records: 0"
    assert wet == f"{dry}; see why with: penstock cloud report {out}"


def test_an_empty_file_is_not_a_missing_one(spark: Any, bucket: Path, out: Path) -> None:
    (name,) = upload(bucket, "gw1", rows(random.Random(1), 3))
    (bucket / name).write_bytes(b"")
    assert run(bucket, out)[0] == job.QUARANTINED
    assert quarantine(spark, out)[name].startswith("the file has 0 bytes, the manifest says ")
    (bucket / arrival_name(name, DAY_MS)).write_bytes(b"")
    assert run(bucket, out)[0] == job.QUARANTINED
    assert quarantine(spark, out)[name] == "the manifest is empty: it was damaged in the bucket"


def test_a_failure_of_spark_has_its_cause_and_metrics_are_never_lost(
    spark: Any, bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, "gw1", rows(random.Random(1), 3, minutes=1))
    options = job.Options(now_ms=now_ms, metrics_file=str(out.parent / "none" / "metrics.json"))
    assert job.main(str(bucket), str(out), options) == job.FAILED
    told = capsys.readouterr()
    assert json.loads(told.out)["rows"] == 3 and "--metrics: no such file or directory" in told.err
    for part in (out / "fleet").rglob("*.parquet"):
        part.write_bytes(b"no Parquet at all")
        part.with_name(f".{part.name}.crc").unlink(missing_ok=True)
    upload(bucket, "gw1", rows(random.Random(2), 3, minutes=1))
    assert run(bucket, out)[0] == job.FAILED
    failure = capsys.readouterr().err
    assert "is not a Parquet file" in failure and failure.endswith("make the tables anew in an empty OUT\n")


def test_a_second_run_is_refused_while_one_works(
    spark: Any, bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cloud_sync.spark.lease import held

    upload(bucket, "gw1", rows(random.Random(1), 3, minutes=1))
    with held(open_storage(spark, str(out)), "first", now_ms):
        assert run(bucket, out)[0] == job.FAILED
    assert "run first (process" in capsys.readouterr().err
    assert run(bucket, out)[0] == job.OK


def test_of_two_runs_one_commits(spark: Any, out: Path) -> None:
    both = [Tables(spark, open_storage(spark, str(out))) for _ in range(2)]
    both[0].commit(tables.Version(1, "a"))
    with pytest.raises(tables.Overtaken, match="another run has written version 1"):
        both[1].commit(tables.Version(1, "b"))
    assert both[1].current().run == "a"
    content = (out / "_versions" / "000000000001.json").read_bytes()
    assert (
        hashlib.sha256(content).hexdigest()
        == hashlib.sha256(tables.encode(tables.Version(1, "a"))).hexdigest()
    )

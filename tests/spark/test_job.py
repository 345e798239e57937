"""The cloud job on files that real spools and uploaders wrote: exact, repeatable, and not to be fooled."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.declaration import CloudSettings
from cloud_sync.layout import form_file, manifest, manifest_name
from cloud_sync.records import SpooledRow
from cloud_sync.spark import job
from cloud_sync.spark.bucket import mirror
from cloud_sync.targets import open_target
from tests.spark.support import DAY_MS, Row, brute_force, data_files, fleet_table, rows, upload
from tests.unit.cloud_sync.support import MemoryTarget

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    path = tmp_path / "bucket"
    path.mkdir()
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def run(bucket: Path, out: Path, **options: Any) -> tuple[int, dict[str, Any]]:
    """The job's exit code and metrics."""
    report = out.parent / "metrics.json"
    report.unlink(missing_ok=True)
    code = job.main(str(bucket), str(out), metrics_file=str(report), **options)
    return code, json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}


def quarantine(out: Path) -> dict[str, str]:
    """Name to reason, of all batches."""
    lines = [line for path in (out / "quarantine").glob("*.jsonl") for line in path.read_text().splitlines()]
    return {entry["name"]: entry["reason"] for entry in map(json.loads, lines)}


def test_a_fleet_over_days_of_trouble(spark: Any, bucket: Path, out: Path) -> None:
    """One bucket through everything that happens to buckets; after each event the table equals the brute force."""
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    sent: list[tuple[str, Row]] = []

    def send(gateway: str, count: int, **options: Any) -> list[str]:
        made = rows(rng, count, **options)
        sent.extend((gateway, row) for row in made)
        return upload(bucket, gateway, made, rows_max=40)

    # Three gateways, several files each.
    for gateway in ("gw1", "gw2", "gw3"):
        send(gateway, 100)
    code, metrics = run(bucket, out)
    assert (code, metrics["files"], metrics["rows"]) == (job.OK, 9, 300)
    table = fleet_table(spark, out)
    assert table == brute_force(sent), f"seed {seed}"

    # Nothing new: nothing happens.
    assert run(bucket, out) == (job.OK, {**metrics, "batches": 0, "files": 0, "rows": 0, "rules": {}})
    assert fleet_table(spark, out) == table

    # A file of old windows comes late; another is cut, a third is not announced yet, a manifest is rubbish.
    send("gw2", 30)
    damaged = upload(bucket, "gw3", rows(rng, 10))
    (bucket / damaged[0]).write_bytes((bucket / damaged[0]).read_bytes()[:-9] + b"\0" * 9)
    waiting_rows = rows(rng, 10)
    waiting = upload(bucket, "gw1", waiting_rows)
    announcement = bucket / manifest_name(waiting[0])
    hidden = announcement.rename(bucket.parent / "hidden.json")
    rubbish = bucket / "v1-manifests" / "gw=gw1" / "rubbish.json"
    rubbish.write_text("no json", encoding="utf-8")
    code, metrics = run(bucket, out)
    assert (code, metrics["quarantined"], metrics["unlisted"], metrics["rows"]) == (job.QUARANTINED, 2, 1, 30)
    reasons = quarantine(out)
    assert "sha256" in reasons[damaged[0]] and "no manifest" in reasons[waiting[0]]
    assert any("is no manifest" in reason for reason in reasons.values()) and len(reasons) == 3
    assert fleet_table(spark, out) == brute_force(sent), f"seed {seed}"

    # The announcement arrives after all. The same rows come once more in other files.
    hidden.rename(announcement)
    rubbish.unlink()
    sent.extend(("gw1", row) for row in waiting_rows)
    upload_again(bucket)
    code, metrics = run(bucket, out)
    assert (code, metrics["unlisted"], metrics["conflicting"]) == (job.OK, 0, 0)
    table = fleet_table(spark, out)
    assert table == brute_force(sent), f"seed {seed}"

    # The checkpoint is lost: everything is read again, and counts once.
    shutil.rmtree(out / "_checkpoint")
    code, metrics = run(bucket, out, files_per_batch=7)
    assert code == job.QUARANTINED and metrics["batches"] >= 2, "the damaged file is met again"
    assert fleet_table(spark, out) == table


def upload_again(bucket: Path) -> None:
    """Upload what two good files hold a second time, as one file under another name with a manifest of its own."""
    files = sorted((bucket / "v1" / "gw=gw2").rglob("*.jsonl.gz"))
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


def test_a_crash_in_the_middle_of_a_batch_is_repaired(
    spark: Any, bucket: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = rows(random.Random(1), 50)
    upload(bucket, "gw1", sent)

    def crash(*_: object) -> None:
        raise RuntimeError("the power went off")

    with monkeypatch.context() as patch:
        patch.setattr(job.Job, "_refresh", crash)
        code, _ = run(bucket, out)
    assert code == job.FAILED and "Spark failed" in capsys.readouterr().err
    assert (out / "rows").exists() and not (out / "fleet").exists()
    assert run(bucket, out)[0] == job.OK
    assert fleet_table(spark, out) == brute_force([("gw1", row) for row in sent])


def test_two_rules_two_days_and_a_column_that_changed_its_meaning(spark: Any, bucket: Path, out: Path) -> None:
    one = {"window_start": DAY_MS, "window_end": DAY_MS, "line": "x", "n": 2}
    next_day = {**one, "window_start": DAY_MS + 86_400_000, "window_end": DAY_MS + 86_400_000}
    count = CloudSettings.model_validate({"keys": ["line"], "merge": {"n": "count"}, "window": "1h"})
    total = CloudSettings.model_validate({"keys": ["line"], "merge": {"n": "sum"}, "window": "1h"})
    upload(bucket, "gw1", [one, next_day], rule="shift", settings=count)
    upload(bucket, "gw1", [{"window_start": DAY_MS, "line": "y"}] * 3, rule="alert 1", settings=alerts())
    code, metrics = run(bucket, out)
    assert (code, metrics["rules"]) == (job.OK, {"alert 1": 1, "shift": 2})
    shift = spark.read.parquet(str(out / "fleet" / "rule=shift"))
    assert sorted((str(row["date"]), row["line"], row["n"], row["rows"]) for row in shift.collect()) == [
        ("2025-11-21", "x", 2, 1),
        ("2025-11-22", "x", 2, 1),
    ]
    alert = spark.read.parquet(str(out / "fleet" / "rule=alert~201")).collect()
    assert [(row["line"], row["rows"], row["gateways"]) for row in alert] == [("y", 3, 1)]

    upload(bucket, "gw1", [{**one, "n": 2.5}], rule="shift", settings=total)
    assert run(bucket, out)[0] == job.OK
    shift = spark.read.parquet(str(out / "fleet" / "rule=shift"))
    assert sorted(
        (str(row["date"]), row["n_count_int"], row["n_sum_float"], row["rows"]) for row in shift.collect()
    ) == [
        ("2025-11-21", 2, 2.5, 2),
        ("2025-11-22", 2, None, 1),
    ]


def alerts() -> CloudSettings:
    """Alerts carry no values: the fleet table counts them."""
    return CloudSettings.model_validate({"keys": ["line"], "window": "1d"})


def test_a_set_back_disk_is_noticed(spark: Any, bucket: Path, out: Path) -> None:
    first, second = (rows(random.Random(seed), 5) for seed in (1, 2))
    disk = bucket.parent / "gw1"
    upload(bucket, "gw1", [])
    shutil.copytree(disk, bucket.parent / "copy")
    upload(bucket, "gw1", first)
    shutil.rmtree(disk)
    shutil.copytree(bucket.parent / "copy", disk)
    upload(bucket, "gw1", second)
    code, metrics = run(bucket, out)
    assert (code, metrics["rows"], metrics["conflicting"]) == (job.OK, 10, 5)
    assert sum(line[-1] for line in fleet_table(spark, out).values()) == 5


def test_a_dry_run_checks_everything_and_writes_nothing(
    bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, "gw1", rows(random.Random(1), 20), rows_max=10)
    (bucket / data_files(bucket)[0]).unlink()
    code, metrics = run(bucket, out, dry_run=True)
    assert (code, metrics["files"], metrics["quarantined"]) == (job.QUARANTINED, 1, 1)
    assert not out.exists()


def test_an_empty_bucket_is_fine_and_a_missing_one_is_not(
    bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bucket, out)[0] == job.OK
    assert job.main(str(bucket / "none"), str(out)) == job.FAILED
    assert "there is no bucket directory" in capsys.readouterr().err


def test_the_fleet_table_is_shown(bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    upload(bucket, "gw1", rows(random.Random(1), 5))
    assert run(bucket, out, show=True)[0] == job.OK
    shown = capsys.readouterr().out
    assert "rule=hot" in shown and "avg_temp" in shown and "2025-11-21 00:0" in shown


def test_an_object_store_is_mirrored_once(bucket: Path, tmp_path: Path) -> None:
    upload(bucket, "gw1", rows(random.Random(1), 20), rows_max=10)
    source = MemoryTarget()
    for path in bucket.rglob("*.*"):
        if path.is_file():
            source.put_if_absent(path.relative_to(bucket).as_posix(), path.read_bytes())
    assert mirror(source, tmp_path / "mirror") == 4
    assert sorted(data_files(tmp_path / "mirror")) == sorted(data_files(bucket))
    assert mirror(source, tmp_path / "mirror") == 0

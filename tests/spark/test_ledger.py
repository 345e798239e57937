"""The table of files: what a run reads of it, and what it tells of files that come again."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from cloud_sync.names import arrival_hour, arrival_name, manifest_name
from cloud_sync.spark import arrivals, job, view
from cloud_sync.spark.ledger import files, quarantine
from cloud_sync.spark.storage import open_storage
from cloud_sync.spark.tables import TIER, Part, Tables, Version, local
from tests.spark.support import DAY_MS, brute_force, fleet_table, put, rows, run, stated, upload

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]
HOUR_MS = 3_600_000


def told(spark: Any, out: Path) -> list[tuple[Any, ...]]:
    """Of each gateway: rows that count, that came again, that are missing."""
    found = view.gateways(spark, str(out)).orderBy("gateway").collect()
    return [(row["gateway"], row["rows"], row["duplicates"], row["missing"]) for row in found]


def test_a_file_announced_in_two_hours_counts_once(spark: Any, bucket: Path, out: Path) -> None:
    """A gateway that broke off behind its upload announces it again when it is back, days later."""
    sent = rows(random.Random(1), 6)
    names = upload(bucket, "gw1", sent, rows_max=3)
    assert run(bucket, out)[1]["files"] == 2
    for days in (-30, -20):
        again = bucket / arrival_name(names[0], DAY_MS + days * 24 * HOUR_MS)
        again.parent.mkdir(parents=True)
        shutil.copy(bucket / arrival_name(names[0], DAY_MS), again)
        metrics = run(bucket, out)[1]
        assert (metrics["files"], metrics["rows"], metrics["duplicates"]) == (0, 0, 0)
    version = run(bucket, out)[1]["version"]
    assert run(bucket, out)[1]["version"] in (version, version + 1)
    assert told(spark, out) == [("gw1", 6, 0, 0)]
    assert fleet_table(spark, out) == brute_force([("gw1", row) for row in sent])


def test_tables_of_an_earlier_version_are_read(spark: Any, bucket: Path, out: Path) -> None:
    """They have no hours and no table of spools."""
    rng = random.Random(2)
    sent = rows(rng, 8)
    upload(bucket, "gw1", sent, rows_max=4)
    run(bucket, out)
    shutil.rmtree(out / "spools")
    tables = Tables(spark, open_storage(spark, str(out)))
    for part in tables.current().files:
        earlier = files.read(tables, tables.current()).drop("hour", "conflicting").collect()
        schema = files.FILES.removesuffix(", hour STRING").replace("conflicting BIGINT, ", "")
        tables.write(spark.createDataFrame(earlier, schema), part.path)
    for path in (out / "_versions").glob("*.json"):
        found = json.loads(path.read_bytes())
        del found["spools"]
        path.write_text(json.dumps(found), encoding="utf-8")
    assert told(spark, out) == [("gw1", 8, 0, 0)]
    later = rows(rng, 3)
    upload(bucket, "gw1", later)
    assert run(bucket, out)[1]["files"] == 1
    assert told(spark, out) == [("gw1", 11, 0, 0)]
    assert fleet_table(spark, out) == brute_force([("gw1", row) for row in sent + later])


def test_a_run_reads_of_the_table_only_what_it_lists(spark: Any, out: Path) -> None:
    """Eight parts of 25,000 files, a hundred an hour, become one; of it a run reads a page or two."""
    tables = Tables(spark, open_storage(spark, str(out)))
    hours = 2_000
    names = [arrival_hour(DAY_MS + hour * HOUR_MS) for hour in range(hours)]
    hour = F.element_at(F.array(*map(F.lit, names)), (F.col("id") / 100 + 1).cast("INT"))
    empty = spark.createDataFrame([], files.FILES)
    version = Version()
    for number in range(TIER):
        listed = spark.range(number, hours * 100, TIER).select(
            F.concat(F.lit("file"), F.col("id")).alias("manifest"), hour.alias("hour")
        )
        version.files.append(Part(f"files/run={number}", hours * 100 // TIER))
        tables.write(empty.unionByName(listed, allowMissingColumns=True), version.files[-1].path)
    version.files = tables.merged(version.files, "all", "files", files.FILES, files.ORDER)
    assert len(version.files) == 1
    known = files.known(tables, version, [names[1_000], names[1_001]])
    assert sorted(row[0] for row in known.collect()) == sorted(f"file{at}" for at in range(100_000, 100_200))
    assert _rows_read(known) <= hours * 100 // 4


def test_a_run_looks_again_at_some_of_the_files_in_quarantine_in_turn(
    spark: Any, bucket: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five files are damaged. When their hour is not listed any more, a run looks at two of them."""
    monkeypatch.setattr(arrivals, "IN_TURN", 0)
    monkeypatch.setattr(quarantine, "LOOKED_AT", 2)
    sent = rows(random.Random(4), 10)
    names = upload(bucket, "gw1", sent, rows_max=2)
    whole = {name: (bucket / name).read_bytes() for name in names}
    for name in names:
        (bucket / name).write_bytes(whole[name][:-1])

    def looked(hour: int) -> tuple[int, int, set[str]]:
        """Numbers of files that count and that do not, and of the latter those that the run has looked at."""
        _, metrics = run(bucket, out, now_ms=lambda: DAY_MS + hour * HOUR_MS)
        found = view.quarantine(spark, str(out)).collect()
        assert len(found) == metrics["quarantined"]
        return metrics["files"], len(found), {row["file"] for row in found if metrics["run"] in row["run"]}

    first, second, *_, last = sorted(names)
    assert looked(0) == (0, 5, {*names})
    assert looked(5) == (0, 5, {*names})  # listed: nobody has looked since
    assert looked(6) == (0, 5, {*sorted(names)[2:4]})
    assert looked(7) == (0, 5, {last, first})
    (bucket / second).write_bytes(whole[second])
    assert run(bucket, out, now_ms=lambda: DAY_MS + 8 * HOUR_MS, dry_run=True)[1]["quarantined"] == 4
    assert looked(8) == (1, 4, {sorted(names)[2]})
    for name in names:
        (bucket / name).write_bytes(whole[name])
    assert looked(9) == (2, 2, set())
    assert looked(10) == (2, 0, set())
    assert fleet_table(spark, out) == brute_force([("gw1", row) for row in sent])


def test_files_in_quarantine_may_be_of_any_number_of_hours(spark: Any, bucket: Path, out: Path) -> None:
    """The 1,500 files have left the bucket meanwhile, so they leave the table when they are looked at."""
    upload(bucket, "gw1", rows(random.Random(5), 2))
    run(bucket, out)
    tables = Tables(spark, open_storage(spark, str(out)))
    version, gone = tables.current().copy(), []
    for number in range(1_500):
        name = f"v2/gw=gw1/rule=hot/date=2025-11-20/{number}-{number}-ab.jsonl.gz"
        place = arrival_name(name, DAY_MS - number * HOUR_MS)
        gone.append((manifest_name(name), name, "the file is not there", "0", place))
    tables.write(local(spark, gone, quarantine.QUARANTINE), "quarantine/run=0")
    version.number, version.quarantine = version.number + 1, [Part("quarantine/run=0")]
    tables.commit(version)
    assert [run(bucket, out)[1]["quarantined"] for _ in range(2)] == [500, 0]


def test_a_run_that_is_killed_between_batches_takes_files_out_of_quarantine_once(
    spark: Any, bucket: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = rows(random.Random(6), 6)
    names = upload(bucket, "gw1", sent, rows_max=2)
    whole = {name: (bucket / name).read_bytes() for name in names}
    for name in names:
        (bucket / name).write_bytes(b"damaged")
    assert run(bucket, out)[1]["quarantined"] == 3
    for name in names:
        (bucket / name).write_bytes(whole[name])
    commit = Tables.commit

    def commit_and_cut(tables: Tables, version: Version) -> None:
        commit(tables, version)
        raise OSError("the power went off")

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "commit", commit_and_cut)
        assert run(bucket, out, files_per_batch=1)[0] == job.FAILED
    assert told(spark, out) == [("gw1", 2, 0, 0)]
    assert run(bucket, out)[1]["files"] == 2
    assert view.quarantine(spark, str(out)).isEmpty() and told(spark, out) == [("gw1", 6, 0, 0)]
    assert fleet_table(spark, out) == brute_force([("gw1", row) for row in sent])


def _rows_read(frame: Any) -> int:
    """The rows that the scan of a collected frame has read."""
    plan = frame._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves()
    return int(leaves.head().metrics().apply("numOutputRows").value())


def test_a_run_leaves_nothing_in_spark_s_cache(spark: Any, bucket: Path, out: Path) -> None:
    """Windows are stated anew, and rows come again with another content."""
    first = rows(random.Random(3), 4)
    upload(bucket, "gw1", first)
    put(bucket, "evil", [stated(0, 1), stated(10_000, 5, revision=1)])
    run(bucket, out)
    put(bucket, "evil", [stated(0, 2), stated(10_000, 7, revision=2)])
    assert run(bucket, out)[1]["conflicting"] == 2
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()

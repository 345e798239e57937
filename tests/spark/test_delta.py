"""The fleet as a Delta table: what the versions say, after each run, on the pair of Spark
and Delta that is pinned.

`make delta` runs it. Elsewhere it is skipped: the newest Spark, which the other tests use, has no Delta.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.spark import job, maintenance, view
from cloud_sync.spark.session import SparkMissing, delta_settings, prepare_process, start_settings
from tests.spark.conftest import SMALL
from tests.spark.support import DAY_MS, rows, upload

pytestmark = [pytest.mark.spark, pytest.mark.slow]


QUICK = {"spark.databricks.delta.snapshotPartitions": "1"}
"""A log of three commits needs no fifty tasks."""


def now_ms() -> int:
    return DAY_MS


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session that knows Delta."""
    try:
        from pyspark.sql import SparkSession

        settings = start_settings("local[2]") | SMALL | QUICK | delta_settings()
    except (ImportError, SparkMissing) as missing:
        if os.environ.get("PENSTOCK_REQUIRE_DELTA"):
            raise
        pytest.skip(str(missing))
    prepare_process()
    settings["spark.sql.warehouse.dir"] = str(tmp_path_factory.mktemp("warehouse"))
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def run(bucket: Path, out: Path, **options: Any) -> int:
    return job.main(str(bucket), str(out), job.Options(now_ms, metrics_file=os.devnull, **options))


def delta(spark: Any, out: Path) -> list[Any]:
    table = spark.read.format("delta").load(f"{out}/delta/fleet").drop("of_rule", "of_level", "of_day")
    return sorted(map(repr, table.select(sorted(table.columns)).collect()))


def versions(spark: Any, out: Path) -> list[Any]:
    """The fleet of the newest version, as the Delta table has to show it."""
    from cloud_sync.spark.fleet import FLEET
    from cloud_sync.spark.storage import open_storage
    from cloud_sync.spark.tables import Tables

    tables = Tables(spark, open_storage(spark, str(out)))
    table = tables.read(tables.current().fleet.values(), FLEET).drop("state")
    return sorted(map(repr, table.select(sorted(table.columns)).collect()))


def test_the_delta_table_is_the_newest_version(spark: Any, bucket: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    upload(bucket, "gw1", rows(random.Random(1), 20) + rows(random.Random(2), 20, first_minute=1_440))
    assert run(bucket, out, delta=True) == job.OK
    assert delta(spark, out) == versions(spark, out) != []

    upload(bucket, "gw2", rows(random.Random(3), 5, first_minute=1_440))
    upload(bucket, "gw2", rows(random.Random(4), 5), rule="cold")
    assert run(bucket, out) == job.OK, "a run without Delta leaves it behind"
    upload(bucket, "gw2", rows(random.Random(5), 5, first_minute=2_880))
    assert run(bucket, out, delta=True) == job.OK
    assert delta(spark, out) == versions(spark, out)
    history = spark.sql(f"DESCRIBE HISTORY delta.`{out}/delta/fleet`").collect()
    assert [row["operation"] for row in history] == ["MERGE", "WRITE"]

    assert maintenance.forget(spark, str(out), maintenance.Forgotten("gw2"), now_ms) == 15
    assert run(bucket, out, delta=True) == job.OK
    assert delta(spark, out) == versions(spark, out)
    assert {row["rule"] for row in spark.read.format("delta").load(f"{out}/delta/fleet").collect()} == {"hot"}
    assert view.fleet(spark, str(out), "hot").count() == len(delta(spark, out))
    assert run(bucket, out, delta=True) == job.OK
    assert len(spark.sql(f"DESCRIBE HISTORY delta.`{out}/delta/fleet`").collect()) == 3, (
        "nothing new, no commit"
    )

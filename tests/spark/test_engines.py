"""The job on other engines than a local session: workers in processes of their own, Spark Connect,
and Delta tables on S3.

`make engines` runs it: the cluster and Spark Connect on the newest Spark,
S3 on the pair of Spark and Delta that is pinned, with a server from PyPI
and the connector from Maven Central.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from cloud_sync.spark import job
from cloud_sync.spark.session import delta_settings, prepare_process, start_settings
from cloud_sync.spark.storage import open_storage
from tests.spark.conftest import SMALL
from tests.spark.crash import line, newest
from tests.spark.engines import CLUSTER, connect_server, submitting
from tests.spark.support import DAY_MS, Row, brute_force, fleet_table, rows, upload
from tests.support.ports import free_port, listens
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.5.0"
QUICK = {"spark.databricks.delta.snapshotPartitions": "1"}
LONGEST_S = 600
"""A run takes 10 s, and more than a minute on a machine that is busy with other work."""
REQUIRED = "PENSTOCK_REQUIRE_ENGINES"
"""The engines that are tested, such as `cluster,connect` or `s3`;
the others are skipped: they take minutes, or a large download."""


def only(engine: str) -> None:
    if engine not in os.environ.get(REQUIRED, "").split(","):
        pytest.skip(f"make engines tests it ({REQUIRED}={engine})")


def uploaded(bucket: Path) -> list[tuple[str, Row]]:
    """What two gateways have sent."""
    sent: list[tuple[str, Row]] = []
    for gateway in ("gw1", "gw2"):
        made = rows(random.Random(gateway), 30)
        upload(bucket, gateway, made, rows_max=10)
        sent += [(gateway, row) for row in made]
    return sent


def run(command: list[str]) -> None:
    """A run that ends well; one that hangs is ended, with what it has started."""
    process = subprocess.Popen(
        command,
        env=submitting(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=LONGEST_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == job.OK, errors.decode()


def check_tables(bucket: Path, out: Path, master: str) -> None:
    """A run with this master makes the tables of what was uploaded, and a second one adds to them."""
    sent = uploaded(bucket)
    for seed in (3, 4):
        run(
            [
                sys.executable,
                "-m",
                "edge.cli",
                "cloud",
                "aggregate",
                str(bucket),
                str(out),
                "--master",
                master,
            ]
        )
        found = {(row["start_ms"], repr(json.loads(row["keys"])["dev"])): line(row) for row in newest(out)}
        assert found == brute_force(sent)
        made = rows(random.Random(seed), 5)
        upload(bucket, "gw1", made)
        sent += [("gw1", row) for row in made]


def test_a_cluster_of_two_workers_makes_the_same_tables(bucket: Path, tmp_path: Path) -> None:
    only("cluster")
    check_tables(bucket, tmp_path / "out", CLUSTER)


def test_spark_connect_makes_the_same_tables(bucket: Path, tmp_path: Path) -> None:
    only("connect")
    with connect_server("local[2]") as server:
        check_tables(bucket, tmp_path / "out", server.url)


@pytest.fixture
def server() -> Iterator[str]:
    """An S3 server; its URL."""
    only("s3")
    port = free_port()
    program = Path(sys.executable).with_name("moto_server")
    process = subprocess.Popen(
        [program, "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: listens(port), "start of the S3 server")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def s3(server: str) -> Iterator[Any]:
    """A session that knows Delta and the server, which has a bucket."""
    from pyspark.sql import SparkSession

    settings = start_settings("local[2]") | SMALL | QUICK | delta_settings()
    settings |= {
        "spark.jars.packages": f"{settings['spark.jars.packages']},{HADOOP_AWS}",
        "spark.hadoop.fs.s3a.endpoint": server,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "key",
        "spark.hadoop.fs.s3a.secret.key": "secret",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    }
    prepare_process()
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    urlopen(Request(f"{server}/plant", method="PUT")).close()
    yield session
    session.stop()


def test_delta_tables_on_s3_are_those_of_the_rows(
    s3: Any, bucket: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark, sent = s3, uploaded(bucket)
    raw = open_storage(spark, "s3a://plant/raw")

    def copy() -> list[bool]:
        files = [path for path in bucket.rglob("*") if path.is_file()]
        return [raw.create(path.relative_to(bucket).as_posix(), path.read_bytes()) for path in files]

    def run() -> int:
        options = job.Options(lambda: DAY_MS, metrics_file=os.devnull, delta=True)
        return job.main("s3a://plant/raw", "s3a://plant/out", options)

    assert all(copy())
    assert run() == job.OK, capsys.readouterr().err
    made = rows(random.Random(9), 5)
    upload(bucket, "gw1", made)
    sent += [("gw1", row) for row in made]
    assert copy().count(True) == 2, "a file and its manifest are new; the others exist and stay"
    assert run() == job.OK, capsys.readouterr().err
    assert fleet_table(spark, "s3a://plant/out") == brute_force(sent)
    table = spark.read.format("delta").load("s3a://plant/out/delta/fleet")
    assert table.agg({"records": "sum"}).collect()[0][0] == len(sent)

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
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote
from urllib.request import Request, urlopen

import pytest

from cloud_sync.spark import job, lease
from cloud_sync.targets.objectstore import ObjectStoreTarget
from tests.spark.crash import line, newest
from tests.spark.engines import CLUSTER, connect_server, delta_on_s3, run_job
from tests.spark.support import Row, brute_force, rows, upload
from tests.support.ports import free_port, listens
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

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


def upload_more(bucket: Path, seed: int) -> list[tuple[str, Row]]:
    """What one of them has sent later, in one file."""
    made = rows(random.Random(seed), 5)
    upload(bucket, "gw1", made)
    return [("gw1", row) for row in made]


def check_fleet(out: Path, sent: list[tuple[str, Row]]) -> None:
    """The table is that of what was sent."""
    found = {(row["start_ms"], repr(json.loads(row["keys"])["dev"])): line(row) for row in newest(out)}
    assert found == brute_force(sent)


def check_tables(bucket: Path, out: Path, master: str) -> None:
    """A run with this master makes the tables of what was uploaded, and a second one adds to them."""
    sent = uploaded(bucket)
    for seed in (3, 4):
        run_job(str(bucket), str(out), "--master", master)
        check_fleet(out, sent)
        sent += upload_more(bucket, seed)


def test_a_cluster_of_two_workers_makes_the_same_tables(bucket: Path, tmp_path: Path) -> None:
    only("cluster")
    check_tables(bucket, tmp_path / "out", CLUSTER)


def test_spark_connect_makes_the_same_tables(bucket: Path, tmp_path: Path) -> None:
    only("connect")
    with connect_server("local[2]") as server:
        check_tables(bucket, tmp_path / "out", server.url)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An S3 server with an empty bucket `plant`, as gateways find it; its URL."""
    only("s3")
    port = free_port()
    program = Path(sys.executable).with_name("moto_server")
    process = subprocess.Popen(
        [program, "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    access = {
        "ACCESS_KEY_ID": "key",
        "SECRET_ACCESS_KEY": "secret",
        "ENDPOINT_URL": url,
        "ALLOW_HTTP": "true",
    }
    for name, value in (access | {"REGION": "us-east-1"}).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    try:
        wait_for(lambda: listens(port), "start of the S3 server")
        urlopen(Request(f"{url}/plant", method="PUT"), timeout=60).close()
        yield url
    finally:
        process.kill()
        process.wait()


def copied(bucket: Path, plant: ObjectStoreTarget) -> int:
    """Put the files of a folder into the bucket on S3; how many were new there."""
    files = [path for path in bucket.rglob("*") if path.is_file()]
    return [
        plant.put_if_absent(path.relative_to(bucket).as_posix(), path.read_bytes()) for path in files
    ].count(True)


def fetched(plant: ObjectStoreTarget, folder: Path) -> Path:
    """A copy of the tables and control files in the bucket, without the markers of folders."""
    for name in plant.names(""):
        if not name.endswith((".json", ".parquet")):
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(plant.get(name) or b"")
    return folder


def delta_records(table: Path) -> int:
    """The records that a Delta table counts, as its open format has them: the files that
    its log adds and does not remove."""
    import pyarrow.parquet as pq

    files: set[str] = set()
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, commit.read_text(encoding="utf-8").splitlines()):
            if "remove" in action:
                files.remove(unquote(action["remove"]["path"]))
            if "add" in action:
                files.add(unquote(action["add"]["path"]))
    return sum(sum(pq.read_table(table / file, partitioning=None)["records"].to_pylist()) for file in files)


def test_delta_tables_on_s3_are_those_of_the_rows(s3: str, bucket: Path, tmp_path: Path) -> None:
    sent, settings = uploaded(bucket), delta_on_s3(s3)
    raw, out = ObjectStoreTarget("s3://plant/raw"), ObjectStoreTarget("s3://plant/out")
    job_arguments = ("s3a://plant/raw", "s3a://plant/out", "--format", "delta")
    copied(bucket, raw)
    run_job(*job_arguments, settings=settings)

    sent += upload_more(bucket, 9)
    assert copied(bucket, raw) == 2, "a file and its manifest are new; the others exist and stay"
    holder = {"run": "another", "host": "elsewhere", "process": 1, "until": 9_999_999_999_999}
    assert out.put_if_absent(lease.NAME, json.dumps(holder).encode())
    told = run_job(*job_arguments, settings=settings, code=job.FAILED)
    assert "run another (process 1 on elsewhere) works on s3a://plant/out; wait for its end" in told
    out.delete([lease.NAME])
    run_job(*job_arguments, settings=settings)

    tables = fetched(out, tmp_path / "copy")
    check_fleet(tables, sent)
    assert delta_records(tables / "delta" / "fleet") == len(sent)

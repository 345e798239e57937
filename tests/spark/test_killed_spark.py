"""Spark's Java process is killed in the middle of a run, as the kernel does it where memory is short."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.spark import job
from tests.spark.support import brute_force, fleet_table, rows, run, upload

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]
WAIT_S = 120


def killed(bucket: Path, out: Path, place: str) -> tuple[int, str]:
    """A run in a process of its own, whose Java is killed as soon as something new is in OUT: the exit code,
    and what it has told."""
    before = set(out.glob(place))
    command = [sys.executable, "-m", "edge.cli", "cloud", "aggregate", str(bucket), str(out)]
    with subprocess.Popen(
        [*command, "--master", "local[1]"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        begun = time.monotonic()
        while not set(out.glob(place)) - before:
            assert process.poll() is None and time.monotonic() - begun < WAIT_S
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        (java,) = (int(child) for child in children if "java" in Path(f"/proc/{child}/cmdline").read_text())
        os.kill(java, signal.SIGKILL)
        told, errors = process.communicate(timeout=WAIT_S)
    assert told == "", "no metrics of a run that has failed"
    return process.returncode, errors


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--driver-memory 1k pyspark-shell", "[JAVA_GATEWAY_EXITED] Java gateway process exited"),
        ("--conf spark.driver.memory=x pyspark-shell", "[JAVA_GATEWAY_EXITED] Java gateway process exited"),
    ],
)
def test_a_java_that_does_not_start_is_told_in_a_line(
    bucket: Path, out: Path, options: str, told: str
) -> None:
    upload(bucket, "gw1", rows(random.Random(1), 1))
    done = subprocess.run(
        [sys.executable, "-m", "edge.cli", "cloud", "aggregate", str(bucket), str(out)],
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": options},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == job.FAILED and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"penstock cloud aggregate: Spark failed: {told}")
    assert not out.exists()


NAME_LOST = """
from py4j.protocol import Py4JError
from cloud_sync.spark.session import SparkEnded, session
try:
    with session("local[1]") as spark:
        java = spark.sparkContext._gateway.proc
        java.kill()
        java.wait()
        raise Py4JError("org.apache.spark.sql.functions.lit does not exist in the JVM")
except SparkEnded as error:
    print(error)
"""


def test_a_killed_java_is_named_whatever_py4j_makes_of_it() -> None:
    """Between two commands py4j takes the silence of Java for a name that Java does not have."""
    done = subprocess.run([sys.executable, "-c", NAME_LOST], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(
        "Spark's Java process has ended in the middle of the work (SIGKILL): mostly"
    )


@pytest.mark.parametrize("place", ["_lease.json", "records/run=*", "fleet/run=*"])
def test_a_killed_java_is_named_with_the_remedy_and_nothing_is_half_written(
    spark: Any, bucket: Path, out: Path, place: str
) -> None:
    """The tables stay as they were, and the next run goes on from them."""
    first, more = rows(random.Random(1), 20), rows(random.Random(2), 20)
    upload(bucket, "gw1", first)
    assert run(bucket, out)[0] == job.OK
    upload(bucket, "gw2", more)
    versions = sorted((out / "_versions").iterdir())
    code, told = killed(bucket, out, place)
    assert code == job.FAILED
    line = told.splitlines()[-1]  # behind what Spark's own threads have told
    assert line.startswith(
        "penstock cloud aggregate: Spark's Java process has ended in the middle of the work (SIGKILL): mostly"
    )
    assert line.endswith("give it more memory if need be, and run the command again")
    assert sorted((out / "_versions").iterdir()) == versions
    assert fleet_table(spark, out) == brute_force([("gw1", row) for row in first])
    assert run(bucket, out)[0] == job.OK
    sent = [*(("gw1", row) for row in first), *(("gw2", row) for row in more)]
    assert fleet_table(spark, out) == brute_force(sent)

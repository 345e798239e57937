"""Spark in processes of its own: a Spark Connect server, perhaps with executors."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from cloud_sync.spark.session import prepare_process, start_settings
from tests.spark.conftest import SMALL
from tests.support.ports import free_port, listens

CLUSTER = "local-cluster[2,1,1024]"
"""Two executors with one core and 1,024 MB each, in processes of their own."""
CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
QUICK = SMALL | {
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
}
"""Most of a short run would go into compiling what runs once."""
PATIENT = {
    "spark.network.timeout": "600s",
    "spark.rpc.askTimeout": "600s",
    "spark.rpc.lookupTimeout": "600s",
    "spark.executor.heartbeatInterval": "60s",
    "spark.worker.timeout": "600",
    "spark.python.authenticate.socketTimeout": "300s",
}
"""On a machine that has other work too, a process may wait long for its turn: with the limits that Spark has
a worker or an executor that starts late counts as lost."""
START_S = 600
"""The start takes 10 s of processor time, which was more than two minutes beside twenty busy processes."""
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}
"""Else the workers of a cluster listen at the first address of the machine, which may be unreachable."""


def options(settings: Mapping[str, str]) -> list[str]:
    """Settings as options of spark-submit."""
    return [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]


def submitting() -> dict[str, str]:
    """The environment of a driver that starts a Spark of its own."""
    arguments = shlex.join([*options(QUICK | PATIENT), "pyspark-shell"])
    return {**os.environ, **LOOPBACK, "PYSPARK_SUBMIT_ARGS": arguments}


class Server(NamedTuple):
    """A Spark Connect server that runs."""

    url: str
    process: int

    def executors(self) -> list[int]:
        """The processes of its executors."""
        children = [
            int(child)
            for task in Path(f"/proc/{self.process}/task").glob("*/children")
            for child in task.read_text(encoding="ascii").split()
        ]
        return [child for child in children if "CoarseGrainedExecutorBackend" in _command(child)]


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8")
    except OSError:  # it has just ended
        return ""


@contextmanager
def connect_server(master: str) -> Iterator[Server]:
    """A Spark Connect server, whose workers do not find this package by themselves."""
    import pyspark

    prepare_process()
    home, port = Path(pyspark.__file__).parent, free_port()
    environment = {**os.environ, **LOOPBACK, "SPARK_HOME": str(home), "PYTHONPATH": ""}
    settings = start_settings(master) | QUICK | PATIENT | {"spark.connect.grpc.binding.port": str(port)}
    process = subprocess.Popen(
        [str(home / "bin" / "spark-submit"), "--class", CLASS, *options(settings)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + START_S
        while not listens(port):
            assert process.poll() is None, f"Spark Connect has ended with code {process.returncode}"
            assert time.monotonic() < end, f"Spark Connect does not listen after {START_S} s"
            time.sleep(0.2)
        yield Server(f"sc://127.0.0.1:{port}", process.pid)
    finally:
        process.kill()
        process.wait()

"""Spark in processes of its own: runs of the job, and a Spark Connect server, perhaps with executors.
Every wait has a limit, and what hangs tells where."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

from cloud_sync.spark import job
from cloud_sync.spark.session import delta_settings, prepare_process, start_settings
from tests.spark.conftest import SMALL
from tests.support.jars import JARS, jars
from tests.support.ports import free_port, listens

CLUSTER = "local-cluster[2,1,1024]"
"""Two executors with one core and 1,024 MB each, in processes of their own."""
HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.5.0"
CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
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
LONGEST_S = 240
"""The longest time for a start or a run, which take 10 s of processor time:
more than two minutes beside twenty busy processes."""
STACKS_S = 3
"""The time that stacks take to be told."""
TOLD_MAX = 100_000
"""The most characters shown of what a process has told."""
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}
"""Else the workers of a cluster listen at the first address of the machine, which may be unreachable."""


def small() -> dict[str, str]:
    """Settings for short runs: most of one would go into compiling what runs once.
    Temporary files lie where those of Python do."""
    java = f"-XX:TieredStopAtLevel=1 -Djava.io.tmpdir={tempfile.gettempdir()}"
    return SMALL | PATIENT | {f"spark.{part}.extraJavaOptions": java for part in ("driver", "executor")}


def delta_on_s3(url: str) -> dict[str, str]:
    """Settings of a session that knows Delta and the S3 server of this URL, with the jars
    that `tests.support.jars` has downloaded: in the class path, for `spark.jars` copies all of them."""
    packages = {*delta_settings()["spark.jars.packages"].split(","), HADOOP_AWS}
    assert packages <= JARS.keys(), f"{packages - JARS.keys()} are unknown to tests/support/jars.py"
    return {
        "spark.jars.packages": "",
        "spark.driver.extraClassPath": ":".join(map(str, jars(Path(sys.prefix) / "jars"))),
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.hadoop.fs.s3a.endpoint": url,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "key",
        "spark.hadoop.fs.s3a.secret.key": "secret",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    }


def options(settings: Mapping[str, str]) -> list[str]:
    """Settings as options of spark-submit."""
    return [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]


def submitting(settings: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """The environment of a driver that starts a Spark of its own. Spark would take the keys of
    AWS for its own, and asks for the address of the host's name then, which may have none."""
    arguments = shlex.join([*options({**small(), **settings}), "pyspark-shell"])
    ours = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**ours, **LOOPBACK, "PYSPARK_SUBMIT_ARGS": arguments}


class Program(NamedTuple):
    """A process in a process group of its own, and the file that it tells into."""

    process: subprocess.Popen[bytes]
    output: IO[bytes]

    def told(self) -> str:
        self.output.seek(0)
        return self.output.read().decode(errors="replace")[-TOLD_MAX:]

    def end(self) -> None:
        """End it, with all that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end_with_stacks(self) -> str:
        """End it where it hangs; what it has told, with the stacks of its threads."""
        for member in _group(self.process.pid):
            if "java" in _command(member).partition("\0")[0]:
                os.kill(member, signal.SIGQUIT)
        time.sleep(STACKS_S)
        self.process.send_signal(signal.SIGABRT)  # Python tells its stacks by this signal
        time.sleep(STACKS_S)
        self.end()
        return self.told()


@contextmanager
def started(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Program]:
    """A program that ends with the block."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            env={**environment, "PYTHONFAULTHANDLER": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        program = Program(process, output)
        try:
            yield program
        finally:
            program.end()


def run_job(*arguments: str, settings: Mapping[str, str] = MappingProxyType({}), code: int = job.OK) -> str:
    """Run `penstock cloud aggregate` in a process, which must end with this code; what it has told."""
    command = [sys.executable, "-m", "edge.cli", "cloud", "aggregate", *arguments]
    with started(command, submitting(settings)) as program:
        try:
            ended = program.process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            told = program.end_with_stacks()
            raise AssertionError(f"a run is at work after {LONGEST_S} s:\n{told}") from None
        told = program.told()
    assert ended == code, f"a run has ended with code {ended}:\n{told}"
    return told


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


def _group(leader: int) -> list[int]:
    """The processes of a process group."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError):  # it has just ended
            if os.getpgid(int(entry.name)) == leader:
                found.append(int(entry.name))
    return found


@contextmanager
def connect_server(master: str) -> Iterator[Server]:
    """A Spark Connect server, whose workers do not find this package by themselves."""
    import pyspark

    prepare_process()
    home, port = Path(pyspark.__file__).parent, free_port()
    environment = {**os.environ, **LOOPBACK, "SPARK_HOME": str(home), "PYTHONPATH": ""}
    settings = start_settings(master) | small() | {"spark.connect.grpc.binding.port": str(port)}
    command = [str(home / "bin" / "spark-submit"), "--class", CLASS, *options(settings)]
    with started(command, environment) as program:
        end = time.monotonic() + LONGEST_S
        while not listens(port):
            code = program.process.poll()
            assert code is None, f"Spark Connect has ended with code {code}:\n{program.told()}"
            if time.monotonic() > end:
                told = program.end_with_stacks()
                raise AssertionError(f"Spark Connect does not listen after {LONGEST_S} s:\n{told}")
            time.sleep(0.2)
        yield Server(f"sc://127.0.0.1:{port}", program.process.pid)

"""Spark sessions for the job: a new one, or one beside the session that runs, with settings of its own.

The results of the job must not depend on the host. In a notebook or under spark-submit the job works in a
session beside the host's, which shares the cluster and nothing else, and sets every setting that could change
a result.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloud_sync.spark.java import find_java, use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULT_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.sources.ignoreDataLocality": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",
    "spark.sql.hive.filesourcePartitionFileCacheSize": "0",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
}
"""Settings that could change a result or, for the last five, the cost of a batch of files:
Spark would list each of 10,000 folders or files in a task of its own,
keep the status of every file that it has listed,
and sort the cells of more than 128 groups."""


DELTA = "4.4.0"
DELTA_SPARK = ("4.1", "4.2")
"""The Delta Lake that is used, and the versions of Spark that it has jars for."""
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


class SparkMissing(Exception):
    """A package that Spark needs for a format or a server is not installed; the text has the remedy."""


class SparkEnded(Exception):
    """Spark's Java process has ended before the job; the text says what that means, and what to do."""


@contextmanager
def session(master: str | None, *, delta: bool = False) -> Iterator[SparkSession]:
    """A session beside the running one, or a new one that ends with the block. `delta`:
    it knows Delta tables."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        if delta and DELTA_SETTINGS["spark.sql.extensions"] not in str(
            running.conf.get("spark.sql.extensions", "")
        ):
            raise SparkMissing(
                f"the running session knows no Delta tables; start it with {_shown(delta_settings())}"
            )
        with nullcontext() if is_connect(running) else _alive(running):
            yield beside(running)
        return
    if server := _server(master):
        with _connected(server) as spark:
            yield spark
        return
    from py4j.protocol import Py4JError

    settings = start_settings(master) | (delta_settings() if delta else {})
    prepare_process()
    builder = SparkSession.builder.appName("penstock cloud")
    for key, value in settings.items():
        builder = builder.config(key, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    try:
        with _alive(started):
            yield beside(started)
    finally:
        with suppress(Py4JError, OSError):  # the process may be gone, as has been told then
            started.stop()


@contextmanager
def _alive(started: SparkSession) -> Iterator[None]:
    """Raises SparkEnded if Spark's Java process has ended within the block: whatever error that has caused,
    and also where the block has not failed, because its last result may be incomplete."""
    try:
        yield
    except Exception as error:
        if _has_ended(started):
            raise SparkEnded(ENDED.format(_end_of(started))) from error
        raise
    if _has_ended(started):
        raise SparkEnded(ENDED.format(_end_of(started)))


def _has_ended(started: SparkSession) -> bool:
    """True if the Java process does not answer. py4j has several errors for that: one for a lost connection,
    and the one for a name that Java does not have."""
    from py4j.protocol import Py4JError

    jvm: Any = started._jvm
    try:
        jvm.System.nanoTime()
    except (Py4JError, OSError):
        return True
    return False


ENDED = (
    "Spark's Java process has ended in the middle of the work{}: mostly the machine or its container was out "
    "of memory (`dmesg` or its events say so), or somebody has ended it; nothing is half-written, what was "
    "committed counts; give it more memory if need be, and run the command again"
)


def _end_of(started: SparkSession) -> str:
    """The signal or exit code of the Java process, in brackets; empty if it is no child of this process."""
    process = vars(started.sparkContext._gateway).get("proc")
    try:
        code = None if process is None else process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        code = None
    if code is None:
        return ""
    return f" ({signal.Signals(-code).name})" if code < 0 else f" (exit code {code})"


def _server(master: str | None) -> str | None:
    """The Spark Connect server to use, `sc://HOST:PORT`; None without one."""
    if master is None:
        return os.environ.get("SPARK_REMOTE") or None
    return master if master.startswith("sc://") else None


@contextmanager
def _connected(server: str) -> Iterator[SparkSession]:
    """A session on a Spark Connect server."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        started = SparkSession.builder.remote(server).create()
    except (ImportError, PySparkException) as error:
        reason = str(error).strip().splitlines()[0]
        raise SparkMissing(f"{server}: {reason}; Spark Connect needs: {CONNECT_REMEDY}") from None
    own = beside(started)
    try:
        yield own
    finally:
        own.stop()
        started.stop()


def delta_settings() -> dict[str, str]:
    """The settings of a new application for Delta tables. Raises SparkMissing if this Spark has no Delta."""
    import pyspark

    version = ".".join(pyspark.__version__.split(".")[:2])
    if find_spec("delta") is None:
        raise SparkMissing(f"Delta Lake is not installed; install the pair with: {DELTA_REMEDY}")
    if version not in DELTA_SPARK:
        raise SparkMissing(
            f"Delta {DELTA} has jars for Spark {' and '.join(DELTA_SPARK)}, not for {version}; "
            f"install the pair with: {DELTA_REMEDY}"
        )
    return DELTA_SETTINGS | {"spark.jars.packages": f"io.delta:delta-spark_{version}_2.13:{DELTA}"}


CONNECT_REMEDY = "pip install 'penstock[cloud,connect]'"
DELTA_REMEDY = "pip install 'penstock[cloud,delta]'"


def _shown(settings: dict[str, str]) -> str:
    return " ".join(f"--conf {key}={value}" for key, value in settings.items())


def beside(host: SparkSession) -> SparkSession:
    """A session in the same application that has the job's settings and leaves those of the host alone."""
    own = host.newSession()
    for key, value in RESULT_SETTINGS.items():
        own.conf.set(key, value)
    if is_connect(own):
        _ship(own)
    return own


def is_connect(spark: SparkSession) -> bool:
    """True for a session of Spark Connect, which has neither the driver's file systems nor its process."""
    from pyspark.sql import SparkSession as Classic

    return not isinstance(spark, Classic)


def _ship(spark: SparkSession) -> None:
    """Send the code that runs in workers: those of a Spark Connect server have pyarrow,
    and the code of the session."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(__file__).parents[1]
        archive = shutil.make_archive(f"{folder}/penstock", "zip", root.parent, root.name)
        spark.addArtifacts(archive, pyfile=True)


TABLE_REMEDY = "restore the file from a copy, or make the tables anew in an empty OUT"
RIGHT_REMEDY = "give the user of this job the right to it"
ROOM_REMEDY = "free space and run it again; nothing is lost"
FOLDER_REMEDY = "a file is where a folder has to be: give another path"
REMEDIES: dict[int | str, str] = {
    errno.EACCES: RIGHT_REMEDY,
    errno.EPERM: RIGHT_REMEDY,
    errno.EROFS: "give another path, or mount it for writing",
    errno.ENOSPC: ROOM_REMEDY,
    errno.EDQUOT: ROOM_REMEDY,
    errno.EEXIST: FOLDER_REMEDY,
    errno.ENOTDIR: FOLDER_REMEDY,
    "FAILED_READ_FILE": TABLE_REMEDY,
    "JAVA_GATEWAY_EXITED": "Java's own message stands above; see PYSPARK_SUBMIT_ARGS and the free memory",
    "org.apache.hadoop.security.AccessControlException": RIGHT_REMEDY,
    "org.apache.hadoop.fs.FileAlreadyExistsException": FOLDER_REMEDY,
    "org.apache.hadoop.fs.ParentNotDirectoryException": FOLDER_REMEDY,
    "java.lang.OutOfMemoryError": 'give it more memory, such as PYSPARK_SUBMIT_ARGS="--driver-memory 4g '
    'pyspark-shell", or the same option of spark-submit',
}
"""What to do about a failure with this number of the system, condition of Spark, or class of Java."""
SPARK_EXCEPTION = "org.apache.spark.SparkException"
"""The class of Java whose exceptions have a condition."""
ERRNOS = {os.strerror(number): number for number in REMEDIES if isinstance(number, int)}
"""The numbers of the system's messages: an exception of Java has the message alone."""


def remedied(text: str, *signs: int | str | None) -> str:
    """A failure with its remedy, where one of its signs (as in REMEDIES) has one.

    >>> remedied("permission denied: 'fleet'", errno.EACCES)
    "permission denied: 'fleet'; give the user of this job the right to it"
    """
    found = next((REMEDIES[sign] for sign in signs if sign in REMEDIES), None)
    return f"{text.rstrip('.')}; {found}" if found else text


def errors_of_spark() -> tuple[type[Exception], ...]:
    """The classes of Spark's errors; none where it is not installed."""
    try:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException
    except ImportError:
        return ()
    return Py4JJavaError, PySparkException


def failure_in_words(error: Exception) -> str:
    """The first lines of an error of Spark and of its deepest cause, such as a full disk, with the remedy. An
    error of Spark Connect has no cause."""
    from pyspark.errors import PySparkException

    java: Any = vars(error).get("java_exception") or vars(error).get("_origin")
    if java is None:
        assert isinstance(error, PySparkException)
        return remedied(_first_line(str(error)), _kind(error.getCondition()))
    causes = [java]
    while (cause := causes[-1].getCause()) is not None:
        causes.append(cause)
    told, last = _first_line(str(java.getMessage())), _first_line(str(causes[-1]))
    numbers = [ERRNOS.get(str(cause.getMessage())) for cause in causes]
    names = [str(cause.getClass().getName()) for cause in causes]
    of_spark = [cause for cause, name in zip(causes, names, strict=True) if name == SPARK_EXCEPTION]
    kinds = [_kind(cause.getCondition()) for cause in of_spark]
    return remedied(told if last.endswith(told) else f"{told}: {last}", *numbers, *names, *kinds)


def _kind(condition: str | None) -> str | None:
    """The first part of the name of a condition of Spark.

    >>> _kind("FAILED_READ_FILE.NO_HINT")
    'FAILED_READ_FILE'
    """
    return condition and condition.partition(".")[0]


def _first_line(text: str) -> str:
    """The first line of a text; of a traceback of Python the error at its end.

    >>> _first_line("in a worker: Traceback (most recent call last):\\n  File x\\nKeyError: 'raw'\\n\\tat y")
    "in a worker: KeyError: 'raw'"
    """
    told, _, trace = text.strip().partition("Traceback (most recent call last):")
    error = next((line for line in trace.splitlines() if line[:1].strip()), "")
    return told.partition("\n")[0].rstrip() if not error else told + error


def prepare_process() -> None:
    """Set what Spark's processes inherit: a Java, and workers with this Python and these packages."""
    use_java(find_java())
    # Workers would start whatever `python3` is on the PATH, which may be another Python than the driver's.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    root = str(Path(__file__).parents[2])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *filter(None, paths)])


def start_settings(master: str | None) -> dict[str, str]:
    """The settings of a new application; for a local master also those that keep it
    small and on this machine."""
    settings: dict[str, str] = {}
    if master is None and not os.environ.get("MASTER") and "PYSPARK_GATEWAY_PORT" not in os.environ:
        master = "local[*]"
    if master:
        settings["spark.master"] = master
    if master and master.startswith("local"):
        settings |= {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.showConsoleProgress": "false",
        }
    return settings

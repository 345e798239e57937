"""One Spark session for all tests of the job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.spark.java import JavaMissing
from cloud_sync.spark.session import prepare_process, start_settings

SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Nothing is gained by compiling queries that see a hundred rows once."""
HOSTILE = {
    "spark.sql.session.timeZone": "Pacific/Kiritimati",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "true",
}
"""Settings of a host on which no result may depend: all tests run beside them."""


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A small local session; skips where PySpark or Java is missing, unless PENSTOCK_REQUIRE_SPARK is set."""
    try:
        from pyspark.sql import SparkSession

        prepare_process()
    except (ImportError, JavaMissing) as missing:
        if os.environ.get("PENSTOCK_REQUIRE_SPARK"):
            raise
        pytest.skip(str(missing))
    os.environ.setdefault(
        "PYSPARK_SUBMIT_ARGS", "--driver-java-options=-XX:TieredStopAtLevel=1 pyspark-shell"
    )
    builder = SparkSession.builder
    for key, value in (start_settings("local[2]") | SMALL | HOSTILE).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    """A bucket whose path holds what Spark reads as a pattern."""
    path = tmp_path / "bucket [1]{a,b}*?"
    path.mkdir()
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out [2]{c}"

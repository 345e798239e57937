"""One Spark session for all tests of the job."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from cloud_sync.spark.java import JavaMissing, find_java, use_java
from cloud_sync.spark.job import session_settings


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A small local session; skips where PySpark or Java is missing, unless PENSTOCK_REQUIRE_SPARK is set."""
    try:
        from pyspark.sql import SparkSession

        use_java(find_java())
    except (ImportError, JavaMissing) as missing:
        if os.environ.get("PENSTOCK_REQUIRE_SPARK"):
            raise
        pytest.skip(str(missing))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for key, value in session_settings("local[2]").items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()

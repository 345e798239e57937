"""Manifests count whatever hour they come into."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.names import arrival_name
from tests.spark.support import DAY_MS, brute_force, fleet_table, rows, run, upload

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]


def test_a_manifest_counts_whatever_hour_it_comes_into(spark: Any, bucket: Path, out: Path) -> None:
    """The bucket is copied late: hours that ended long before the last run get manifests."""
    first = rows(random.Random(1), 3)
    upload(bucket, "gw1", first)
    assert run(bucket, out)[1]["files"] == 1
    late = rows(random.Random(2), 8)
    for number, name in enumerate(upload(bucket, "gw2", late, rows_max=1)):
        place = bucket / arrival_name(name, DAY_MS - (number + 1) * 3_600_000)
        place.parent.mkdir(parents=True)
        (bucket / arrival_name(name, DAY_MS)).rename(place)
    found = [run(bucket, out)[1] for _ in range(3)]
    assert [metrics["files"] for metrics in found] == [5, 3, 0], "one is near, four have their turn"
    assert found[2]["version"] == found[1]["version"] + 1, "the turn goes on"
    assert fleet_table(spark, out) == brute_force(
        [("gw1", row) for row in first] + [("gw2", row) for row in late]
    )

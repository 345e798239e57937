"""Rows that state a window anew replace what was said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloud_sync.spark import job, view
from tests.spark.support import put, run, stated

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]


def totals(spark: Any, out: Path) -> dict[tuple[str, str], tuple[int, int]]:
    """By level and machine: total and records."""
    found = view.fleet(spark, str(out), "hot").collect()
    return {(row["level"], row["dev"]): (int(row["total"]), row["records"]) for row in found}


def test_a_window_that_is_stated_anew_replaces_what_was_said_of_it(
    spark: Any, bucket: Path, out: Path
) -> None:
    """Two rows of machine a and one of b; the second of a grows from 5 to 7 and is joined by
    one of another gateway."""
    put(bucket, "gw1", [stated(0, 1), stated(10_000, 5), stated(0, 9, dev="b")])
    assert run(bucket, out)[1]["rows"] == 3
    assert totals(spark, out) == {
        ("1m", "a"): (6, 2),
        ("1d", "a"): (6, 2),
        ("1m", "b"): (9, 1),
        ("1d", "b"): (9, 1),
    }

    put(bucket, "gw1", [stated(10_000, 7, revision=2, rule_hash="1" * 16)], seq=4)
    put(bucket, "gw2", [stated(10_000, 100)], spool="other")
    put(bucket, "gw1", [stated(0, 0, dev="b", revision=1, retracted=True)], seq=5)
    assert run(bucket, out)[0] == job.OK
    assert totals(spark, out) == {("1m", "a"): (108, 3), ("1d", "a"): (108, 3)}, "b is taken back"
    (row,) = view.fleet(spark, str(out), "hot", level="1m").collect()
    assert row["rule_hashes"] == ["0" * 16, "1" * 16]

    # An older statement and a first one arrive late: neither counts. What is stated after a retraction does.
    put(
        bucket,
        "gw1",
        [stated(10_000, 6, revision=1), stated(10_000, 5), stated(0, 4, dev="b", revision=3)],
        seq=6,
    )
    assert run(bucket, out)[0] == job.OK
    assert totals(spark, out) == {
        ("1m", "a"): (108, 3),
        ("1d", "a"): (108, 3),
        ("1m", "b"): (4, 1),
        ("1d", "b"): (4, 1),
    }

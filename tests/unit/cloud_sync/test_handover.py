"""The states that a backfill and a stream keep."""

from __future__ import annotations

import zlib

import pytest

pytest.importorskip("pyspark")

from cloud_sync.spark.backfill.handover import UNKNOWN, Handed, packed, unpacked
from sinks.formats import lossless_json


def test_a_state_is_what_it_was() -> None:
    for handed in (Handed(), Handed({"now_ms": 5}, 7, "1.jsonl"), Handed({"now_ms": 5}, 7, timer_ms=None)):
        assert unpacked(packed(handed)) == handed


def test_of_a_state_without_a_timer_the_timer_is_not_known() -> None:
    """States of before have none, and Spark must be asked for those that it has."""
    before = {"state": {"now_ms": 5}, "number": 7, "last": ""}
    assert unpacked(zlib.compress(lossless_json.encode(before))) == Handed({"now_ms": 5}, 7, "", UNKNOWN)

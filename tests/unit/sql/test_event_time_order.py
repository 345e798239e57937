"""Events in event time leave the stage in order of time stamp, then arrival, whatever
the size of the batches."""

from __future__ import annotations

from random import Random

import pytest

from sql import Emission, Engine, RuleOptions, plan_rule
from tests.support.streams import catalog_of


@pytest.mark.parametrize("size", [1, 3, 50, 400])
def test_batches_of_any_size_are_put_in_order(size: int) -> None:
    random = Random(size)
    stamps = [random.randrange(5_000) for _ in range(400)]
    catalog = catalog_of("CREATE STREAM m (v BIGINT, ts BIGINT) WITH (DATASOURCE='m', TIMESTAMP='ts')")
    engine = Engine(catalog)
    plan = plan_rule(
        "SELECT v, lag(v) AS before FROM m", catalog, RuleOptions(late_tolerance_ms=5_000, event_time=True)
    )
    engine.deploy("r", plan, 0)
    rows = [{"v": number, "ts": stamp} for number, stamp in enumerate(stamps)]
    found: list[Emission] = []
    for first in range(0, len(rows), size):
        found += engine.push("m", rows[first : first + size], 0)
    found += engine.push("m", [{"v": -1, "ts": 10_000}], 0)
    shown = [row["v"] for emission in found for row in emission.inserted]
    assert shown == sorted(range(400), key=lambda number: (stamps[number], number))

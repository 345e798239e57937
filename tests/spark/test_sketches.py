"""Sketches of several gateways, merged by real Spark: beside the exact numbers,
and with damaged bytes among them."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.sketches import BadSketch, check, distinct, read_kll
from cloud_sync.spark import job, view
from tests.spark.support import DAY_MS, upload
from tests.unit.cloud_sync.test_declaration import TUMBLING, WINDOW, settings
from tests.unit.cloud_sync.test_sketches import made

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]
SQL = (
    "SELECT dev, count(DISTINCT note) AS users, theta_sketch(note) AS who, median(temp) AS mid, "
    f"percentile_cont(temp, 0.95) AS p95, kll_sketch(temp) AS temps, top_k_sketch(n) AS codes, {WINDOW} "
    f"FROM plant {TUMBLING}"
)


def test_sketches_of_many_gateways_say_what_all_their_values_say(spark: Any, bucket: Path, out: Path) -> None:
    rng = random.Random(14)
    declared = settings(SQL, "{window: [1m, 1h]}")
    users: set[str] = set()
    temps: list[float] = []
    codes: Counter[int] = Counter()
    for number in range(6):
        names = [f"u{rng.randrange(9_000)}" for _ in range(3_000)]
        measured = [rng.gauss(number, 5) for _ in range(1_000)]
        seen = rng.choices(range(50), weights=range(1, 51), k=500)
        users.update(names)
        temps += measured
        codes.update(seen)
        start = DAY_MS + number // 3 * 60_000
        row = {
            "dev": "a",
            "who": made("theta", names),
            "temps": made("kll", measured),
            "codes": made("top_k", seen),
            "began": start,
            "ended": start + 10_000,
        }
        upload(bucket, f"gw{number}", [row, row | {"dev": "none", "who": None, "temps": None, "codes": None}],
               "r", settings=declared)  # fmt: skip
        if number in (2, 5):  # the second run merges with the states of the first
            metrics = out.parent / "metrics.json"
            options = job.Options(lambda: DAY_MS, metrics_file=str(metrics))
            assert job.main(str(bucket), str(out), options) == job.OK
    only_signed = job.Options(lambda: DAY_MS, dry_run=True, keys={}, metrics_file=str(metrics))
    upload(bucket, "gw0", [row], "r", settings=declared)
    assert job.main(str(bucket), str(out), only_signed) == job.QUARANTINED
    by_dev = {row["dev"]: row for row in view.fleet(spark, str(out), "r", "1h").collect()}
    full, none = by_dev["a"], by_dev["none"]
    assert abs(full["users"] - len(users)) <= 0.05 * len(users) and full["users"] == full["who"]
    for part, name in ((0.5, "mid"), (0.95, "p95")):
        assert abs(sum(value <= float(full[name]) for value in temps) / len(temps) - part) <= 0.02
    shown = json.loads(full["temps"])
    assert (shown["n"], shown["min"], shown["max"]) == (6_000, min(temps), max(temps))
    expected = sorted(
        ((str(code), count) for code, count in codes.items()), key=lambda item: (-item[1], item[0])
    )
    assert [tuple(item) for item in json.loads(full["codes"])] == expected[:10]
    assert none["users"] == 0 and {none[name] for name in ("who", "mid", "temps", "codes")} == {None}

    # Spark's own functions read the states, and merge them over windows.
    theirs = {
        column: view.sketches(spark, str(out), "r", column, "1m")
        .selectExpr(f"{of} AS found")
        .collect()[0]["found"]
        for column, of in (
            ("who", "theta_sketch_estimate(theta_union_agg(sketch))"),
            ("temps", "kll_sketch_get_n_double(kll_merge_agg_double(sketch))"),
        )
    }
    assert theirs == {"who": full["who"], "temps": 6_000}


def test_no_bytes_that_are_taken_in_stop_spark(spark: Any) -> None:
    """Damaged sketches that the reader takes merge like the others:
    their numbers are wrong, the run goes on."""
    rng = random.Random(41)
    taken: list[tuple[str, bytes]] = []
    while len(taken) < 400:
        kind = rng.choice(["theta", "kll"])
        content = bytearray(made(kind, list(range(rng.choice([1, 2, 3, 40, 500])))))
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        try:
            check(kind, bytes(content))
        except BadSketch:
            continue
        taken.append((kind, bytes(content)))
    frame = spark.createDataFrame(taken, "kind STRING, sketch BINARY")
    merged = frame.selectExpr(
        "theta_union_agg(CASE WHEN kind = 'theta' THEN sketch END) AS theta",
        "kll_merge_agg_double(CASE WHEN kind = 'kll' THEN sketch END) AS kll",
    ).collect()[0]
    assert distinct(bytes(merged["theta"])) > 0 and read_kll(bytes(merged["kll"])).size > 0

"""Schemas and checks in the job: files that do not fit their schema,
rows that break a check, versions of a table."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.names import manifest_name, schema_name
from cloud_sync.records import Record
from cloud_sync.schemas import Check, Column, Key, Schema, schema_file
from cloud_sync.spark import job, report, view
from cloud_sync.spool import Spool
from cloud_sync.targets import open_target
from cloud_sync.uploader import Uploader
from tests.spark.support import DAY_MS, lines, run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]

RULE = "hot:ü"
"""A rule whose id is not its folder's name."""
CHECKS = (
    Check("n", "warn", min=0.0, max=9.0),
    Check("n", "quarantine", max=99.0),
    Check("n", "fail", not_null=True),
    Check(None, "warn", freshness_ms=60_000),
)
FIRST = Schema(
    RULE, "1" * 16, ("1m",), "UTC", False, (Key("dev", "string"),), (Column("n", "sum", "int"),), (), CHECKS
)
MORE = FIRST._replace(rule_hash="2" * 16, values=(*FIRST.values, Column("hi", "max", "float")))
OTHER = FIRST._replace(rule_hash="3" * 16, values=(Column("n", "max", "int"),), expect=())


def row(
    schema: Schema, n: int | None, *broken: int, hi: float | None = None, keys: dict[str, Any] | None = None
) -> Record:
    """A row of a rule with this schema, which breaks these of its checks."""
    numbers = {"n": n, "hi": hi}
    body = {
        "windows": [["1m", DAY_MS, DAY_MS + 60_000]],
        "window_start": DAY_MS,
        "window_end": DAY_MS + 10_000,
        "keys": keys or {"dev": "a"},
        "values": [
            {"as": value.name, "merge": value.merge, "type": value.type, value.type: numbers[value.name]}
            for value in schema.values
        ],
        "rule_hash": schema.rule_hash,
    }
    told = body | ({"broken": list(broken)} if broken else {})
    return Record(RULE, "2025-11-21", json.dumps(told).encode(), schema_file(schema))


def upload(bucket: Path, gateway: str, *rows: Record) -> list[str]:
    """The names of the manifests of the uploaded rows."""
    target = open_target(str(bucket))
    with closing(Spool(bucket.parent / gateway / "spool.db", gateway)) as spool:
        spool.append(rows, DAY_MS)
        spool.commit(DAY_MS)
        Uploader(spool, target).drain(DAY_MS)
    found = (bucket / "v2" / f"gw={gateway}").rglob("*.gz")
    return [manifest_name(path.relative_to(bucket).as_posix()) for path in found]


def test_a_gateway_whose_clock_is_ahead_is_stale_when_it_sends_no_more(
    spark: Any, bucket: Path, out: Path
) -> None:
    """By the job's clock its row came five hours before it was made; a minute is allowed."""
    upload(bucket, "gw1", row(FIRST, 1))
    came_ms = DAY_MS - 5 * 3_600_000
    assert run(bucket, out, now_ms=lambda: came_ms + 60_000)[1]["stale"] == []
    assert run(bucket, out, now_ms=lambda: came_ms + 120_000)[1]["stale"] == []
    assert run(bucket, out, now_ms=lambda: came_ms + 120_001)[1]["stale"] == [f"gw1 {RULE}"]


def test_rows_that_break_checks_are_counted_held_back_or_fail_the_run(
    spark: Any, bucket: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, "gw1", row(FIRST, 1), row(FIRST, 10, 0), row(FIRST, 100, 0, 1), row(FIRST, None, 2))
    upload(bucket, "gw2", row(FIRST, 2))
    # Files that do not fit: another key, a schema that is not there, a check that the schema does not have.
    upload(bucket, "gw3", row(FIRST, 1, keys={"machine": "a"}))
    (orphan,) = upload(bucket, "gw4", row(OTHER, 7))
    upload(bucket, "gw5", row(FIRST, 1, 4))
    lost = bucket / schema_name(RULE, schema_file(OTHER).key)
    content = lost.read_bytes()
    lost.unlink()

    code, metrics = run(bucket, out, now_ms=lambda: DAY_MS + 70_001)
    assert metrics["stale"] == [f"gw1 {RULE}", f"gw2 {RULE}"]
    assert (code, metrics["rows"], metrics["held"], metrics["quarantined"]) == (
        job.BROKEN,
        5,
        2,
        3,
    )
    assert f"rule {RULE}: n not NULL: broken by 1 rows of 1 gateways" in capsys.readouterr().err
    (window,) = view.fleet(spark, str(out), RULE).collect()
    assert (window["n"], window["records"], window["gateways"]) == (13, 3, 2)
    reasons = {
        found["file"].split("/")[1]: found["reason"] for found in view.quarantine(spark, str(out)).collect()
    }
    assert reasons["gw=gw3"] == "line 1 is no record: its keys are not those of its schema"
    assert "is not there (yet)" in reasons["gw=gw4"]
    assert reasons["gw=gw5"] == "line 1 is no record: 'broken' names a check that its schema does not have"
    assert "1 rows break the check 'n" in reasons["gw=gw1"]
    broken = {
        (found["check"], found["outcome"]): found["rows"] for found in view.checks(spark, str(out)).collect()
    }
    assert broken == {
        ("n from 0.0 to 9.0", "warn"): 2,
        ("n at most 99.0", "quarantine"): 1,
        ("n not NULL", "fail"): 1,
    }
    spools = {
        found["gateway"]: (found["rows"], found["held"], found["missing"])
        for found in view.gateways(spark, str(out)).collect()
    }
    assert spools == {"gw1": (2, 2, 0), "gw2": (1, 0, 0)}

    # The schema comes back and begins the table's second version; a column more is no new version.
    lost.write_bytes(content)
    upload(bucket, "gw2", row(MORE, 4, hi=1.5))
    code, metrics = run(bucket, out)
    assert (code, metrics["rows"], metrics["stale"]) == (job.QUARANTINED, 2, [])
    assert not [
        found
        for found in view.quarantine(spark, str(out)).collect()
        if manifest_name(found["file"]) == orphan
    ]
    (first,) = view.fleet(spark, str(out), RULE, version=1).collect()
    assert (first["n"], first["hi"]) == (17, 1.5)
    (second,) = view.fleet(spark, str(out), RULE, version=2).collect()
    assert second["n"] == 7 and "hi" not in second.asDict()
    with pytest.raises(ValueError, match="there are 2"):
        view.fleet(spark, str(out), RULE, version=3)


def test_the_report_has_the_columns_of_a_changed_rule(spark: Any, bucket: Path, out: Path) -> None:
    """A column more, and then another merge under the same name, which only one of two gateways has yet."""
    upload(bucket, "gw1", row(FIRST, 1))
    assert run(bucket, out)[0] == job.OK
    upload(bucket, "gw1", row(MORE, 2, hi=1.5))
    upload(bucket, "gw2", row(OTHER, 7))
    assert run(bucket, out)[0] == job.OK
    html = report.page(spark, str(out))
    assert lines(html, "Columns of the rules") == [
        [RULE, "1", "1" * 16, "1m", "dev", "n_sum_int: sum int", "yes"],
        [RULE, "1", "2" * 16, "1m", "dev", "n_sum_int: sum int, hi: max float", "yes"],
        [RULE, "2", "3" * 16, "1m", "dev", "n_max_int: max int", "yes"],
    ]
    assert {"n_sum_int", "n_max_int", "hi"} < {*view.fleet(spark, str(out), RULE).columns}

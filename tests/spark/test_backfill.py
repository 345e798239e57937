"""The engine inside Spark gives the rows of the engine: by scenarios of the corpus, and as typed tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.spark import backfill
from edge.cli import main
from tests.spark import parity

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]

SCENARIOS = Path(__file__).parents[1] / "conformance" / "scenarios" / "rules.jsonl"
RULE = """
streams: ["CREATE STREAM plant (dev string, n bigint, ts bigint) WITH (DATASOURCE='x', TIMESTAMP='ts')"]
rules:
- id: sums
  sql: SELECT dev, sum(n) AS total, avg(n) AS mean, collect(n) AS all FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)
  actions: [{log: {}}]
"""


def test_rows_from_spark_are_those_of_the_engine_and_the_corpus(spark: Any, bucket: Path) -> None:
    scenarios = parity.event_time([SCENARIOS])
    assert len(scenarios) >= 3
    assert parity.differences(spark, scenarios, bucket / "raw") == []


def test_a_rule_becomes_a_typed_table(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, raw, out = tmp_path / "rules.yaml", tmp_path / "raw", tmp_path / "out"
    rules.write_text(RULE, "utf-8")
    (raw / "gw=gw1").mkdir(parents=True)
    events: list[Any] = [
        ("a", 1, 1000),
        ("a", 2, 2000),
        ("b", 2**62, 3000),
        ("b", 2**62, 4000),
        ("a", 5, 12_000),
    ]
    lines = [{"at": ts, "stream": "plant", "event": {"dev": dev, "n": n, "ts": ts}} for dev, n, ts in events]
    text = "\n".join([*map(json.dumps, lines), "no event"])
    (raw / "gw=gw1" / "1.jsonl").write_text(text, "utf-8")
    arguments = ["cloud", "backfill", str(rules), str(raw), str(out)]
    assert main(arguments) == 0
    assert '{"sums": 4}' in capsys.readouterr().out
    table = spark.read.parquet(str(out / "sums"))
    assert dict(table.dtypes)["total"] == "bigint" and dict(table.dtypes)["mean"] == "double"
    rows = [tuple(row) for row in table.orderBy("number").collect()]
    assert rows[0][:6] == ("gw1", 0, 10_000, "insert", None, False)
    assert rows[0][7:] == ("a", 3, 1.5, "[1, 2]")
    assert rows[1][3:5] == ("error", "column 'total' holds '9223372036854775808', the plan says bigint")
    assert rows[2][5:] == (True, rows[0][6], "a", 5, 5.0, "[5]"), "the window was open at the end"
    assert rows[3][3] == "error" and "1.jsonl:6:" in rows[3][4]

    assert main(arguments) == 1 and "exists; a backfill writes into a new folder" in capsys.readouterr().err
    assert main([*arguments[:-1], str(tmp_path / "o2"), "--rule", "none"]) == 2


def test_the_worker_reads_line_by_line() -> None:
    """A torn file gives what stands before the tear, and a reason."""
    reading = backfill.Reading()
    line = b'{"at": 1, "stream": "s", "event": {}}\n'
    files = [
        {"path": "x.jsonl", "content": line + b"[]\n" + line},
        {"path": "y.jsonl.gz", "content": b"no gzip"},
    ]
    assert len(list(backfill._arrivals(iter(files), reading))) == 2
    assert reading.is_over and [reason.split(":")[0] for reason in reading.bad] == ["x.jsonl", "y.jsonl.gz"]

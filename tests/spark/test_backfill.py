"""The engine inside Spark gives the rows of the engine: by scenarios of the corpus, and as typed tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.spark.backfill import worker
from cloud_sync.spark.backfill.rules import compiled
from edge.cli import main
from rules.compiled import Compiled
from tests.spark import parity

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]

CUT_RULES = """
streams: ["CREATE STREAM plant (dev string, n bigint, ts bigint) WITH (DATASOURCE='x', TIMESTAMP='ts')"]
tables: {newest: "create table newest (dev string primary key, n bigint)"}
contexts: {by_dev: "partition by dev from plant"}
variables: {highest: 0}
rules:
- id: sums
  sql: SELECT dev, sum(n) AS total, avg(n) AS mean FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)
  options: {lateTolerance: 100}
  actions: [{log: {}}]
- id: three
  sql: select dev, sum(n) as total from plant#length(3)
  options: {isEventTime: false}
  actions: [{log: {}}]
- id: kept
  sql: >
    on plant as p merge newest as t where t.dev = p.dev when matched then update set n = p.n
    when not matched then insert select p.dev as dev, p.n as n
  options: {isEventTime: false}
- id: found
  sql: select p.dev as dev, (select t.n from newest as t where t.dev = p.dev) as before from plant as p
  options: {isEventTime: false}
  actions: [{log: {}}]
- id: apart
  context: by_dev
  sql: select dev, count(*) as c from plant
  options: {isEventTime: false}
  actions: [{log: {}}]
"""
SCENARIOS = Path(__file__).parents[1] / "conformance" / "scenarios" / "rules.jsonl"
RULE = """
streams: ["CREATE STREAM plant (dev string, n bigint, ts bigint) WITH (DATASOURCE='x', TIMESTAMP='ts')"]
rules:
- id: sums
  sql: SELECT dev, sum(n) AS total, avg(n) AS mean, collect(n) AS all
       FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)
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
    reading = worker.Reading()
    line = b'{"at": 1, "stream": "s", "event": {}}\n'
    files = [
        {"path": "x.jsonl", "content": line + b"[]\n" + line},
        {"path": "y.jsonl.gz", "content": b"no gzip"},
    ]
    assert sum(len(run.rows) for run in worker.runs_of(iter(files), reading)) == 2
    assert [reason.split(":")[0] for reason in reading.bad] == ["x.jsonl", "y.jsonl.gz"]


def lines() -> list[bytes]:
    """Events of two devices in the order of arrival; a third of them is late."""
    return [
        json.dumps(
            {
                "at": 1_000 + place * 700,
                "stream": "plant",
                "event": {"dev": "ab"[place % 2], "n": place, "ts": 1_000 + place * 700 - place % 3 * 1_500},
            }
        ).encode()
        for place in range(60)
    ]


def file(name: str, content: list[bytes]) -> dict[str, Any]:
    return {"gateway": "gw1", "path": f"file:/raw/gw=gw1/{name}", "content": b"\n".join(content)}


def rows_of(known: Compiled, content: list[dict[str, Any]], *, is_open: bool = False) -> list[dict[str, Any]]:
    """The rows that a worker makes of the files of a gateway, in the order of their numbers."""
    plans = {name: rule.plan for name, rule in known.rules.items()}
    batches = worker.batches_of(known, plans, content, is_open=is_open)
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["number"] is None, row["number"]))  # a state has none


def test_a_backfill_goes_on_from_the_state_at_any_cut() -> None:
    known = compiled([(CUT_RULES, "rules.yaml")], "UTC")
    assert known.ok, [problem.render() for problem in known.problems]
    events = lines()
    whole = rows_of(known, [file("1.jsonl", events)])
    assert {row["rule"] for row in whole} == known.rules.keys()
    assert {row["kind"] for row in whole} == {"insert", "remove", "late"}
    for cut in range(0, 61, 6):
        first = rows_of(known, [file("1.jsonl", events[:cut])], is_open=True)
        state = first.pop()
        assert (state["kind"], json.loads(state["reason"])["last"]) == ("state", "1.jsonl")
        handed = {"gateway": "gw1", "path": "", "content": state["state"].encode()}
        rest = rows_of(known, [handed, file("2.jsonl", events[cut:])])
        assert first + rest == whole, f"cut at {cut}"


def test_days_that_follow_each_other_give_the_rows_of_one_run(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, raw = tmp_path / "rules.yaml", tmp_path / "raw"
    rules.write_text(RULE, "utf-8")
    events = lines()

    def run(out: str, *options: str) -> int:
        return main(["cloud", "backfill", str(rules), str(raw), str(tmp_path / out), *options])

    def rows(*outs: str) -> list[Any]:
        found = [spark.read.parquet(str(tmp_path / out / "sums")) for out in outs]
        return sorted(tuple(row) for table in found for row in table.collect())

    def add(gateway: str, name: str, content: list[bytes]) -> None:
        folder = raw / f"gw={gateway}" / "date=2026-11-21"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\n".join(content))

    add("gw1", "1.jsonl", events[:20])
    add("quiet", "1.jsonl", events[:20])
    assert run("day1", "--open") == 0
    add("gw1", "2.jsonl", events[20:40])
    add("new", "2.jsonl", events[20:40])
    assert run("day2", "--open", "--after", str(tmp_path / "day1")) == 0
    add("gw1", "3.jsonl", events[40:])
    assert run("day3", "--after", str(tmp_path / "day2")) == 0, "of three gateways one has new events"
    assert run("whole") == 0
    assert rows("day1", "day2", "day3") == rows("whole")

    assert run("x", "--after", str(tmp_path / "whole")) == 1
    assert "keeps no state" in capsys.readouterr().err
    rules.write_text(RULE.replace("ss, 10", "ss, 20"), "utf-8")
    assert run("x", "--after", str(tmp_path / "day1")) == 1
    assert "those of other rules, or of other versions of them" in capsys.readouterr().err

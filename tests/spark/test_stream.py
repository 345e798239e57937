"""Rules with `scope: fleet`: the engine in Structured Streaming,
once for each key over the events of all gateways."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cloud_sync.spark.backfill.rules import compiled
from edge.cli import main
from rules.drive import drive, in_runs
from sql import Engine

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]

RULES = """
streams: ["CREATE STREAM plant (dev string, n bigint, ts bigint) WITH (DATASOURCE='x', TIMESTAMP='ts')"]
contexts: {by_dev: {sql: partition by dev from plant, idle: 1h}}
rules:
- id: sums
  scope: fleet
  sql: SELECT dev, sum(n) AS total, avg(n) AS mean FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)
  options: {lateTolerance: 2s}
- id: rises
  scope: fleet
  context: by_dev
  sql: select a.n as low, b.n as high
       from pattern [every a=plant -> b=plant(b.n > a.n + 5) where timer:within(20 sec)]
  options: {isEventTime: false}
- id: busy
  scope: fleet
  sql: SELECT dev, count(*) AS c FROM plant GROUP BY dev, TUMBLINGWINDOW(ss, 10)
  options: {isEventTime: false}
- id: here
  sql: SELECT * FROM plant
  actions: [{log: {}}]
"""
Event = tuple[int, str, dict[str, Any]]


def fleet(seed: int, gateways: int = 3, seconds: int = 120) -> list[Event]:
    """Events of five devices, each seen by several gateways; some come late, one does not fit its stream."""
    chance = random.Random(seed)
    events: list[Event] = []
    for place in range(seconds * 2):
        at_ms = 1_700_000_000_000 + place * 500
        dev, late_ms = chance.choice("abcde"), chance.choice((0, 0, 0, 1_000, 9_000))
        event = {"dev": dev, "n": chance.randrange(20), "ts": at_ms - late_ms}
        events.append((at_ms, f"gw{chance.randrange(gateways)}", event))
    return events


def archive(raw: Path, name: str, events: Iterable[Event], lines: Iterable[str] = ()) -> None:
    """A file for each gateway."""
    by_gateway: dict[str, list[str]] = {}
    for at_ms, gateway, event in events:
        line = json.dumps({"at": at_ms, "stream": "plant", "event": event})
        by_gateway.setdefault(gateway, []).append(line)
    for gateway, told in by_gateway.items():
        folder = raw / f"gw={gateway}" / "date=2023-11-14"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join([*told, *lines]), "utf-8")


def of_one_engine(rule: str, events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """The rows of a rule by key, from an engine of its own for each."""
    known = compiled([(RULES, "rules.yaml")], "UTC")
    found = []
    for dev in "abcde":
        engine = Engine(known.catalog)
        arrivals = ((at_ms, "plant", event) for at_ms, _, event in events if event["dev"] == dev)
        for emission in drive(engine, {rule: known.rules[rule].plan}, in_runs(arrivals, 1), is_open=True):
            kind = "insert" if emission.kind == "rows" else emission.kind
            found += [
                (dev, emission.at_ms, kind, *(row.values() if kind == "insert" else ()))
                for row in emission.inserted
            ]
    return sorted(found, key=repr)


def table(spark: Any, out: Path, rule: str) -> list[tuple[Any, ...]]:
    """The rows of a table in the same form."""
    rows = spark.read.parquet(str(out / rule)).collect()
    hidden = ("key", "number", "at_ms", "kind", "reason", "rule_hash", "batch")
    found = []
    for row in rows:
        columns = row.asDict().items() if row["kind"] == "insert" else ()
        values = [value for name, value in columns if name not in hidden]
        found.append((json.loads(row["key"])[0], row["at_ms"], row["kind"], *values))
    return sorted(found, key=repr)


def test_the_rows_of_each_key_are_those_of_an_engine_over_all_gateways(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, raw, out = tmp_path / "rules.yaml", tmp_path / "raw", tmp_path / "out"
    rules.write_text(RULES, "utf-8")
    events = fleet(7)
    arguments = ["cloud", "stream", str(rules), str(raw), str(out), "--files", "3"]

    def run() -> dict[str, int]:
        assert main(arguments) == 0, capsys.readouterr().err
        return dict(json.loads(capsys.readouterr().out))

    archive(raw, "1.jsonl", events[:100])
    first = run()
    archive(raw, "2.jsonl", events[100:])
    second = run()
    expected = {rule: of_one_engine(rule, events) for rule in first}
    assert {rule: table(spark, out, rule) for rule in first} == expected
    assert {rule: len(rows) for rule, rows in expected.items()} == {
        rule: first[rule] + second[rule] for rule in first
    }
    assert all(first.values()) and all(second.values())
    assert "late" in {row[2] for row in expected["sums"]}
    assert dict(spark.read.parquet(str(out / "sums")).dtypes)["mean"] == "double"

    # A run that was killed after it wrote the rows of a batch, and one that was killed while it wrote.
    last = max(
        int(path.name) for path in (out / "_checkpoint" / "commits").iterdir() if path.name.isdecimal()
    )
    for name in (f"{last}", f".{last}.crc"):
        (out / "_checkpoint" / "commits" / name).unlink(missing_ok=True)
    newest = max((out / "busy").iterdir())
    (newest / "_SUCCESS").unlink()
    run()
    assert {rule: table(spark, out, rule) for rule in first} == expected

    rules.write_text(RULES.replace("ss, 10", "ss, 20"), "utf-8")
    assert main(arguments) == 1 and "those of other rules, or of other versions" in capsys.readouterr().err
    assert main([*arguments, "--rule", "here"]) == 2
    assert "rule 'here' has scope gateway: penstock cloud backfill runs it" in capsys.readouterr().err


def test_time_goes_by_for_keys_without_events(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, raw, out = tmp_path / "rules.yaml", tmp_path / "raw", tmp_path / "out"
    rules.write_text(RULES, "utf-8")
    archive(
        raw,
        "1.jsonl",
        [(1_000, "gw1", {"dev": "a", "n": 1}), (15_000, "gw2", {"dev": "b", "n": 1})],
        ["no event"],
    )
    arguments = ["cloud", "stream", str(rules), str(raw), str(out), "--rule", "busy", "--delay", "3s"]
    assert main(arguments) == 0, capsys.readouterr().err
    rows = spark.read.parquet(str(out / "busy")).orderBy("kind", "reason").collect()
    assert [(row["kind"], row["at_ms"], row["dev"], row["c"]) for row in rows if row["kind"] == "insert"] == [
        ("insert", 10_000, "a", 1)
    ]
    errors = [row["reason"] for row in rows if row["kind"] == "error"]
    assert len(errors) == 2 and all("1.jsonl:2: " in reason for reason in errors)

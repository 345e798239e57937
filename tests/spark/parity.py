"""Backfill in Spark beside the engine and the corpus: `python -m tests.spark.parity
FILE.jsonl …` (`make parity`).

Every scenario in event time becomes a rule with a stream of its own; all their events are the raw events of
two gateways. Rows from Spark must be those of the engine, one by one, and those that the corpus expects at
each instant.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cloud_sync.spark import backfill
from cloud_sync.spark.backfill.slots import TYPES, WHOLE, columns_of, slots_of
from rules.drive import Arrival, drive, in_runs
from sql import Engine, Plan

Scenario = dict[str, Any]


def event_time(files: Iterable[Path]) -> list[Scenario]:
    """The scenarios that raw events alone repeat: in event time, ended by a flush."""
    found = [json.loads(line) for path in files for line in path.read_text("utf-8").splitlines()]
    return [
        scenario
        for scenario in found
        if scenario["options"].get("isEventTime")
        and scenario["steps"][-1] == {"flush": True}
        and all("send" in step for step in scenario["steps"][:-1])
    ]


def sources(scenarios: list[Scenario]) -> backfill.Sources:
    """A rule file for each scenario, over a stream of its own."""
    texts = []
    for number, scenario in enumerate(scenarios):
        ddl, sql = (re.sub(r"\bdemo\b", f"s{number}", scenario[key]) for key in ("ddl", "sql"))
        rule = {"id": f"r{number}", "sql": sql, "options": scenario["options"], "actions": [{"log": {}}]}
        texts.append((json.dumps({"streams": [ddl], "rules": [rule]}), f"{number}.yaml"))
    return texts


def arrivals(scenarios: list[Scenario]) -> list[Arrival]:
    """Their events, one a millisecond."""
    sent = [
        (f"s{number}", step["event"]) for number, item in enumerate(scenarios) for step in item["steps"][:-1]
    ]
    return [(at_ms, stream, event) for at_ms, (stream, event) in enumerate(sent)]


def write_raw(folder: Path, events: list[Arrival]) -> None:
    """The events of two gateways, in two files each."""
    lines = [
        json.dumps({"at": at, "stream": stream, "event": event}).encode() + b"\n"
        for at, stream, event in events
    ]
    half = len(lines) // 2
    for gateway in ("a", "b"):
        (folder / f"gw={gateway}").mkdir(parents=True)
        (folder / f"gw={gateway}" / "1.jsonl").write_bytes(b"".join(lines[:half]))
        (folder / f"gw={gateway}" / "2.jsonl.gz").write_bytes(gzip.compress(b"".join(lines[half:])))


Row = tuple[int, str, str]
"""Instant, kind and the row as text."""


def of_engine(texts: backfill.Sources, events: list[Arrival]) -> dict[str, list[Row]]:
    """The engine's rows by rule, in order."""
    known = backfill.compiled(texts, "UTC")
    assert known.ok, [problem.render() for problem in known.problems if problem.is_error][:3]
    plans = {rule: compiled.plan for rule, compiled in known.rules.items()}
    found: dict[str, list[Row]] = {rule: [] for rule in plans}
    for emission in drive(Engine(known.catalog.copied()), plans, in_runs(events, 1)):
        kind = "insert" if emission.kind == "rows" else emission.kind
        rows = [{"why": emission.error}] if kind == "error" else emission.inserted
        found[emission.rule] += [(emission.at_ms, kind, shown(row)) for row in rows]
        found[emission.rule] += [(emission.at_ms, "remove", shown(row)) for row in emission.removed]
    return found


def of_spark(
    spark: Any, texts: backfill.Sources, rules: list[str], raw: Path
) -> dict[str, dict[str, list[Row]]]:
    """Spark's rows by gateway and rule, in order."""
    known = backfill.compiled(texts, "UTC")
    found: dict[str, dict[str, list[Row]]] = {gateway: {rule: [] for rule in rules} for gateway in ("a", "b")}
    rows = backfill.rows(spark, texts, rules, str(raw), "UTC").collect()
    for row in sorted(rows, key=lambda row: int(row["number"])):
        cells = values_of(row, known.rules[row["rule"]].plan)
        found[row["gateway"]][row["rule"]].append((row["at_ms"], row["kind"], shown(cells)))
    return found


def values_of(row: Any, plan: Plan) -> dict[str, Any]:
    """The values of a row from Spark."""
    if row["kind"] == "late":
        return dict(json.loads(row["reason"]))
    if row["kind"] == "error":
        return {"why": row["reason"]}
    columns = columns_of(plan)
    cells = {name: row[slot] for name, slot in slots_of(columns).items() if row[slot] is not None}
    if columns is WHOLE:
        return dict(json.loads(cells["row"]))
    return {name: value if columns[name] in TYPES else json.loads(value) for name, value in cells.items()}


def shown(row: dict[str, Any]) -> str:
    """A row as text: NULL columns are left out, numbers are written by value."""
    visible = {name: value for name, value in row.items() if value is not None and name != "$meta"}
    return json.dumps(visible, sort_keys=True, default=str)


def expected(scenario: Scenario) -> Counter[tuple[int, str]]:
    """What the corpus expects at each instant."""
    return Counter((item["at"], by_value(shown(row))) for item in scenario["expect"] for row in item["rows"])


def by_value(text: str) -> str:
    """2 and 2.0 are one number in the corpus; floats to nine digits."""

    def number(value: Any) -> Any:
        if isinstance(value, float):
            return int(value) if value.is_integer() else float(f"{value:.9g}")
        if isinstance(value, dict):
            return {name: number(item) for name, item in value.items()}
        return [number(item) for item in value] if isinstance(value, list) else value

    return json.dumps(number(json.loads(text)), sort_keys=True)


def differences(spark: Any, scenarios: list[Scenario], folder: Path) -> list[str]:
    """What differs, one line for each scenario and reason."""
    texts, events = sources(scenarios), arrivals(scenarios)
    write_raw(folder, events)
    engine = of_engine(texts, events)
    gateways = of_spark(spark, texts, list(engine), folder)
    found = []
    for number, scenario in enumerate(scenarios):
        rule = f"r{number}"
        found += [
            f"{scenario['name']}: gateway {name} differs from the engine"
            for name, rows in gateways.items()
            if rows[rule] != engine[rule]
        ]
        inserted = Counter((at, by_value(row)) for at, kind, row in gateways["a"][rule] if kind == "insert")
        if inserted != expected(scenario):
            found.append(f"{scenario['name']}: Spark differs from the corpus")
    return found


def main(files: list[str]) -> int:
    """Print what differs and how many rules were compared."""
    from cloud_sync.spark.session import session

    scenarios = event_time(map(Path, files))
    with session("local[2]") as spark, tempfile.TemporaryDirectory() as folder:
        found = differences(spark, scenarios, Path(folder) / "raw")
    print("\n".join([*found, f"{len(scenarios)} rules, {len(found)} differences"]))
    return 1 if found or not scenarios else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

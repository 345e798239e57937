"""Lookup tables: rows of a source by key, which rules join without waiting for a store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.integration.daemon.support import Process, daemon, publisher
from tests.support.brokers import Mosquitto
from tests.support.waiting import wait_for

RULES = """
streams:
  reading: CREATE STREAM reading (dev STRING, temp FLOAT) WITH (DATASOURCE="plant/reading")
  device:
    sql: >-
      CREATE TABLE device (dev STRING, site STRING)
      WITH (KIND="lookup", TYPE="mqtt", DATASOURCE="p/device", KEY="dev")
tables:
  site:
    kind: lookup
    key: name
    type: file
    datasource: site.csv
    columns: {name: string, city: string}
    extra: {fileType: csv, hasHeader: true, interval: 200}
rules:
  placed:
    sql: >-
      SELECT reading.dev AS dev, device.site AS site, site.city AS city FROM reading
      LEFT JOIN device ON reading.dev = device.dev LEFT JOIN site ON device.site = site.name
    actions: [{file: {path: placed.jsonl}}]
  counted:
    sql: >-
      SELECT device.site AS site, count(*) AS n FROM reading INNER JOIN device ON reading.dev = device.dev
      GROUP BY device.site, COUNTWINDOW(3)
    actions: [{file: {path: counted.jsonl}}]
"""


def test_rows_of_a_topic_and_of_a_file_are_looked_up_by_key(broker: Mosquitto, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "input"
    folder.mkdir(parents=True)
    (folder / "site.csv").write_text("name,city\nnorth,Kiel\nsouth,Ulm\n")
    with daemon(tmp_path, broker.url, {"lookup.yaml": RULES}) as gateway:
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            wait_for(lambda: gateway.status()["tables"]["site"]["rows"] == 2, what="the rows of the file")
            plant.send("p/device", {"dev": "a", "site": "north"})
            plant.send("plant/reading", {"dev": "a", "temp": 1.0})
            plant.send("p/device", {"dev": "a", "site": "south"})
            plant.send("plant/reading", {"dev": "a", "temp": 2.0})
            wait_for(lambda: len(gateway.output("placed.jsonl")) == 2, what="two rows")
            assert gateway.output("placed.jsonl") == [
                {"dev": "a", "site": "north", "city": "Kiel"},
                {"dev": "a", "site": "south", "city": "Ulm"},
            ]
            gateway.kill()
            gateway.start()
            gateway.wait_ready()
            plant.send("plant/reading", {"dev": "a", "temp": 3.0})
            plant.send("plant/reading", {"dev": "b", "temp": 4.0})
            # What the file had not confirmed at the kill is written again before.
            wait_for(lambda: {"dev": "b"} in gateway.output("placed.jsonl"), what="the row of b")
            assert gateway.output("placed.jsonl")[-2:] == [
                {"dev": "a", "site": "south", "city": "Ulm"},
                {"dev": "b"},
            ]
            wait_for(lambda: bool(gateway.output("counted.jsonl")), what="the count")
            assert gateway.output("counted.jsonl") == [{"site": "south", "n": 3}]
            (folder / "site.csv").write_text("name,city\nnorth,Kiel\nsouth,Bonn\neast,Jena\n")
            wait_for(lambda: gateway.status()["tables"]["site"]["rows"] == 3, what="the file read again")
            plant.send("plant/reading", {"dev": "a", "temp": 5.0})
            moved = {"dev": "a", "site": "south", "city": "Bonn"}
            wait_for(lambda: moved in gateway.output("placed.jsonl"), what="the row with the new city")
            answer = json.loads(gateway.get("/query?sql=select%20site%20from%20device")[1])
            assert answer == {"rows": [{"site": "south"}], "more": False}
            _parameters_are_values_beside_the_question(gateway)


def _parameters_are_values_beside_the_question(gateway: Process) -> None:
    question = quote("select name, city from site where city in (?, ?) order by name")
    values = quote(json.dumps(["Bonn", "Jena"]))
    found = [{"name": "east", "city": "Jena"}, {"name": "south", "city": "Bonn"}]
    assert json.loads(gateway.get(f"/query?sql={question}&parameters={values}")[1])["rows"] == found
    status, text = gateway.get(f"/query?sql={question}")
    assert (status, "2 question marks, and 0 values" in text) == (400, True)
    assert gateway.get(f"/query?sql={question}&parameters=5")[0] == 400
    command = ["sql", "--gateway", "--address", gateway.address, "--data", str(gateway.data)]
    command += ["--parameters", '{"city": "Bonn"}', "--execute", "select name from site where city = :city"]
    run = subprocess.run(
        [sys.executable, "-m", "edge.cli", *command], capture_output=True, text=True, check=True
    )
    assert run.stdout == '{"name": "south"}\n'


CHANGES = """
streams:
  reading: CREATE STREAM reading (dev STRING, n BIGINT) WITH (DATASOURCE="plant/reading")
  change: CREATE STREAM change (dev STRING, site STRING, act STRING) WITH (DATASOURCE="plant/change")
  seen: CREATE STREAM seen () WITH (TYPE="memory", DATASOURCE="devices")
  device:
    sql: >-
      CREATE TABLE device (dev STRING, site STRING)
      WITH (KIND="lookup", TYPE="memory", DATASOURCE="devices", KEY="dev")
  loose: CREATE TABLE loose () WITH (KIND="lookup", TYPE="memory", DATASOURCE="devices", KEY="dev")
rules:
  changes: {sql: SELECT * FROM change, actions: [{memory: {topic: devices, rowkindField: act}}]}
  placed:
    sql: >-
      SELECT reading.dev AS dev, n, device.site AS site, loose.site AS same FROM reading
      LEFT JOIN device ON reading.dev = device.dev LEFT JOIN loose ON reading.dev = loose.dev
    actions: [{file: {path: placed.jsonl}}]
  all: {sql: SELECT * FROM seen, actions: [{file: {path: seen.jsonl}}]}
"""


def test_a_row_of_a_memory_action_that_says_delete_goes_from_the_tables(
    broker: Mosquitto, tmp_path: Path
) -> None:
    with daemon(tmp_path, broker.url, {"lookup.yaml": CHANGES}) as gateway:
        gateway.wait_ready()
        with publisher(broker.port) as plant:

            def found(number: int, *changes: dict[str, Any]) -> dict[str, list[Any]]:
                """What reading `number` of each device finds after these changes."""
                for change in changes:
                    plant.send("plant/change", change)
                for name in ("a", "b"):
                    plant.send("plant/reading", {"dev": name, "n": number})

                def rows() -> dict[str, list[Any]]:
                    shown = [row for row in gateway.output("placed.jsonl") if row["n"] == number]
                    return {row["dev"]: [row.get("site"), row.get("same")] for row in shown}

                wait_for(lambda: len(rows()) == 2, what="the rows of both devices")
                return rows()

            came = [{"dev": name, "site": name * 2, "act": "insert"} for name in ("a", "b")]
            gone = [{"dev": name, "act": "delete"} for name in ("a", "unknown")]
            assert found(1, *came) == {"a": ["aa", "aa"], "b": ["bb", "bb"]}
            assert found(2, *gone) == {"a": [None, None], "b": ["bb", "bb"]}
            wait_for(lambda: gateway.output("seen.jsonl") == [*came, *gone], what="the rows of the stream")
            gateway.kill()
            gateway.start()
            gateway.wait_ready()
            assert found(3) == {"a": [None, None], "b": ["bb", "bb"]}
            assert found(4, came[0]) == {"a": ["aa", "aa"], "b": ["bb", "bb"]}

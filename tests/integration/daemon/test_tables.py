"""Tables of a running gateway: they survive kill -9, are asked over HTTP and the command
line, and keep to bounds."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from edge.cli import main
from tests.integration.daemon.support import Process, daemon, publisher
from tests.support.brokers import Mosquitto
from tests.support.waiting import wait_for

RULES = """
streams:
  reading: CREATE STREAM reading (machine STRING, temp FLOAT) WITH (DATASOURCE="plant/reading")
  ack: CREATE STREAM ack (machine STRING) WITH (DATASOURCE="plant/ack")
variables: {limit: 80, seen: 0}
tables:
  open_alarms:
    sql: >-
      create table open_alarms (machine string primary key, first double, highest double);
      create index by_temp on open_alarms (highest btree)
    maxRows: 3
    whenFull: oldest
  totals: create table totals (machine string primary key, readings count(*), heat sum(double))
  latest: create window latest#unique(machine) as reading
rules:
  open:
    sql: >-
      on reading(temp > limit) as r merge open_alarms as a where a.machine = r.machine
      when not matched then insert select r.machine as machine, r.temp as first, r.temp as highest
      when matched and r.temp > a.highest then update set highest = r.temp
  clear: {sql: on ack as k delete from open_alarms as a where a.machine = k.machine}
  keep: {sql: insert into latest select * from reading}
  total: {sql: "into table totals select count(*) as readings, sum(temp) as heat
          from reading group by machine"}
  count: {sql: on reading set seen = seen + 1}
  told:
    sql: select machine, seen, totals[machine].readings as n from reading
    actions: [{file: {path: told.jsonl}}]
"""


def asked(gateway: Process, sql: str) -> list[dict[str, Any]]:
    status, text = gateway.get(f"/query?sql={quote(sql)}")
    assert status == 200, text
    found: list[dict[str, Any]] = json.loads(text)["rows"]
    return found


def content(gateway: Process) -> dict[str, list[dict[str, Any]]]:
    order = {"open_alarms": "machine", "totals": "machine", "latest": "machine"}
    return {name: asked(gateway, f"select * from {name} order by {column}") for name, column in order.items()}


def arrived(gateway: Process, count: int) -> None:
    wait_for(lambda: sum(gateway.status()["intake"]["received"].values()) >= count, what=f"{count} messages")


def test_after_kill_9_a_table_is_what_its_messages_made_of_it(broker: Mosquitto, tmp_path: Path) -> None:
    with daemon(tmp_path, broker.url, {"alarms.yaml": RULES}) as gateway:
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            for machine, temp in (("a", 90.0), ("b", 70.0), ("a", 95.0), ("c", 85.0)):
                plant.send("plant/reading", {"machine": machine, "temp": temp})
            plant.send("plant/ack", {"machine": "c"})
            arrived(gateway, 5)
            before = content(gateway)
            gateway.kill()
            gateway.start()
            gateway.wait_ready()
            assert content(gateway) == before
            assert before["open_alarms"] == [{"machine": "a", "first": 90.0, "highest": 95.0}]
            assert before["totals"] == [
                {"machine": "a", "readings": 2, "heat": 185.0},
                {"machine": "b", "readings": 1, "heat": 70.0},
                {"machine": "c", "readings": 1, "heat": 85.0},
            ]
            assert [row["temp"] for row in before["latest"]] == [95.0, 70.0, 85.0]
            plant.send("plant/reading", {"machine": "a", "temp": 96.0})
            last = {"machine": "a", "seen": 5, "n": 3}
            wait_for(lambda: last in gateway.output("told.jsonl"), what="the row of the last message")
            assert asked(gateway, "select highest from open_alarms") == [{"highest": 96.0}]


def test_a_stop_keeps_tables_and_variables_in_the_snapshot(broker: Mosquitto, tmp_path: Path) -> None:
    with daemon(tmp_path, broker.url, {"alarms.yaml": RULES}) as gateway:
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            for number in range(5):
                plant.send("plant/reading", {"machine": f"m{number}", "temp": 90.0 + number})
            arrived(gateway, 5)
            before = content(gateway)
            assert [row["machine"] for row in before["open_alarms"]] == ["m2", "m3", "m4"]
            assert gateway.status()["tables"]["open_alarms"] == {
                "rows": 3,
                "refused": 0,
                "expired": 0,
                "dropped": 2,
            }
            gateway.stop()
            gateway.start()
            gateway.wait_ready()
            assert content(gateway) == before
            plant.send("plant/reading", {"machine": "m0", "temp": 1.0})
            last = {"machine": "m0", "seen": 6, "n": 2}
            wait_for(lambda: last in gateway.output("told.jsonl"), what="the row of the last message")


def test_a_question_beyond_the_bounds_ends_and_holds_up_no_rule(broker: Mosquitto, tmp_path: Path) -> None:
    with daemon(tmp_path, broker.url, {"alarms.yaml": RULES}) as gateway, ThreadPoolExecutor(1) as asker:
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            for number in range(200):
                plant.send("plant/reading", {"machine": f"m{number}", "temp": 1.0})
            arrived(gateway, 200)
            endless = "select count(*) from latest a, latest b, latest c, latest d"
            answer = asker.submit(gateway.get, f"/query?sql={quote(endless)}")
            began = gateway.status()["intake"]["received"]
            plant.send("plant/reading", {"machine": "last", "temp": 2.0})
            last = {"machine": "last", "seen": 201, "n": 1}
            wait_for(lambda: last in gateway.output("told.jsonl"), what="the row of the last message")
            assert sum(began.values()) == 200
            status, text = answer.result()
        assert status == 400
        assert re.match(r"the question takes (longer than 2000 ms|more than 256 MB)", text), text
        assert asked(gateway, "select count(*) as c from latest") == [{"c": 201}]


def test_the_command_line_lists_shows_and_exports(
    broker: Mosquitto, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with daemon(tmp_path, broker.url, {"alarms.yaml": RULES}) as gateway:
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            plant.send("plant/reading", {"machine": "a", "temp": 90.5})
            plant.send("plant/reading", {"machine": "b", "temp": 91.0})
        arrived(gateway, 2)
        where = ["--address", gateway.address, "--data", str(gateway.data)]
        assert main(["tables", "ls", *where]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[:4] for line in lines[1:]] == [
            ["latest", "window", "2", "1000000"],
            ["open_alarms", "table", "2", "3"],
            ["totals", "table", "2", "1000000"],
        ]
        assert main(["tables", "show", "open_alarms", "--where", "first > 90.7", *where]) == 0
        assert capsys.readouterr().out == "machine  first  highest\nb        91.0   91.0\n"
        assert main(["tables", "export", "totals", "--format", "csv", *where]) == 0
        assert capsys.readouterr().out == "machine,readings,heat\na,1,90.5\nb,1,91.0\n"
        sql = ["sql", "--gateway", "--address", gateway.address, "--data", str(gateway.data), "--execute"]
        assert main([*sql, ".tables; select count(*) as n from totals"]) == 0
        assert capsys.readouterr().out.splitlines() == ["latest", "open_alarms", "totals", '{"n": 2}']
        assert main([*sql, "delete from totals"]) == 1
        assert "nothing is changed" in capsys.readouterr().out
        assert main([*sql, "explain select heat from totals where machine = 'a'; EXPLAIN\nRULE clear"]) == 0
        plans = capsys.readouterr().out
        assert "└─ table totals      · found by hash(machine)" in plans
        assert (
            "delete from open_alarms as a where a.machine = k.machine  · found "
            "by hash(machine)\n└─ stream ack" in plans
        )
        assert main([*sql, "explain rule claer"]) == 1
        assert "did you mean 'clear'" in capsys.readouterr().out
        assert main([*sql, "explain delete from totals"]) == 1
        assert "one SELECT" in capsys.readouterr().out
        assert main(["tables", "show", "totlas", *where]) == 2
        assert "there is no table 'totlas'; did you mean 'totals'?" in capsys.readouterr().err
        assert main(["tables", "show", "totals", "--where", "heat >", *where]) == 2
        assert "P001" in capsys.readouterr().err


def test_another_declaration_empties_a_table_and_says_so(broker: Mosquitto, tmp_path: Path) -> None:
    with daemon(tmp_path, broker.url, {"alarms.yaml": RULES}) as gateway:
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            plant.send("plant/reading", {"machine": "a", "temp": 90.0})
            arrived(gateway, 1)
            gateway.write_rule(
                "alarms.yaml",
                RULES.replace("heat sum(double)", "heat avg(double)").replace(
                    "sum(temp) as heat", "avg(temp) as heat"
                ),
            )
            wait_for(lambda: "table.emptied" in gateway.log(), what="the log line")
            plant.send("plant/reading", {"machine": "b", "temp": 50.0})
            wait_for(lambda: asked(gateway, "select * from totals") != [], what="the new row")
            assert asked(gateway, "select * from totals") == [{"machine": "b", "readings": 1, "heat": 50.0}]
            assert [row["machine"] for row in asked(gateway, "select machine from open_alarms")] == ["a"]


LOTS = """
streams:
  car: CREATE STREAM car (lot STRING, step STRING, v BIGINT) WITH (DATASOURCE="plant/car")
contexts:
  lot: initiated by car(step = 'in') as first terminated by car(step = 'out', lot = first.lot)
tables:
  threshold: context lot create variable int threshold = FIRST
rules:
  set: {sql: "context lot on car(lot = context.first.lot, step = 'set') set threshold = v"}
  told:
    sql: context lot select lot, threshold as t from car(lot = context.first.lot)
    actions: [{file: {path: told.jsonl, sendSingle: true}}]
"""


def test_a_variable_of_each_partition_survives_and_takes_a_new_first_value(
    broker: Mosquitto, tmp_path: Path
) -> None:
    with daemon(tmp_path, broker.url, {"lots.yaml": LOTS.replace("FIRST", "100")}) as gateway:
        gateway.wait_ready()
        with publisher(broker.port) as plant:

            def tells(lot: str, step: str, threshold: int) -> None:
                known = len(gateway.output("told.jsonl"))
                plant.send("plant/car", {"lot": lot, "step": step, "v": 5})
                wait_for(lambda: len(gateway.output("told.jsonl")) > known, what=f"the row of {lot}, {step}")
                assert gateway.output("told.jsonl")[known:] == [{"lot": lot, "t": threshold}]

            tells("a", "in", 100)
            tells("b", "in", 100)
            tells("a", "set", 5)
            gateway.kill()
            gateway.start()
            gateway.wait_ready()
            tells("a", "look", 5)
            gateway.stop()
            gateway.start()
            gateway.wait_ready()
            tells("a", "look", 5)
            tells("b", "look", 100)
            assert gateway.status()["tables"] == {}
            gateway.write_rule("lots.yaml", LOTS.replace("FIRST", "70"))
            wait_for(lambda: "table.emptied" in gateway.log(), what="the log line")
            tells("c", "in", 70)
            tells("c", "set", 5)
            plant.send("plant/car", {"lot": "c", "step": "out"})
            tells("c", "in", 70)

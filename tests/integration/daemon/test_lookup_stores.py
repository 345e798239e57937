"""Lookup tables that a database and a server answer for, in a real daemon:
order, misses, time limits, a crash."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from edge.cli import main
from tests.integration.daemon.support import Process, daemon, publisher
from tests.support.brokers import Mosquitto
from tests.support.waiting import PATIENCE_S, wait_for

RULES = """
streams:
  reading: CREATE STREAM reading (dev STRING, temp FLOAT) WITH (DATASOURCE="plant/asked")
  device:
    sql: >-
      CREATE TABLE device (id STRING, site STRING)
      WITH (KIND="lookup", TYPE="sql", DATASOURCE="device", CONF_KEY="register", KEY="id")
tables:
  site:
    kind: lookup
    type: http
    datasource: URL/site/{name}
    cache: {ttl: 1m}
    timeoutMs: 400
  alarm: create table alarm (dev string primary key, n int)
rules:
  alarm: {sql: "on reading(dev = 'c') as r merge alarm as a where a.dev = r.dev
                when not matched then insert select r.dev as dev, 1 as n"}
  placed:
    sql: >-
      SELECT reading.dev AS dev, device.site AS site, temp FROM reading
      LEFT JOIN device ON reading.dev = device.id
    actions: [{file: {path: placed.jsonl}}]
  known: {sql: "SELECT dev, temp FROM reading INNER JOIN device ON reading.dev = device.id",
          actions: [{file: {path: known.jsonl}}]}
  city:
    sql: >-
      SELECT dev, site.city AS city FROM reading INNER JOIN device ON reading.dev = device.id
      LEFT JOIN site ON site.name = device.site
    actions: [{file: {path: city.jsonl}}]
  plain: {sql: "SELECT dev, temp FROM reading", actions: [{file: {path: plain.jsonl}}]}
"""


class Server:
    """Answers `/site/NAME`; `gate` holds answers up while it is cleared."""

    def __init__(self) -> None:
        self.gate = Event()
        self.gate.set()
        self.asked: list[str] = []
        self.cities = {"north": "Kiel", "south": "Ulm"}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                name = self.path.removeprefix("/site/")
                outer.asked.append(name)
                outer.gate.wait(PATIENCE_S)
                known = name in outer.cities
                text = json.dumps({"city": outer.cities[name]}).encode() if known else b""
                with suppress(OSError):  # who asked was killed meanwhile
                    self.send_response(200 if known else 404)
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.gate.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def register(folder: Path, *rows: tuple[str, str]) -> None:
    """Write the register of devices."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "register.db")) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS device (id TEXT PRIMARY KEY, site TEXT)")
        connection.executemany("INSERT OR REPLACE INTO device VALUES (?, ?)", rows)


def shown(gateway: Process, table: str) -> str:
    """What `penstock tables show` says of a table that it cannot show."""
    with redirect_stderr(StringIO()) as said:
        where = ["--address", gateway.address, "--data", str(gateway.data)]
        assert main(["tables", "show", table, *where]) == 2
    return said.getvalue()


def is_written(gateway: Process) -> bool:
    """Whether all that the gateway has taken in is in the files of its journal; there is no snapshot yet."""
    return bool(gateway.status()["journal"]["is_written"])


def configuration(folder: Path) -> str:
    path = folder / "gateway.yaml"
    path.write_text(
        "connections: {plantDb: {url: 'sqlite:///register.db'}}\n"
        "sources: {sql: {register: {connectionSelector: plantDb}}}\n"
    )
    return str(path)


def test_events_wait_for_databases_and_servers_in_order(
    broker: Mosquitto, server: Server, tmp_path: Path
) -> None:
    register(tmp_path / "data", ("a", "north"), ("b", "south"))
    rules = {"asked.yaml": RULES.replace("URL", server.url)}
    with daemon(tmp_path, broker.url, rules, "--config", configuration(tmp_path)) as gateway:
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            for number, dev in enumerate(["a", "b", "c", "a", None, "b"]):
                plant.send("plant/asked", {"dev": dev, "temp": float(number)})
            wait_for(
                lambda: len(gateway.output("placed.jsonl")) == 6, what="all rows, those without a device too"
            )
            assert gateway.output("placed.jsonl") == [
                {"dev": "a", "site": "north", "temp": 0.0},
                {"dev": "b", "site": "south", "temp": 1.0},
                {"dev": "c", "temp": 2.0},
                {"dev": "a", "site": "north", "temp": 3.0},
                {"temp": 4.0},
                {"dev": "b", "site": "south", "temp": 5.0},
            ]
            wait_for(lambda: len(gateway.output("city.jsonl")) == 4, what="the cities")
            assert [row["city"] for row in gateway.output("city.jsonl")] == ["Kiel", "Ulm", "Kiel", "Ulm"]
            wait_for(
                lambda: [row["temp"] for row in gateway.output("known.jsonl")] == [0, 1, 3, 5], what="a, b"
            )
            assert "'site' is a lookup table" in shown(gateway, "site") != shown(gateway, "sites")
            asked = gateway.status()["lookups"]
            assert (asked["site"]["requests"], asked["site"]["answers"]) == (2, 2)  # the rest was cached
            assert (asked["device"]["error"], asked["device"]["unanswered"]) == (None, 0)
            metrics = gateway.get("/metrics")[1]
            assert 'penstock_lookup_requests_total{table="site"} 2' in metrics
            assert 'penstock_table_rows{table="alarm"} 1' in metrics
            # A device is moved: without a cache the next event knows it.
            register(tmp_path / "data", ("a", "south"))
            plant.send("plant/asked", {"dev": "a", "temp": 6.0})
            moved = {"dev": "a", "site": "south", "temp": 6.0}
            wait_for(lambda: moved in gateway.output("placed.jsonl"), what="the site it moved to")
            _a_silent_server_holds_up_nobody_else(gateway, server, plant, tmp_path)


def _a_silent_server_holds_up_nobody_else(gateway: Process, server: Server, plant: Any, folder: Path) -> None:
    register(folder / "data", ("d", "east"))
    server.cities["east"] = "Jena"
    server.gate.clear()
    cities = len(gateway.output("city.jsonl"))
    plant.send("plant/asked", {"dev": "d", "temp": 7.0})
    plant.send("plant/asked", {"dev": "b", "temp": 8.0})
    wait_for(lambda: gateway.output("plain.jsonl")[-1]["temp"] == 8, what="the rule that asks nobody")
    wait_for(lambda: len(gateway.output("city.jsonl")) == cities + 2, what="the rows after timeoutMs")
    assert gateway.output("city.jsonl")[-2:] == [{"dev": "d"}, {"dev": "b", "city": "Ulm"}]
    assert gateway.status()["lookups"]["site"]["unanswered"] == 1
    server.gate.set()


def test_a_restart_repeats_the_answers_and_asks_for_the_rest(
    broker: Mosquitto, server: Server, tmp_path: Path
) -> None:
    register(tmp_path / "data", ("a", "north"), ("b", "south"))
    slow = RULES.replace("plant/asked", "plant/crash").replace("400", "20000").replace("URL", server.url)
    with daemon(tmp_path, broker.url, {"asked.yaml": slow}, "--config", configuration(tmp_path)) as gateway:
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            plant.send("plant/crash", {"dev": "a", "temp": 0.0})
            wait_for(lambda: len(gateway.output("city.jsonl")) == 1, what="the first city")
            server.gate.clear()
            plant.send("plant/crash", {"dev": "b", "temp": 1.0})
            plant.send("plant/crash", {"dev": "a", "temp": 2.0})
            wait_for(lambda: "south" in server.asked, what="the question that nobody answers")
            wait_for(lambda: len(gateway.output("placed.jsonl")) == 3, what="rows of the other rule")
            wait_for(lambda: is_written(gateway), what="the journal")
            gateway.kill()
            # What was answered before the crash is not asked again, whatever the answer would be now.
            register(tmp_path / "data", ("a", "elsewhere"))
            server.cities["north"] = "Husum"
            server.asked.clear()
            server.gate.set()
            gateway.start()
            wait_for(
                lambda: {"dev": "b", "city": "Ulm"} in gateway.output("city.jsonl"), what="the second city"
            )
            wait_for(
                lambda: gateway.output("city.jsonl")[-1] == {"dev": "a", "city": "Kiel"}, what="the third"
            )
            assert set(server.asked) == {"south"}
            sites = {(row["temp"], row["site"]) for row in gateway.output("placed.jsonl")}
            assert sites == {(0.0, "north"), (1.0, "south"), (2.0, "north")}


REFUSED = """
streams:
  reading: CREATE STREAM reading (dev STRING, temp FLOAT) WITH (DATASOURCE="plant/refused")
tables:
  device: {kind: lookup, type: sql, datasource: device, extra: {url: "sqlite:///register.db"},
           timeoutMs: 10m, refusalMs: 100ms}
  strict: {kind: lookup, type: sql, datasource: devices, extra: {url: "sqlite:///register.db"},
           timeoutMs: 10m, unanswered: error}
rules:
  placed:
    sql: SELECT dev, device.site AS site, temp FROM reading LEFT JOIN device ON dev = device.id
    actions: [{file: {path: placed.jsonl}}]
  strict: {sql: SELECT dev FROM reading LEFT JOIN strict ON dev = strict.id, actions: [{nop: {}}]}
"""


def test_a_store_that_refuses_holds_up_no_event_and_is_asked_again(broker: Mosquitto, tmp_path: Path) -> None:
    register(tmp_path / "data")
    with closing(sqlite3.connect(tmp_path / "data" / "register.db")) as connection, connection:
        connection.execute("ALTER TABLE device RENAME TO old")
    why = "no such table: device; create the table, or check its name in DATASOURCE"
    with daemon(tmp_path, broker.url, {"refused.yaml": REFUSED}) as gateway:
        gateway.wait_ready()
        with publisher(broker.port) as plant:
            for number, dev in enumerate("ab"):
                plant.send("plant/refused", {"dev": dev, "temp": float(number)})
            misses = [{"dev": "a", "temp": 0.0}, {"dev": "b", "temp": 1.0}]
            wait_for(lambda: gateway.output("placed.jsonl") == misses, what="both events, long before 10 m")
            wait_for(
                lambda: gateway.status()["rules"]["strict"]["counters"]["errors"] == 2,
                what="two error events",
            )
            assert gateway.status()["lookups"]["device"]["error"] == why
            assert gateway.log().count("event=lookup.refused table=device") == 1
            wait_for(lambda: is_written(gateway), what="the journal")
            gateway.kill()
            # The table is there now: what was refused before the crash stays refused.
            register(tmp_path / "data", ("a", "north"), ("b", "south"))
            gateway.start()
            gateway.wait_ready()
            plant.send("plant/refused", {"dev": "b", "temp": 2.0})
            found = {"dev": "b", "site": "south", "temp": 2.0}
            wait_for(lambda: found in gateway.output("placed.jsonl"), what="the row of the table")
            assert {"dev": "a", "site": "north", "temp": 0.0} not in gateway.output("placed.jsonl")
            assert gateway.status()["lookups"]["device"]["error"] is None

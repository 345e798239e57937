"""Each kind of store against the real thing: SQLite, PostgreSQL, Redis, an HTTP server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edge.intake.lookups.base import Lookup, LookupEnvironment, Unanswered
from edge.intake.lookups.kinds import kinds
from edge.intake.sources.registry import BadSource, settings_of
from sql.catalog.streams import Stream
from tests.integration.sinks.support import HttpPeer
from tests.support.servers import Postgres, Redis, postgres
from tests.support.waiting import PATIENCE_MS, PATIENCE_S

TABLE = "CREATE TABLE device (id TEXT, slot INTEGER, site TEXT, weight NUMERIC)"
ROWS = "INSERT INTO device VALUES ('a', 1, 'north', 2.5), ('a', 2, 'south', 3), ('b', 1, NULL, NULL)"


def lookup(kind: str, datasource: str, folder: Path, **settings: Any) -> Lookup:
    """A connection as a declaration with these settings makes it."""
    found = kinds()[kind]
    stream = Stream("device", options={"TYPE": kind, "DATASOURCE": datasource, "EXTRA": json.dumps(settings)})
    return found.make(stream, settings_of(found, stream), LookupEnvironment(folder, 10_000))


@pytest.fixture
def http_peer() -> Iterator[HttpPeer]:
    with HttpPeer().serving() as peer:
        yield peer


@pytest.fixture(scope="module", name="postgres")
def running_postgres() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "my devices.db")) as connection, connection:
            connection.execute(TABLE)
            connection.execute(ROWS)
        return "sqlite:///my%20devices.db"
    import psycopg

    server: Postgres = request.getfixturevalue("postgres")
    with psycopg.connect(server.url, autocommit=True) as session:
        session.execute("DROP TABLE IF EXISTS device")
        session.execute(TABLE)
        session.execute(ROWS)
    return server.url


def test_a_database_gives_the_rows_of_a_key(url: str, tmp_path: Path) -> None:
    store = lookup("sql", "device", tmp_path, url=url, rowsMax=2)
    assert store.find(("id", "slot"), ("a", 1), PATIENCE_MS) == [
        {"id": "a", "slot": 1, "site": "north", "weight": 2.5}
    ]
    assert [row["site"] for row in store.find(("id",), ("a",), PATIENCE_MS)] == ["north", "south"]
    assert store.find(("id",), ("b",), PATIENCE_MS) == [{"id": "b", "slot": 1, "site": None, "weight": None}]
    assert store.find(("id",), ("'; DROP TABLE device; --",), PATIENCE_MS) == []
    small = lookup("sql", "device", tmp_path, url=url, rowsMax=1)
    with pytest.raises(Unanswered, match="more than 1 rows"):
        small.find(("id",), ("a",), PATIENCE_MS)
    small.close()
    with pytest.raises(Unanswered):
        store.find(("colour",), ("red",), PATIENCE_MS)
    assert len(store.find(("id",), ("a",), PATIENCE_MS)) == 2  # it has connected again
    store.close()


def test_a_database_that_is_away_is_asked_again_when_it_is_back(tmp_path: Path) -> None:
    store = lookup("sql", "device", tmp_path, url="sqlite:///later.db")
    with pytest.raises(Unanswered, match="unable to open"):
        store.find(("id",), ("a",), PATIENCE_MS)
    with closing(sqlite3.connect(tmp_path / "later.db")) as connection, connection:
        connection.execute(TABLE)
        connection.execute(ROWS)
    assert len(store.find(("id",), ("a",), PATIENCE_MS)) == 2
    store.close()


def test_a_server_gives_objects_and_lists(http_peer: HttpPeer, tmp_path: Path) -> None:
    store = lookup(
        "http",
        f"{http_peer.url}/device/{{id}}?slot={{slot}}",
        tmp_path,
        headers={"Authorization": "Bearer t"},
    )
    http_peer.answer(200, body=b'{"site": "north"}')
    assert store.find(("id", "slot"), ("a/b", 7), PATIENCE_MS) == [{"id": "a/b", "slot": 7, "site": "north"}]
    asked = http_peer.requests[-1]
    assert (asked.path, asked.headers["authorization"]) == ("/device/a%2Fb?slot=7", "Bearer t")
    http_peer.answer(404, body=b"no such device")
    assert store.find(("id", "slot"), ("c", 1), PATIENCE_MS) == []
    assert http_peer.requests[0].peer == http_peer.requests[1].peer  # one connection
    http_peer.answer(500)
    with pytest.raises(Unanswered, match="HTTP 500"):
        store.find(("id", "slot"), ("c", 1), PATIENCE_MS)
    http_peer.answer(200, body=b"<html>")
    with pytest.raises(Unanswered, match="no JSON"):
        store.find(("id", "slot"), ("c", 1), PATIENCE_MS)
    with pytest.raises(Unanswered, match=r"wants \{slot\}"):
        store.find(("id",), ("c",), PATIENCE_MS)
    store.close()


def test_a_list_of_everything_is_searched_for_the_key(http_peer: HttpPeer, tmp_path: Path) -> None:
    store = lookup("http", "/devices", tmp_path, url=http_peer.url)
    text = json.dumps([{"id": 1, "site": "north"}, {"id": 2, "site": "south"}, {"site": "none"}]).encode()
    http_peer.answer(200, body=text)
    assert store.find(("id",), (2,), PATIENCE_MS) == [{"id": 2, "site": "south"}]
    http_peer.answer(200, body=text, delay_s=PATIENCE_S)
    with pytest.raises(Unanswered, match="timed out"):
        store.find(("id",), (2,), 100)
    store.close()


def test_redis_gives_the_json_under_a_key(tmp_path: Path) -> None:
    pytest.importorskip("redis")
    server = Redis(tmp_path / "redis", "s3cret").start()
    try:
        import redis

        client = redis.Redis("127.0.0.1", server.port, 3, "s3cret")
        client.set("a", '{"site": "north"}')
        client.lpush("b", '{"site": "south"}', '{"site": "east"}')
        client.set("bad", "x")
        client.close()
        address = {"addr": f"127.0.0.1:{server.port}", "password": "s3cret"}
        store = lookup("redis", "3", tmp_path, **address)
        assert store.find(("id",), ("a",), PATIENCE_MS) == [{"id": "a", "site": "north"}]
        assert store.find(("id",), ("none",), PATIENCE_MS) == []
        with pytest.raises(Unanswered, match="no JSON"):
            store.find(("id",), ("bad",), PATIENCE_MS)
        listed = lookup("redis", "3", tmp_path, **address, dataType="list")
        assert [row["site"] for row in listed.find(("id",), ("b",), PATIENCE_MS)] == ["east", "south"]
        store.close()
        listed.close()
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("kind", "datasource", "settings", "message"),
    [
        ("sql", "device", {}, "no url"),
        ("sql", "device", {"url": "sqlite:////etc/passwd"}, "below the data folder"),
        ("sql", "device", {"url": "sqlite:///a.db", "colour": 1}, "colour"),
        ("http", "/devices", {}, "is no address"),
        ("http", "http://{host}/a", {}, "is no address"),
        ("redis", "0", {}, "host:port"),
        ("redis", "x", {"addr": "h:1"}, "no number"),
        ("sql", "device", {"url": "sqlite:///a.db", "lookup": {"cacheTtl": -1}}, "cacheTtl"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    kind: str, datasource: str, settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadSource, match=message):
        lookup(kind, datasource, tmp_path, **settings)

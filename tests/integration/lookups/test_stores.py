"""Each kind of store against the real thing: SQLite, PostgreSQL, MariaDB, Redis, an HTTP server."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from edge.intake.lookups.base import KeyRefused, Lookup, LookupEnvironment, Refused, Unanswered
from edge.intake.lookups.kinds import kinds
from edge.intake.sources.registry import BadSource, settings_of
from sql.catalog.streams import Stream
from tests.integration.sinks.support import HttpPeer
from tests.support.ports import free_port
from tests.support.servers import MariaDb, Postgres, Redis, mariadb, postgres
from tests.support.waiting import PATIENCE_MS, PATIENCE_S, wait_for

TABLE = "CREATE TABLE device (id TEXT, slot INTEGER, site TEXT, weight NUMERIC(5, 1))"
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


@pytest.fixture(scope="module", name="mariadb")
def running_mariadb() -> Iterator[MariaDb]:
    with mariadb() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "my devices.db")) as connection, connection:
            connection.execute(TABLE)
            connection.execute(ROWS)
        return "sqlite:///my%20devices.db"
    if request.param == "mariadb":
        other: MariaDb = request.getfixturevalue("mariadb")
        for statement in ("DROP TABLE IF EXISTS device", TABLE, ROWS):
            other.ask(statement)
        return other.url
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
    with pytest.raises(KeyRefused, match="more than 1 rows"):
        small.find(("id",), ("a",), PATIENCE_MS)
    small.close()
    with pytest.raises(Refused, match=r"colour.*; check the names of the table's columns in ON"):
        store.find(("colour",), ("red",), PATIENCE_MS)
    assert len(store.find(("id",), ("a",), PATIENCE_MS)) == 2  # it has connected again
    store.close()
    other = lookup("sql", "gauge", tmp_path, url=url)
    with pytest.raises(Refused, match=r"gauge.*; create the table, or check its name in DATASOURCE"):
        other.find(("id",), ("a",), PATIENCE_MS)
    other.close()


@pytest.mark.parametrize("url", ["postgres", "mariadb"], indirect=True)
def test_a_database_that_hangs_does_not_hold_a_request_longer_than_its_limit(
    url: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Postgres | MariaDb = request.getfixturevalue("mariadb" if "mysql" in url else "postgres")
    store = lookup("sql", "device", tmp_path, url=url, timeoutMs=300)

    def answered() -> bool:
        with suppress(Unanswered):  # a busy machine may need longer than the limit
            return len(store.find(("id",), ("a",), PATIENCE_MS)) == 2
        return False

    wait_for(answered)
    with server.hanging():
        for error in (r"no answer within 300 ms|timed out", r"timeout expired|timed out"):
            began_s = time.monotonic()
            with pytest.raises(Unanswered, match=error):
                store.find(("id",), ("a",), 300)
            assert time.monotonic() - began_s < PATIENCE_S / 4
    wait_for(answered)
    store.close()


def denied(error: type[Exception], kind: str, folder: Path, key: Any = "a", **settings: Any) -> str:
    """The text of the error that a lookup of `key` ends with."""
    store = lookup(kind, "device" if kind == "sql" else "0", folder, **settings)
    with pytest.raises(error) as raised:
        store.find(("id",), (key,), PATIENCE_MS)
    store.close()
    assert raised.type is error
    return str(raised.value)


def test_what_a_database_denies_is_told_from_one_that_is_away(postgres: Postgres, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(postgres.url, autocommit=True) as session:
        session.execute("DROP TABLE IF EXISTS device")
        session.execute("CREATE TABLE device (id INTEGER)")
        session.execute("CREATE ROLE guest LOGIN")
    at, url = f"127.0.0.1:{postgres.port}", postgres.url
    user, base, right = "check the user", "check the name of the database", "grant the user the right to read"
    assert user in denied(Refused, "sql", tmp_path, url=f"postgresql://nobody@{at}/postgres")
    assert base in denied(Refused, "sql", tmp_path, url=f"postgresql://postgres@{at}/nowhere")
    assert right in denied(Refused, "sql", tmp_path, 1, url=f"postgresql://guest@{at}/postgres")
    assert "no address of a database" in denied(Refused, "sql", tmp_path, url="postgresql://a:b:c")
    assert "install it" in denied(Refused, "sql", tmp_path, url="otherbase://a/b")
    assert "give the value in ON the type" in denied(Refused, "sql", tmp_path, url=url)  # 'a' is no integer
    assert "refused" in denied(
        Unanswered, "sql", tmp_path, url=f"postgresql://postgres@127.0.0.1:{free_port()}/x"
    )
    with psycopg.connect(postgres.url, autocommit=True) as session:
        session.execute("DROP TABLE device")
        session.execute("CREATE TABLE device (id TEXT)")
    assert "check the value" in denied(KeyRefused, "sql", tmp_path, "a\0b", url=url)
    # The server asks for passwords from here on.
    (postgres.folder / "data" / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
    postgres.stop()
    assert denied(Unanswered, "sql", tmp_path, url=url)
    postgres.start()
    assert user in denied(Refused, "sql", tmp_path, url=f"postgresql://guest:wrong@{at}/postgres")
    assert user in denied(Refused, "sql", tmp_path, url=url)  # no password


def test_the_numbers_of_mysqls_errors_have_remedies(mariadb: MariaDb, tmp_path: Path) -> None:
    for statement in (
        "DROP TABLE IF EXISTS device",
        "CREATE TABLE device (id TEXT, slot INTEGER)",
        "CREATE USER guest",
        "CREATE USER reader",
        "GRANT SELECT (slot) ON plant.device TO reader",
    ):
        mariadb.ask(statement)
    at, url = f"127.0.0.1:{mariadb.port}", mariadb.url
    user, base, right = "check the user", "check the name of the database", "grant the user the right to read"
    assert user in denied(Refused, "sql", tmp_path, url=f"mysql://root:wrong@{at}/plant")
    assert base in denied(Refused, "sql", tmp_path, url=f"mysql://root@{at}/nowhere")
    assert right in denied(Refused, "sql", tmp_path, url=f"mysql://guest@{at}/plant")
    assert right in denied(Refused, "sql", tmp_path, url=f"mysql://reader@{at}/plant")
    assert "refused" in denied(Unanswered, "sql", tmp_path, url=f"mysql://root@127.0.0.1:{free_port()}/plant")
    mariadb.ask("REVOKE SELECT (slot) ON plant.device FROM reader")
    mariadb.ask("GRANT INSERT ON plant.device TO reader")
    assert right in denied(Refused, "sql", tmp_path, url=f"mysql://reader@{at}/plant")
    mariadb.ask("DROP TABLE device")
    assert "create the table" in denied(Refused, "sql", tmp_path, url=url)


def test_a_file_that_is_missing_is_read_when_it_is_there(tmp_path: Path) -> None:
    store = lookup("sql", "device", tmp_path, url="sqlite:///later.db")
    with pytest.raises(Refused, match=r"there is no file .*later\.db; put it there"):
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
    with pytest.raises(KeyRefused, match="no JSON"):
        store.find(("id", "slot"), ("c", 1), PATIENCE_MS)
    for status, error in ((400, KeyRefused), (401, Refused), (403, KeyRefused), (429, Unanswered)):
        http_peer.answer(status, body=b"no")
        with pytest.raises(Unanswered if error is Unanswered else Refused, match=f"HTTP {status}") as raised:
            store.find(("id", "slot"), ("c", 1), PATIENCE_MS)
        assert raised.type is error
    with pytest.raises(Refused, match=r"\{slot\}, which ON does not name"):
        store.find(("id",), ("c",), PATIENCE_MS)
    store.close()


def test_a_server_with_tokens_is_asked_for_a_new_one_where_it_refuses_the_last(
    http_peer: HttpPeer, tmp_path: Path
) -> None:
    store = lookup(
        "http",
        f"{http_peer.url}/device/{{id}}",
        tmp_path,
        headers={"Authorization": "Bearer {{.token}}"},
        oAuth={"access": {"url": f"{http_peer.url}/token", "body": '{"name": "gateway"}'}},
    )
    http_peer.answer(200, body=b'{"token": "t1"}')
    http_peer.answer(200, body=b'{"site": "north"}')
    assert store.find(("id",), ("a",), PATIENCE_MS) == [{"id": "a", "site": "north"}]
    http_peer.answer(401)
    http_peer.answer(200, body=b'{"token": "t2"}')
    http_peer.answer(200, body=b'{"site": "south"}')
    assert store.find(("id",), ("b",), PATIENCE_MS) == [{"id": "b", "site": "south"}]
    asked = [(request.path, request.headers.get("authorization")) for request in http_peer.requests]
    assert asked == [
        ("/token", None),
        ("/device/a", "Bearer t1"),
        ("/device/b", "Bearer t1"),
        ("/token", None),
        ("/device/b", "Bearer t2"),
    ]
    assert http_peer.requests[0].body == b'{"name": "gateway"}'
    http_peer.answer(401)
    http_peer.answer(503)
    with pytest.raises(Unanswered, match="token: HTTP 503"):
        store.find(("id",), ("c",), PATIENCE_MS)
    http_peer.answer(403)
    with pytest.raises(Refused, match="token: HTTP 403; check oAuth"):
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
        with pytest.raises(KeyRefused, match="no JSON"):
            store.find(("id",), ("bad",), PATIENCE_MS)
        listed = lookup("redis", "3", tmp_path, **address, dataType="list")
        assert [row["site"] for row in listed.find(("id",), ("b",), PATIENCE_MS)] == ["east", "south"]
        with pytest.raises(KeyRefused, match="WRONGTYPE"):
            store.find(("id",), ("b",), PATIENCE_MS)
        store.close()
        listed.close()
        where, began_s = address["addr"], time.monotonic()
        assert "check username and password" in denied(Refused, "redis", tmp_path, addr=where)
        assert "disabled; check username and password" in denied(
            Refused, "redis", tmp_path, addr=where, password="x"
        )
        assert time.monotonic() - began_s < 1  # the client does not repeat with pauses of its own
        far = lookup("redis", "99", tmp_path, **address)
        with pytest.raises(Refused, match="check DATASOURCE"):
            far.find(("id",), ("a",), PATIENCE_MS)
        far.close()
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
        ("http", "http://host/a", {"headers": {"a": "{{.b"}}, "headers.*without"),
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

"""The sql sink against SQLite, a real PostgreSQL and a real MariaDB."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sql import Catalog, Engine, plan_rule, run_script
from tests.integration.sinks.support import Gateway
from tests.support.servers import MariaDb, Postgres, mariadb, postgres
from tests.support.waiting import wait_for
from tests.unit.sinks.support import rows


@dataclass
class Store:
    """A database with one table `t (n BIGINT PRIMARY KEY, s TEXT, x DOUBLE PRECISION, o TEXT)`."""

    url: str
    ask: Callable[[str], Sequence[Any]]
    server: Postgres | None = None


TABLE = "CREATE TABLE t (n BIGINT PRIMARY KEY, s TEXT, x DOUBLE PRECISION, o TEXT)"


@pytest.fixture(scope="module", name="postgres")
def running_postgres() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture(scope="module", name="mariadb")
def running_mariadb() -> Iterator[MariaDb]:
    with mariadb() as running:
        yield running


def sqlite_store(folder: Path, url: str = "sqlite:///out/results.db") -> Store:
    path = folder / "data" / "out" / "results.db"
    path.parent.mkdir(parents=True, exist_ok=True)

    def ask(statement: str) -> Sequence[Any]:
        with sqlite3.connect(path) as connection:
            found = connection.execute(statement).fetchall()
        connection.close()
        return found

    ask(TABLE)
    return Store(url, ask)


def postgres_store(server: Postgres) -> Store:
    import psycopg

    name = f"d{uuid.uuid4().hex}"
    url = server.url.removesuffix("postgres") + name

    def ask_at(address: str, statement: str) -> Sequence[Any]:
        with psycopg.connect(address, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    ask_at(server.url, f"CREATE DATABASE {name}")
    ask_at(url, TABLE)
    return Store(url, lambda statement: ask_at(url, statement), server)


def mariadb_store(server: MariaDb) -> Store:
    name = f"d{uuid.uuid4().hex}"
    server.ask(f"CREATE DATABASE {name}")
    server.ask(TABLE, name)
    return Store(server.url.removesuffix("plant") + name, lambda statement: server.ask(statement, name))


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "sqlite":
        return sqlite_store(tmp_path)
    if request.param == "mariadb":
        return mariadb_store(request.getfixturevalue("mariadb"))
    return postgres_store(request.getfixturevalue("postgres"))


def test_rows_are_written_in_order_with_their_types(gateway: Gateway, store: Store) -> None:
    delivery = gateway.action("sql", {"url": store.url, "table": "t"})
    delivery.submit(rows({"n": 1, "s": 'a "b"', "x": 1.5, "o": {"k": [1]}}, {"n": 2, "s": None}), 1)
    delivery.submit(rows({"n": 3, "x": -0.5}), 2)
    assert dict(gateway.await_receipts(2)) == {1: "delivered", 2: "delivered"}
    assert [tuple(row) for row in store.ask("SELECT n, s, x, o FROM t ORDER BY n")] == [
        (1, 'a "b"', 1.5, '{"k":[1]}'),
        (2, None, None, None),
        (3, None, -0.5, None),
    ]


def test_what_is_refused_is_a_dead_letter_and_the_rest_is_written(gateway: Gateway, store: Store) -> None:
    delivery = gateway.action("sql", {"url": store.url, "table": "t", "sendSingle": True})
    delivery.submit(rows({"n": 1}, {"n": 1}, {"nosuch": 1}, {"n": 2}), 1)
    assert gateway.await_receipts(1) == [(1, "rejected")]
    assert [row[0] for row in store.ask("SELECT n FROM t ORDER BY n")] == [1, 2]
    letters = gateway.dead_letters()
    assert letters.count("the database refused it") == 2


def test_upserts_updates_and_deletions(gateway: Gateway, store: Store) -> None:
    settings = {"url": store.url, "table": "t", "keyField": "n", "rowkindField": "kind", "fields": ["n", "s"]}
    delivery = gateway.action("sql", settings)
    delivery.submit(rows({"n": 1, "s": "a", "kind": "upsert"}, {"n": 1, "s": "b", "kind": "upsert"}), 1)
    delivery.submit(rows({"n": 2, "s": "x"}, {"n": 2, "s": "y", "kind": "update"}, {"n": 3, "s": "z"}), 2)
    delivery.submit(rows({"n": 3, "kind": "delete"}), 3)
    delivery.submit(rows({"n": 3, "kind": "vanish"}), 4)
    assert dict(gateway.await_receipts(4)) == {1: "delivered", 2: "delivered", 3: "delivered", 4: "rejected"}
    assert [tuple(row) for row in store.ask("SELECT n, s FROM t ORDER BY n")] == [(1, "b"), (2, "y")]


@pytest.mark.parametrize("window", ["unique(n)", "sort(1, x)", "length(1)", "rank(n, 1, x)"])
def test_a_table_is_kept_equal_to_a_window(gateway: Gateway, store: Store, window: str) -> None:
    settings = {"url": store.url, "table": "t", "keyField": "n", "rowkindField": "kind"}
    delivery = gateway.action("sql", settings)
    engine = Engine(Catalog())
    run_script(engine, "create schema E(n int, x double)", 0)
    engine.deploy("r", plan_rule(f"select irstream n, x from E#{window}", engine.catalog), 0)
    for number, (n, x) in enumerate([(1, 5.0), (2, 6.0), (1, 5.0), (1, 4.0), (2, 7.0)], start=1):
        (emission,) = engine.push("E", [{"n": n, "x": x}], number)
        delivery.submit(emission, number)
        assert gateway.await_receipts(number)[-1] == (number, "delivered")
        found = [{"n": row[0], "x": row[1]} for row in store.ask("SELECT n, x FROM t ORDER BY n")]
        assert found == sorted(engine.read("r"), key=lambda row: row["n"])


def test_an_action_for_all_rows_and_a_table_by_field(gateway: Gateway, store: Store) -> None:
    settings = {
        "url": store.url,
        "table": "{{.to}}",
        "action": "upsert",
        "keyField": ["n"],
        "excludeFields": ["to"],
    }
    delivery = gateway.action("sql", settings)
    delivery.submit(rows({"n": 1, "s": "a", "to": "t"}, {"n": 1, "s": "b", "to": "t"}), 1)
    assert gateway.await_receipts(1) == [(1, "delivered")]
    assert [tuple(row) for row in store.ask("SELECT n, s FROM t")] == [(1, "b")]


def test_rows_inside_of_a_column(gateway: Gateway, store: Store) -> None:
    delivery = gateway.action("sql", {"url": store.url, "table": "t", "tableDataField": "data"})
    delivery.submit(rows({"data": [{"n": 1}, {"n": 2}]}, {"data": {"n": 3}}), 1)
    some = {"url": store.url, "table": "t", "tableDataField": "data", "fields": ["n"]}
    gateway.action("sql", some).submit(rows({"data": {"n": 4, "unknown": 5}}), 2)
    assert sorted(gateway.await_receipts(2)) == [(1, "delivered"), (2, "delivered")]
    assert [row[0] for row in store.ask("SELECT n FROM t ORDER BY n")] == [1, 2, 3, 4]


def test_without_the_server_all_wait(gateway: Gateway, postgres: Postgres) -> None:
    store = postgres_store(postgres)
    delivery = gateway.action(
        "sql", {"url": store.url, "table": "t", "retryInterval": 20, "retryMaxInterval": 50}
    )
    delivery.submit(rows({"n": 1}), 1)
    gateway.await_receipts(1)
    postgres.stop()
    delivery.submit(rows({"n": 2}), 2)
    delivery.submit(rows({"n": 3}), 3)
    postgres.start()
    assert dict(gateway.await_receipts(3)) == {1: "delivered", 2: "delivered", 3: "delivered"}
    assert [row[0] for row in store.ask("SELECT n FROM t ORDER BY n")] == [1, 2, 3]


def test_a_server_that_hangs_is_reported_and_written_to_later(gateway: Gateway, postgres: Postgres) -> None:
    store = postgres_store(postgres)
    delivery = gateway.action("sql", {"url": store.url, "table": "t", "timeout": "300ms"})
    delivery.submit(rows({"n": 1}), 1)
    gateway.await_receipts(1)
    with postgres.hanging():
        delivery.submit(rows({"n": 2}), 2)
        wait_for(lambda: delivery.stats().last_error == "database: no answer within 300 ms")
        assert delivery.stats().state == "retrying"
        wait_for(lambda: "connection timeout expired" in delivery.stats().last_error)
    assert gateway.await_receipts(2)[1] == (2, "delivered")
    assert [row[0] for row in store.ask("SELECT n FROM t ORDER BY n")] == [1, 2]


def test_ekuipers_address_of_a_sqlite_file(gateway: Gateway, tmp_path: Path) -> None:
    store = sqlite_store(tmp_path, "sqlite:out/results.db")
    gateway.action("sql", {"url": store.url, "table": "t"}).submit(rows({"n": 1, "s": "a"}), 1)
    assert gateway.await_receipts(1) == [(1, "delivered")]
    assert store.ask("SELECT n, s FROM t") == [(1, "a")]

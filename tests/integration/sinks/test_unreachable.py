"""A server that does not answer: the reason names its host and port, in words."""

from __future__ import annotations

import socket

import pytest

from tests.integration.sinks.support import Gateway
from tests.support.waiting import wait_for
from tests.unit.sinks.support import rows


def _closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("rest", {"url": "http://127.0.0.1:{port}/x"}),
        ("influx", {"addr": "http://127.0.0.1:{port}", "database": "d", "measurement": "m"}),
        ("mqtt", {"server": "tcp://127.0.0.1:{port}", "topic": "t"}),
        ("redis", {"addr": "127.0.0.1:{port}", "key": "k"}),
        ("sql", {"url": "postgresql://u@127.0.0.1:{port}/d", "table": "t"}),
        ("sql", {"url": "mysql://u@127.0.0.1:{port}/d", "table": "t"}),
    ],
)
def test_the_reason_has_no_number_of_an_error(gateway: Gateway, name: str, settings: dict[str, str]) -> None:
    for client in {"redis": ["redis"], "sql": ["sqlalchemy", "psycopg", "pymysql"]}.get(name, ()):
        pytest.importorskip(client)
    port = str(_closed_port())
    delivery = gateway.action(name, {key: value.replace("{port}", port) for key, value in settings.items()})
    delivery.submit(rows({"n": 1}), 1)
    wait_for(lambda: bool(delivery.stats().last_error), "a failure")
    assert delivery.stats().last_error.endswith(f"127.0.0.1:{port}: connection refused")

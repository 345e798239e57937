"""Fixtures: a gateway, an HTTP server, a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.sinks.support import Gateway, HttpPeer
from tests.support.brokers import Mosquitto


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path)
    yield gateway
    gateway.close()


@pytest.fixture
def http_peer() -> Iterator[HttpPeer]:
    with HttpPeer().serving() as peer:
        yield peer


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[Callable[..., Mosquitto]]:
    """Makes a broker, not yet started, with the given settings; stops it after the test."""
    brokers: list[Mosquitto] = []

    def make(**settings: Any) -> Mosquitto:
        brokers.append(Mosquitto(tmp_path / "broker", **settings))
        return brokers[-1]

    yield make
    for broker in brokers:
        broker.kill()


@pytest.fixture
def broker(make_broker: Callable[..., Mosquitto]) -> Mosquitto:
    return make_broker().start()

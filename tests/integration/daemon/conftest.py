"""The broker of the daemon's tests: one mosquitto for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.brokers import Mosquitto, mosquitto


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path_factory.mktemp("broker")) as running:
        yield running

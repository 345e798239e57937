"""The image, built once for all tests of a run, and a broker for it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.container.engine import BASE, Engine, require_programs
from tests.support.brokers import Mosquitto, mosquitto

IMAGE = "localhost/penstock:test"


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    require_programs()
    kept = os.environ.get("PENSTOCK_CONTAINER_STORE")
    store = Path(kept or tempfile.mkdtemp(prefix="penstock-container-"))
    store.mkdir(parents=True, exist_ok=True)
    found = Engine(store)
    try:
        if not found.has(BASE):
            found.make_base()
        yield found
    finally:
        if kept is None:
            found.clear()
            shutil.rmtree(store, ignore_errors=True)


@pytest.fixture(scope="session")
def image(engine: Engine) -> str:
    """The name of the image, built by `make image` from this work tree."""
    engine.build(IMAGE)
    return IMAGE


@pytest.fixture(scope="session")
def environment(engine: Engine, image: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's Python environment, copied out."""
    return engine.extract(image, "/opt/penstock", tmp_path_factory.mktemp("image") / "penstock")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path / "broker") as running:
        yield running

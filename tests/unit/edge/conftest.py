"""A gateway for each test, with stream m in its rule directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.edge.world import STREAM, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "s.yaml").write_text(STREAM)
    found = World(tmp_path)
    yield found
    found.close()

"""A gateway that looks at its file often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.intake.sources.files import followed
from tests.unit.edge_files.support import Gateway


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    monkeypatch.setattr(followed, "LOOK_MS", 5)
    monkeypatch.setattr(followed, "FAILURE_PAUSE_MS", 5)
    found = Gateway(tmp_path)
    yield found
    found.end()

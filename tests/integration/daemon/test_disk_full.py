"""A full disk is left again without a hand: the whole gateway on a file system of 20 MB."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.crash import disk

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")
@pytest.mark.parametrize("policy", disk.POLICIES)
def test_killed_on_a_full_disk_it_drains_when_the_target_is_back(tmp_path: Path, policy: str) -> None:
    found = disk.run(tmp_path, policy, kills=2, seed=7)
    assert found.wrong == ""

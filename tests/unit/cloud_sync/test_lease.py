"""The lease of an OUT whose holder is gone: a killed process, a restarted container, a damaged file."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path

import pytest

from cloud_sync.spark.lease import LEASE_MS, NAME, LeaseHeld, held
from cloud_sync.spark.storage import LocalStorage

NOW_MS = 1_763_683_200_000


def now_ms() -> int:
    return NOW_MS


def leave(storage: LocalStorage, **changed: object) -> None:
    """Write the lease of this process as a run that was killed leaves it."""
    with held(storage, "first", now_ms):
        left = json.loads(storage.read(NAME) or b"")
    assert storage.create(NAME, json.dumps(left | changed).encode())


def refused(storage: LocalStorage, reason: str) -> None:
    """A second run does not begin."""
    with pytest.raises(LeaseHeld, match=re.escape(reason)), held(storage, "second", now_ms):
        pass


def test_a_lease_of_a_process_that_is_at_work_is_respected(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    leave(storage)
    refused(storage, f"run first (process {os.getpid()} on {socket.gethostname()}) works on {tmp_path}; wait")


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="this system does not tell when a process began"
)
def test_a_restarted_container_takes_over_the_lease_of_its_own_number(tmp_path: Path) -> None:
    """Host and number are those of before; only the start of the process differs."""
    storage = LocalStorage(tmp_path)
    leave(storage, began="1")
    with held(storage, "second", now_ms):
        assert json.loads(storage.read(NAME) or b"")["run"] == "second"


@pytest.mark.parametrize("changed", [{"process": 2**22 + 1}, {"until": NOW_MS - 1, "host": "elsewhere"}])
def test_a_lease_whose_process_is_gone_or_that_has_expired_is_taken_over(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    storage = LocalStorage(tmp_path)
    leave(storage, **changed)
    with held(storage, "second", now_ms):
        pass
    assert storage.read(NAME) is None


def test_a_lease_of_an_earlier_version_counts_by_its_process(tmp_path: Path) -> None:
    """It does not say when its process began."""
    storage = LocalStorage(tmp_path)
    lease = {"run": "old", "host": socket.gethostname(), "process": os.getpid(), "until": NOW_MS + LEASE_MS}
    storage.create(NAME, json.dumps(lease).encode())
    refused(storage, "run old (process")


@pytest.mark.parametrize("content", [b"", b'{"run": "fir', b"[]", b'{"run": "first", "host": "h"}'])
def test_a_damaged_lease_is_named_with_the_remedy(tmp_path: Path, content: bytes) -> None:
    storage = LocalStorage(tmp_path)
    storage.create(NAME, content)
    refused(storage, f"{tmp_path}/_lease.json is damaged; delete it if no other run is at work")

"""Files of `enableCache` whose action is gone: removed after the grace of removed rules, never before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edge.delivery.caches import action_file, sweep
from sinks.cache.store import CacheStore
from sql import Emission

GRACE_MS = 60_000
NOW_MS = 1_800_000_000_000


def cache(folder: Path, rule: str, age_ms: int) -> Path:
    """The file of an action, with two results, written so long ago."""
    path = action_file(folder, rule, "actions", 0, "mqtt")
    store = CacheStore(path)
    store.change([(False, Emission(rule, n, "rows", [{"n": n}])) for n in (1, 2)], 2, 0)
    store.close()
    for part in folder.glob(f"{path.name}*"):
        os.utime(part, ns=((NOW_MS - age_ms) * 1_000_000,) * 2)
    return path


def test_old_files_of_actions_that_are_gone_are_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept, gone, young = (
        cache(tmp_path, rule, age) for rule, age in (("a", 10**9), ("b/c", 10**9), ("d", 1000))
    )
    (tmp_path / "other.txt").write_text("not ours")
    assert sweep(tmp_path, {kept}, NOW_MS, GRACE_MS) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([kept.name, young.name, "other.txt"])
    assert [record.__dict__["results"] for record in caplog.records] == [2]
    assert sweep(tmp_path, {kept}, NOW_MS + GRACE_MS, GRACE_MS) == 1
    assert not gone.exists() and not young.exists() and kept.exists()
    assert sweep(tmp_path / "none", set(), NOW_MS, GRACE_MS) == 0

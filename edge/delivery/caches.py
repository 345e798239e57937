"""Removal of the files of `enableCache` that no action uses, once the rule is gone for longer than its grace.

Runs after each deployment: at the start, and when the rule files change. While a rule file has errors
nothing is removed, for its actions are not known.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

from rules.problems import in_words
from sinks.cache import cache_path, results_in

log = logging.getLogger("penstock.sinks.cache")


def action_file(folder: Path, rule: str, role: str, position: int, sink: str) -> Path:
    """The file of an action, whether it has one or not."""
    return cache_path(folder, f"{rule}/{role}/{position}/{sink}")


def sweep(folder: Path, used: Collection[Path], now_ms: int, grace_ms: int) -> int:
    """Remove the files that are not `used` and were not written for `grace_ms`; how many that were."""
    swept = 0
    for path in folder.glob("*.db"):
        if path in used:
            continue
        try:
            parts = [path, *folder.glob(f"{path.name}-*")]
            written_ms = max(part.stat().st_mtime_ns for part in parts) // 1_000_000
            if now_ms - written_ms <= grace_ms:
                continue
            results = results_in(path)
            for part in [*folder.glob(f"{path.name}-*"), path]:
                part.unlink(missing_ok=True)
        except OSError as error:
            log.warning("cache.not_removed", extra={"file": path.name, "error": in_words(error)})
            continue
        swept += 1
        log.warning(
            "cache.removed", extra={"file": path.name, "results": results, "note": "no action has it"}
        )
    return swept

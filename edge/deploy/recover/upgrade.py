"""State of versions before the journal: they kept it in the spool, and copies of the rule files beside it.

It is read once, as a snapshot at the beginning of a new journal; when that snapshot is on the
disk, the old is removed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cloud_sync.spool import Spool
from edge.journal.snapshots import Snapshot
from sinks.formats import lossless_json

log = logging.getLogger("penstock.journal")

RULE_PREFIX = "rule:"
OLD_KEYS = ("version", "outbox", "redelivery")
COPIES = "rules-last-good.json"


def old_snapshot(
    spool: Spool, data: Path, texts: Callable[[], Mapping[str, str]], now_ms: int
) -> Snapshot | None:
    """The state that an earlier version left, as a snapshot; None where there is none.

    `texts` reads the rule files as they are now, for those of which no copy was kept.
    """
    stored = {key: lossless_json.decode(body) for key, body in spool.state().items() if _is_old(key)}
    if "version" not in stored:
        return None
    log.info("journal.upgrade", extra={"note": "the state of an earlier version is taken over"})
    entries = stored.get("outbox", [])
    actions: dict[tuple[Any, ...], list[Any]] = {}
    for entry in entries:
        actions.setdefault((entry["rule"], entry["role"], entry["position"], entry["sink"]), []).append(entry)
    numbers: dict[str, int] = {}
    listed = []
    for key, waiting in actions.items():
        numbered = []
        for entry in waiting:
            numbers[key[0]] = numbers.get(key[0], 0) + 1
            numbered.append([numbers[key[0]], numbers[key[0]], entry])
        listed.append([*key, numbers[key[0]], numbered])
    return Snapshot(
        0,
        {
            "at_ms": now_ms,
            "texts": dict(texts()) | _copies(data),
            "kept": [],
            "rules": {
                key.removeprefix(RULE_PREFIX): state
                for key, state in stored.items()
                if key.startswith(RULE_PREFIX)
            },
            "outbox": {"numbers": numbers, "actions": listed},
            "redeliveries": stored.get("redelivery", b""),
        },
    )


def remove_old(spool: Spool, data: Path, now_ms: int) -> None:
    """The state is in a snapshot now: remove it from its old places. Raises SpoolError."""
    spool.commit(now_ms, dict.fromkeys(key for key in spool.state() if _is_old(key)))
    (data / COPIES).unlink(missing_ok=True)


def _is_old(key: str) -> bool:
    return key in OLD_KEYS or key.startswith(RULE_PREFIX)


def _copies(data: Path) -> dict[str, str]:
    try:
        found = json.loads((data / COPIES).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}

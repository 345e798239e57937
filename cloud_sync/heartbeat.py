"""The heartbeat of a spool: a gateway's counts of its own rows, by which the cloud counts the missing ones.

    v2-heartbeats/gw=<gateway>/<spool>.json

One small file for each spool, replaced from time to time. The numbers count since the spool was created. Rows
that were uploaded and are not in the tables are missing; rows that were dropped or lost were never uploaded.
"""

from __future__ import annotations

import msgspec

from cloud_sync.names import VERSION
from cloud_sync.spool import Spool
from cloud_sync.targets.base import Target


class Pulse:
    """The heartbeats of a spool and their schedule. `interval_ms` 0: none are written."""

    def __init__(self, spool: Spool, target: Target, interval_ms: int) -> None:
        self._spool = spool
        self._target = target
        self._interval_ms = interval_ms
        self._due_ms = 0

    def wait_ms(self, now_ms: int) -> int | None:
        """The time until the next heartbeat; None for never. After a clock was set back it is due at once."""
        if not self._interval_ms:
            return None
        left_ms = self._due_ms - now_ms
        return left_ms if 0 < left_ms <= self._interval_ms else 0

    def beat(self, now_ms: int) -> None:
        """Write the heartbeat. Raises TargetError or SpoolError."""
        spool = self._spool
        self._target.replace(spool.layout.heartbeat(spool.gateway, spool.spool_id), heartbeat(spool, now_ms))
        self._due_ms = now_ms + self._interval_ms

    def beat_if_due(self, now_ms: int) -> None:
        """Write the heartbeat when it is due. Raises TargetError or SpoolError."""
        if self.wait_ms(now_ms) == 0:
            self.beat(now_ms)


def heartbeat(spool: Spool, now_ms: int) -> bytes:
    """One line of JSON: the spool's counters at an instant of the gateway's clock."""
    stats = spool.stats()
    counters = stats.counters
    fields = {
        "version": VERSION,
        "gateway": spool.gateway,
        "spool": spool.spool_id,
        "at": now_ms,
        "highest_seq": spool.highest_seq,
        "stored": counters["appended"],
        "uploaded": counters["uploaded"],
        "waiting": stats.rows - stats.set_aside,
        "set_aside": stats.set_aside,
        "dropped": counters["dropped_oldest"] + counters["dropped_newest"],
        "expired": counters["expired"],
        "lost": counters["lost"],
    }
    return msgspec.json.encode(fields) + b"\n"

"""The heartbeat of a spool: a gateway's counts of its own rows, by which the cloud counts the missing ones.

    v2-heartbeats/gw=<gateway>/<spool>.json

One small file for each spool, replaced from time to time. The numbers count since the spool was created. Rows
that were uploaded and are not in the tables are missing; rows that were dropped or lost were never uploaded.

Heartbeats are numbered. A number that this spool has not given comes from another branch of it: the spool
was restored from an older copy, or its disk was copied, and both went on from the copy. Its next rows would
have the numbers of rows of the other branch.
"""

from __future__ import annotations

import logging

import msgspec

from cloud_sync.errors import TargetError
from cloud_sync.names import VERSION
from cloud_sync.spool import Spool
from cloud_sync.spool.branch import Branch
from cloud_sync.spool.store import SEQ_MAX
from cloud_sync.targets.base import Target

LOG = logging.getLogger("penstock.uploader")

SET_BACK = (
    "the spool was restored from an older copy, or its disk was copied: rows from here on get numbers behind "
    "those of the other branch. Windows that were open in the copy may count twice; "
    "if both are in use give each a gateway.id of its own"
)
"""The meaning of another branch of the spool, and the remedy."""


class Pulse:
    """The heartbeats of a spool and their schedule. `interval_ms` 0: none are written."""

    def __init__(self, spool: Spool, target: Target, interval_ms: int) -> None:
        self._spool = spool
        self._target = target
        self._interval_ms = interval_ms
        self._due_ms = 0
        self._name = spool.layout.heartbeat(spool.gateway, spool.spool_id)
        self._is_compared = False

    def compare(self) -> None:
        """Once: leave the numbers of another branch of this spool out, if one has uploaded. A target that
        cannot be read is asked again the next time. Raises SpoolError."""
        if self._is_compared:
            return
        try:
            content = self._target.get(self._name)
        except TargetError:
            return
        last, outgoing = _last_beat(content), self._spool.outgoing
        if last.beat > outgoing.beat():
            LOG.error("spool.set_back", extra={"other_seq": last.highest_seq, "note": SET_BACK})
            outgoing.leave_out(last)
        self._is_compared = True

    def wait_ms(self, now_ms: int) -> int | None:
        """The time until the next heartbeat; None for never. After a clock was set back it is due at once."""
        if not self._interval_ms:
            return None
        left_ms = self._due_ms - now_ms
        return left_ms if 0 < left_ms <= self._interval_ms else 0

    def beat(self, now_ms: int) -> None:
        """Write the heartbeat. Raises TargetError or SpoolError."""
        self.compare()
        beat = self._spool.outgoing.next_beat()
        self._target.replace(self._name, heartbeat(self._spool, now_ms, beat))
        self._due_ms = now_ms + self._interval_ms

    def beat_if_due(self, now_ms: int) -> None:
        """Write the heartbeat when it is due. Raises TargetError or SpoolError."""
        if self.wait_ms(now_ms) == 0:
            self.beat(now_ms)


def _last_beat(content: bytes | None) -> Branch:
    """The heartbeat in the bucket; number 0 where there is none, or one that cannot be read."""
    try:
        last = msgspec.json.decode(content or b"{}", type=Branch)
    except msgspec.MsgspecError:
        return Branch()
    return last if all(0 <= number < SEQ_MAX for number in msgspec.structs.astuple(last)) else Branch()


def heartbeat(spool: Spool, now_ms: int, beat: int) -> bytes:
    """One line of JSON: the spool's counters at an instant of the gateway's clock."""
    stats = spool.stats()
    counters = stats.counters
    fields: dict[str, object] = {
        "version": VERSION,
        "gateway": spool.gateway,
        "spool": spool.spool_id,
        "at": now_ms,
        "beat": beat,
        "highest_seq": spool.highest_seq,
        "stored": counters["appended"],
        "uploaded": counters["uploaded"],
        "waiting": stats.rows - stats.set_aside,
        "set_aside": stats.set_aside,
        "dropped": counters["dropped_oldest"] + counters["dropped_newest"],
        "expired": counters["expired"],
        "lost": counters["lost"],
    }
    if left_out := spool.outgoing.left_out():
        fields["left_out"] = [[left.after, left.first] for left in left_out]
    return msgspec.json.encode(fields) + b"\n"

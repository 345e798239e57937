"""The counters of a spool that was restored from an older copy while another branch of it had gone on.

The restored spool has the counters of the copy, and the tables have rows that the other branch has uploaded.
So that `missing` of the cloud job is right, the counters take over those of the other branch's last
heartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Branch(msgspec.Struct):
    """A heartbeat, as far as another branch needs it; all 0 for none."""

    beat: int = 0
    highest_seq: int = 0
    stored: int = 0
    uploaded: int = 0
    waiting: int = 0
    set_aside: int = 0
    dropped: int = 0
    expired: int = 0
    lost: int = 0


class LeftOut(msgspec.Struct, array_like=True):
    """Sequence numbers that a spool has left out: those behind `after`, the highest one that the other branch
    has told, up to `first`, the next one of its own. The other branch may have given some of them. `beat` is
    that of the other branch."""

    after: int
    first: int
    beat: int


def taken_over(
    other: Branch, now: Mapping[str, int], opened: Mapping[str, int], common: int
) -> dict[str, int]:
    """The changes by which the counters `now` count the rows of both branches. `opened` are those at the
    start, `common` the rows that wait since then: the other branch has them too, so they are uploaded when
    this one has uploaded them.

    What the other branch had stored, and what is neither here nor gone, counts as uploaded: if it has not
    arrived, it is missing.

    >>> other = Branch(beat=9, stored=20, uploaded=14, waiting=5, dropped=1)
    >>> counters = {"appended": 10, "uploaded": 7, "rows": 3}
    >>> taken_over(other, counters, counters, common=3)
    {'appended': 10, 'uploaded': 9, 'dropped_oldest': 1}
    """
    gone = max(0, other.stored - other.uploaded - other.waiting - other.set_aside)
    stored = max(other.stored, opened.get("appended", 0))
    dropped = other.dropped - opened.get("dropped_oldest", 0) - opened.get("dropped_newest", 0)
    changes = {
        "appended": stored - opened.get("appended", 0),
        "uploaded": max(0, stored - gone - common - now.get("uploaded", 0)),
        "dropped_oldest": max(0, dropped),
        "expired": max(0, other.expired - opened.get("expired", 0)),
        "lost": max(0, other.lost - opened.get("lost", 0)),
    }
    return {name: change for name, change in changes.items() if change}

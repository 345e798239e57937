"""The values that running groups keep of each event in the window: plain data, read by their text, their
state and the window."""

from __future__ import annotations

from collections.abc import Sequence

from sql.algebra.sample.running.fold_arguments import Arguments
from sql.plan.bound import AggregateCall, Bound


class GroupLayout:
    """The queues of a group.

    is_whole      all events are in one group
    is_numbered   events have a number: to find the older group, or for an accumulator that reads events
    keeps_entries groups keep the entries of their events; else events are known by their values alone
    values        the locals that are remembered of an event besides its number
    kept          the locals that are remembered of an event, each in a queue `held_...`
    """

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        group_by: Sequence[Bound],
        *,
        has_dropped: bool,
        reads_rows: bool,
    ) -> None:
        """`has_dropped`: there may be events in the window that are in no group. `reads_rows`: what is shown
        reads columns of a group's oldest event."""
        self.group_by = group_by
        self.arguments = Arguments(calls)
        accumulated = self.arguments.accumulated
        self.is_whole = not group_by and not has_dropped
        self.is_numbered = bool(group_by or accumulated)
        self.keeps_entries = reads_rows or not self.is_whole or bool(accumulated)
        self.values = [
            *(f"a_{item.place}" for item in self.arguments.valued),
            *(f"f_{place}" for place in accumulated),
        ]
        numbers = ["number"] if self.is_numbered else []
        self.kept = [*numbers, *self.values, *(["event"] if accumulated else [])]

    @property
    def queues(self) -> list[str]:
        """The queues of a group."""
        return [*(["entries"] if self.keeps_entries else []), *(f"held_{name}" for name in self.kept)]

    @property
    def slots(self) -> dict[str, str]:
        """The slots of an instance of the window, with their first values."""
        members = {"only": "Group(())"} if self.is_whole else {"members": "deque()"}
        return {"groups": "{}", "times": "deque()"} | members

    @property
    def aliases(self) -> dict[str, str]:
        """The locals of a loop over one instance, where there is one group."""
        return {"g": "p.only", **{name: f"g.{name}" for name in self.queues}} if self.is_whole else {}

"""Groups of windows that events leave one by one: sliding, count with an interval, and
hopping where panes do not do.

What is kept of a group are slots of a generated class, which the statements of `sql.aggregates.inline`
change. The unit of a group becomes finer with the first number that needs it. From a value that statements do
not take on (text, NaN, whole numbers of any size) the group's accumulators take its events. Aggregates
without statements have their accumulators from the beginning.
"""

from __future__ import annotations

from typing import Any

from sql.algebra.event_store import EventStore
from sql.algebra.sample.content import Content, Entries, Sample
from sql.algebra.sample.instance import Instance
from sql.algebra.sample.running.event_state import EventState
from sql.algebra.sample.running.fallback import Fallback
from sql.algebra.sample.running.group_layout import GroupLayout
from sql.algebra.sample.running.group_text import GroupText
from sql.algebra.sample.text import Loop
from sql.types import Saved


class RunningGroups(Content):
    """Groups that events enter and leave. `members`: the group of each event, None where WHERE dropped it."""

    def __init__(self, layout: GroupLayout, entries: Entries, max_groups: int, shows_empty: object) -> None:
        """`shows_empty`: the row of no events, None where there is no such row."""
        self.layout = layout
        self.entries = entries
        self.shows_empty = shows_empty
        self.slots, self.aliases = layout.slots, layout.aliases
        self.fallback = Fallback(layout.arguments)
        self.text = GroupText(layout, self.fallback, entries.text, max_groups)
        self.state = EventState(layout, entries, self.fallback)

    # --- code -----------------------------------------------------------------------------------------------

    def generated(self, functions: dict[str, Any]) -> None:
        super().generated(functions)
        self.fallback.add = functions["add"]
        self.state.new_group = functions["Group"]

    def write_helpers(self, loop: Loop) -> None:
        self.text.write_group(loop)
        self.write_leave_function(loop)
        self.text.write_results(loop)

    def write_enter(self, loop: Loop) -> None:
        self.text.write_enter(loop)

    def write_dropped(self, loop: Loop) -> None:
        self.text.write_dropped(loop)

    def write_leave(self, loop: Loop) -> None:
        self.text.write_leave(loop)

    # --- called by the window -------------------------------------------------------------------------------

    def sample(self, p: Instance) -> Sample:
        groups, results = p.groups, self.functions["results"]
        if not groups and self.shows_empty is not None:
            return [(self.entries.empty(self.shows_empty), results(self.functions["Group"](())))]
        in_order = sorted(groups.values(), key=_first) if len(groups) > 1 else groups.values()
        if not self.layout.keeps_entries:
            return [(None, results(g)) for g in in_order]
        return [(g.entries[0], results(g)) for g in in_order]

    def clear(self, p: Instance) -> None:
        p.groups.clear()
        p.times.clear()
        if self.layout.is_whole:
            p.only.__init__(())
        else:
            p.members.clear()

    def is_empty(self, p: Instance) -> bool:
        return not p.times

    def retained(self, p: Instance) -> int:
        return len(p.times)

    # --- state ----------------------------------------------------------------------------------------------

    def pack(self, p: Instance) -> Saved:
        return self.state.pack(p)

    def unpack(self, p: Instance, state: Saved, store: EventStore) -> None:
        self.state.unpack(p, state)


def _first(g: Any) -> int:
    """The number of the oldest event of a group."""
    number: int = g.held_number[0]
    return number

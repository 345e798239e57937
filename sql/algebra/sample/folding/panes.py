"""Groups of windows that overlap: events are folded once per pane, not once per window.

    HOPPINGWINDOW(ss, 5, 2)    ends at 2, 4, 6, 8 …   a window [end - 5, end) begins in the middle of a hop
                               panes  |-|--|-|--|-|--     cut at each end and `length % hop` before it

A pane is what a tumbling window keeps. When it is cut, each of its groups joins the `Total` of its key, which
can say the aggregates over all its panes at a cost that does not depend on how many there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any

from sql.aggregates.base import Accumulator, Removal
from sql.aggregates.extremes import Extreme
from sql.algebra.accumulators import maker_of
from sql.algebra.event_store import EventStore
from sql.algebra.sample.content import Entry, Sample
from sql.algebra.sample.folding.folded import Folded
from sql.algebra.sample.folding.group_fold import Group, MixedGroup, is_numeric
from sql.algebra.sample.instance import Instance
from sql.costs import CONSTANT, Growth
from sql.errors import over_max_groups
from sql.plan.bound import AggregateCall


class Stacks:
    """The aggregate over a queue of parts in two stacks: each part is merged a constant number of times.

    front   merged from each part to the last of them, the oldest on top     [c+d, ...] <- leaves here
    back    merged as they come                                              e+f+...    <- enters here
    """

    __slots__ = ("back", "front", "make", "parts")

    def __init__(self, make: Callable[[], Accumulator]) -> None:
        self.make = make
        self.front: list[Accumulator] = []
        self.back = make()
        self.parts: list[Accumulator] = []
        """The parts of `back`, oldest first."""

    def push(self, part: Accumulator) -> None:
        """A part comes."""
        self.back.merge(part)
        self.parts.append(part)

    def pop(self, part: Accumulator) -> None:
        """The oldest part goes."""
        if not self.front:
            later: Accumulator | None = None
            for own in reversed(self.parts):
                merged = self.make()
                merged.merge(own)
                if later is not None:
                    merged.merge(later)
                self.front.append(merged)
                later = merged
            self.parts = []
            self.back = self.make()
        self.front.pop()

    def result(self, groups: Iterable[Group], place: int) -> Any:
        """The aggregate over all parts."""
        if not self.front:
            return self.back.result()
        if not self.parts:
            return self.front[-1].result()
        merged = self.make()
        merged.merge(self.front[-1])
        merged.merge(self.back)
        return merged.result()


class RunningParts:
    """The aggregate over a queue of parts where what came can be taken away again."""

    __slots__ = ("whole",)

    def __init__(self, make: Callable[[], Accumulator]) -> None:
        self.whole = make()

    def push(self, part: Accumulator) -> None:
        self.whole.merge(part)

    def pop(self, part: Accumulator) -> None:
        self.whole.unmerge(part)

    def result(self, groups: Iterable[Group], place: int) -> Any:
        return self.whole.result()


class MergedLate:
    """The aggregate over a queue of parts too large to be merged beforehand: merged at each sample."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Accumulator]) -> None:
        self.make = make

    def push(self, part: Accumulator) -> None:
        """The groups have it."""

    def pop(self, part: Accumulator) -> None:
        """The groups have it no longer."""

    def result(self, groups: Iterable[Group], place: int) -> Any:
        """The aggregate over all parts, which are at this place in the groups."""
        merged = self.make()
        for group in groups:
            merged.merge(group.accumulators[place])
        return merged.result()


Queue = Stacks | RunningParts | MergedLate


class Total:
    """One key's groups in all cut panes, oldest first, and the aggregates over them."""

    __slots__ = ("aggregates", "groups", "mixed")

    def __init__(self, aggregates: list[Queue]) -> None:
        self.groups: deque[Group] = deque()
        self.mixed = 0
        """In how many panes the key has text."""
        self.aggregates = aggregates

    def push(self, group: Group, number: int) -> None:
        """The key's group of the newest pane, folded; its `number` among the groups of all panes."""
        group.earlier, group.number = (), number
        self.groups.append(group)
        self.mixed += isinstance(group, MixedGroup)
        for aggregate, part in zip(self.aggregates, group.accumulators, strict=True):
            aggregate.push(part)

    def pop(self) -> None:
        """The oldest pane leaves the window."""
        group = self.groups.popleft()
        self.mixed -= isinstance(group, MixedGroup)
        for aggregate, part in zip(self.aggregates, group.accumulators, strict=True):
            aggregate.pop(part)


def queue_of(call: AggregateCall) -> Queue:
    """An empty queue of the parts of a call."""
    make = maker_of(call, Removal.NEVER)
    if not is_numeric(call) and (call.distinct or call.definition.cost != CONSTANT):
        return MergedLate(make)
    return RunningParts(make) if call.definition.invertible else Stacks(make)


def is_merged(call: AggregateCall) -> bool:
    """True if a call over a window can be put together from what its panes hold."""
    if is_numeric(call):
        return True
    definition = call.definition
    if not definition.mergeable or definition.needs_event or definition.ever or call.group_by is not None:
        return False
    if call.distinct and definition.name != "count":
        return False  # of equal values the first counts, which may have left
    if isinstance(definition.make(Removal.NEVER, *call.constants), Extreme):
        return False  # it may refuse a value because of those before
    return definition.cost.event is not Growth.ROOT  # its values would be put in order again for each window


class Pane:
    """A cut pane: the groups of the events before `end_ms`, and how many events there were."""

    __slots__ = ("end_ms", "groups", "size")

    def __init__(self, end_ms: int, groups: dict[Hashable, Group], size: int) -> None:
        self.end_ms = end_ms
        self.groups = groups
        self.size = size


class Panes(Folded):
    """The groups of HOPPINGWINDOW: those of the open pane, and a total of each key over the cut ones.

    Slots: `groups` of the open pane, `panes`, `totals` by key, `joined` (how many groups have joined totals
    so far), `spare` (so many groups the loop may open by itself).
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.in_order = [*self.fold.numeric, *(part.call for part in self.fold.accumulated)]
        self.slots |= {"panes": "deque()", "totals": "{}", "joined": "0", "spare": str(self.max_groups)}

    @property
    def room(self) -> str:
        return "len(groups) < p.spare"

    # --- events ---------------------------------------------------------------------------------------------

    def open(self, p: Instance, key: Hashable, entry: Entry, values: tuple[Any, ...]) -> None:
        total = p.totals.get(key)
        if total is not None and total.mixed:
            self.admit(p, key, entry, values)
        else:
            super().open(p, key, entry, values)

    def make_room(self, p: Instance, key: Hashable) -> None:
        if key not in p.totals and len(p.groups.keys() | p.totals.keys()) >= self.max_groups:
            raise over_max_groups(self.max_groups)

    def make(self, p: Instance, key: Hashable, entry: Entry) -> Group:
        group = super().make(p, key, entry)
        total = p.totals.get(key)
        if total is not None:
            group.earlier = total.groups
            if total.mixed:
                self.fold.mix(group)
        return group

    # --- panes ----------------------------------------------------------------------------------------------

    def cut(self, p: Instance, end_ms: int) -> None:
        """Close the open pane, if there is anything in it; its groups join their totals."""
        size = p.size if self.counts else 0
        if p.groups or size:
            self.came = max(0, self.came - sum(map(len, p.groups.values())))
            self._join(p, Pane(end_ms, dict(self.flushed(p)), size))
            super().clear(p)
        self._set_spare(p)

    def _join(self, p: Instance, pane: Pane) -> None:
        p.panes.append(pane)
        for key, group in pane.groups.items():
            total = p.totals.get(key)
            if total is None:
                total = p.totals[key] = Total([queue_of(call) for call in self.in_order])
            p.joined += 1
            total.push(group, p.joined)

    def expire(self, p: Instance, edge_ms: int) -> None:
        while p.panes and p.panes[0].end_ms <= edge_ms + 1:
            for key in p.panes.popleft().groups:
                total = p.totals[key]
                if len(total.groups) == 1:
                    total.groups.clear()
                    del p.totals[key]
                else:
                    total.pop()
        self._set_spare(p)

    def _set_spare(self, p: Instance) -> None:
        """Text in an earlier pane makes a group mixed from its first event; and the bound is the whole
        window's."""
        mixed = any(total.mixed for total in p.totals.values())
        p.spare = 0 if mixed else self.max_groups - len(p.totals)

    # --- called by the window -------------------------------------------------------------------------------

    def sample(self, p: Instance) -> Sample:
        """Groups in order of their first event in the window."""
        if not p.totals and self.shows_empty is not None:
            return super().sample(p)
        return map(self._sampled, sorted(p.totals.values(), key=lambda total: total.groups[0].number))

    def _sampled(self, total: Total) -> tuple[Any, list[Any]]:
        found = [each.result(total.groups, place) for place, each in enumerate(total.aggregates)]
        return total.groups[0][0], [found[place] for place in self.fold.order]

    def clear(self, p: Instance) -> None:
        super().clear(p)
        p.panes.clear()
        p.totals.clear()
        self._set_spare(p)

    def is_empty(self, p: Instance) -> bool:
        return not p.panes and super().is_empty(p)

    def retained(self, p: Instance) -> int:
        cut = (pane.size if self.is_bounded else len(pane.groups) for pane in p.panes)
        return super().retained(p) + sum(cut)

    # --- state ----------------------------------------------------------------------------------------------

    def held(self, p: Instance) -> Iterable[Any]:
        return ()

    def pack(self, p: Instance) -> dict[str, Any]:
        panes = [(pane.end_ms, pane.size, self.fold.pack(pane.groups.items())) for pane in p.panes]
        return {**super().pack(p), "panes": panes}

    def unpack(self, p: Instance, state: dict[str, Any], store: EventStore) -> None:
        for end_ms, size, groups in state["panes"]:
            made = self.fold.unpack(groups, partial(self.make, p), store)
            self._join(p, Pane(end_ms, made, size))
        super().unpack(p, state, store)
        self._set_spare(p)

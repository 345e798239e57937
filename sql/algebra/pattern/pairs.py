"""Patterns of two events: `every a -> b`, with b bound to a by a key, in a given time or at
any time, and its absence.

| pattern | what b does | when the time is over |
|---|---|---|
| `every a -> b(k = a.k)` | a match | never |
| `every a -> b(k = a.k) where timer:within(d)` | a match | the search ends |
| `every a -> (timer:interval(d) and not b(k = a.k))` | ends the search | a match |

They give what the nodes of `logic`, `sequence` and `observers` give,
from one dictionary of searches by key and one queue in order of due times: all have the same length,
so none is due before an older one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import tzinfo
from typing import Any

from sql.algebra.buckets import Buckets, items_of
from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.machine import COUNTERS, PatternWait
from sql.algebra.pattern.snapshot import VERSION, Packer, Unpacker, check_version
from sql.calendar.period import Period
from sql.errors import Fail
from sql.plan.options import RuleOptions
from sql.plan.pattern_plan import FilterPlan
from sql.record import Record

PairLoop = Callable[["Pairs", Sequence[Any], int, Fail], list[list[Binding]]]
"""Leads events of one stream through the searches: the matches of each event that completes some. `fail` is
called for events that cannot be evaluated; they change nothing. Compiled from the conditions."""


class PairSearch:
    """A first event that waits for its second since an instant; ENDED: it waits no more."""

    __slots__ = ("begun", "key", "row")

    def __init__(self, row: object, key: Hashable, begun: int) -> None:
        self.row = row
        self.key = key
        self.begun = begun


ENDED = -1

Searches = PairSearch | dict[PairSearch, None]
"""Those of one key, in order of their start."""


class WaitingPairs:
    """Searches by key and in order of their start."""

    SWEEP_MIN = 64

    def __init__(self, *, keeps_order: bool) -> None:
        """`keeps_order`: whether time ends searches, or a bound the oldest."""
        self.keeps_order = keeps_order
        self.by_key: Buckets[PairSearch] = Buckets()
        self.queue: deque[PairSearch] = deque()
        """In order of their start, what has ended among them; unused where no order is kept."""
        self.ended = 0
        """The number of ended ones in the queue."""
        self.live = 0

    def add(self, search: PairSearch) -> None:
        self.live += 1
        if self.keeps_order:
            self.queue.append(search)
        if search.key is not None:
            self.by_key.add(search.key, search)

    def end(self, search: PairSearch) -> None:
        """A search waits no more; where it stands in the queue it is passed over."""
        self.by_key.discard(search.key, search)
        self.live -= 1
        search.begun, search.row = ENDED, None
        self.ended += 1
        if self.ended > self.SWEEP_MIN and 2 * self.ended > len(self.queue):
            self._sweep()

    def oldest(self) -> PairSearch | None:
        """The search that began first."""
        queue = self.queue
        while queue and queue[0].begun == ENDED:
            queue.popleft()
            self.ended -= 1
        return queue[0] if queue else None

    def take_oldest(self) -> PairSearch:
        """The search that began first, which waits no more."""
        search = self.queue.popleft()
        self.by_key.discard(search.key, search)
        self.live -= 1
        return search

    def clear(self) -> None:
        self.by_key.found.clear()
        self.queue.clear()
        self.live = self.ended = 0

    def __iter__(self) -> Iterator[PairSearch]:
        """In order of their start; of their keys, where no order is kept."""
        if self.keeps_order:
            return (search for search in self.queue if search.begun != ENDED)
        return (search for found in self.by_key.found.values() for search in items_of(found))

    def _sweep(self) -> None:
        """Take what has ended out of the queue."""
        self.queue = deque(each for each in self.queue if each.begun != ENDED)
        self.ended = 0


class PairPlan(Record):
    """The static facts of a pattern of two events."""

    tags: Callable[[Any, Any], Binding]
    """The tags of two events, of which the second may be missing: None."""
    second: FilterPlan
    loops: dict[str, PairLoop]
    """By stream."""
    key: Callable[[None, Binding], Hashable]
    """The key a search waits for, of its tags; None: it waits for nothing."""
    rest: Callable[[Any, Binding], bool] | None
    """The condition on the second event beyond its key."""
    length: Period | None
    is_absence: bool


class Pairs:
    """A running pattern of two events; driven like `Pattern`."""

    def __init__(self, options: RuleOptions, zone: tzinfo, plan: PairPlan, fail: Fail) -> None:
        self.fail = fail
        self.plan = plan
        self.tags = plan.tags
        self.zone = zone
        self.most = options.max_pattern_partials
        self.drops = options.pattern_overflow == "drop_oldest"
        self.waiting = WaitingPairs(keeps_order=plan.length is not None or self.drops)
        self.started = self.expired = self.dropped = self.matched = 0

    # --- driving --------------------------------------------------------------------------------------------

    def start(self, now: int) -> list[Binding]:
        """Begin to listen; nothing is true at once."""
        return []

    def enter_each(self, stream: str, rows: Sequence[Any], now: int) -> list[list[Binding]]:
        """Events arrive: the matches of each event that completes some; data errors are reported."""
        return self.plan.loops[stream](self, rows, now, self.fail)

    def begin(self, row: object, wanted: Hashable, found: Searches | None, now: int) -> list[Binding]:
        """An event begins a search that waits for a key, and may end those found; the matches."""
        waiting = self.waiting
        fitting = () if found is None else self._fitting(row, found)
        # Without a key and a time it would wait for nothing, for ever.
        begins = wanted is not None or self.plan.length is not None
        if begins and waiting.live >= self.most:
            self.dropped += 1
            begins = self.drops
            oldest = waiting.oldest() if begins else None
            if oldest is not None:
                waiting.end(oldest)
        matches = (
            self._matched([search for search in fitting if search.begun != ENDED], row) if fitting else []
        )
        if begins:
            self.started += 1
            waiting.add(PairSearch(row, wanted, now))
        return matches

    def end(self, row: object, found: Searches) -> list[Binding]:
        """An event may be the second one of the searches found; the matches."""
        return self._matched(self._fitting(row, found), row)

    def _fitting(self, row: object, found: Searches) -> Sequence[PairSearch]:
        """Those of the searches found that the rest of the second event's condition holds for."""
        fitting, rest, tags = items_of(found), self.plan.rest, self.tags
        return (
            fitting if rest is None else [search for search in fitting if rest(row, tags(search.row, None))]
        )

    def _matched(self, searches: Sequence[PairSearch], second: object) -> list[Binding]:
        """Searches have their second event; the matches, unless it must not come (absence)."""
        tags, matches, is_match = self.tags, [], not self.plan.is_absence
        for search in searches:
            if is_match:
                matches.append(tags(search.row, second))
            self.waiting.end(search)
        self.matched += len(matches)
        return matches

    def advance(self, now: int) -> list[Binding]:
        """End the searches whose time is over by now."""
        matches: list[Binding] = []
        while (due := self.deadline()) is not None and due <= now:
            search = self.waiting.take_oldest()
            if self.plan.is_absence:
                matches.append(self.tags(search.row, None))
            else:
                self.expired += 1
        self.matched += len(matches)
        return matches

    def deadline(self) -> int | None:
        if self.plan.length is None:
            return None
        oldest = self.waiting.oldest()
        return None if oldest is None else self.plan.length.add(oldest.begun, self.zone)

    def quit(self) -> None:
        self.waiting.clear()

    def searches(self) -> Iterator[PatternWait]:
        """The searches, which wait for their second events."""
        length, plan = self.plan.length, self.plan
        for search in self.waiting:
            due_ms = None if length is None else length.add(search.begun, self.zone)
            yield PatternWait(self.tags(search.row, None), plan.second, search.begun, due_ms)

    def counters(self) -> dict[str, int]:
        return dict.fromkeys(COUNTERS, 0) | {
            "partials": self.waiting.live,
            "partials_started": self.started,
            "partials_expired": self.expired,
            "partials_dropped": self.dropped,
            "matches": self.matched,
        }

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The searches in order of their start (of their keys, where time ends none), each row once."""
        packer = Packer()
        searches = [[search.begun, packer.row(search.row)] for search in self.waiting]
        counts = [self.started, self.expired, self.dropped, self.matched]
        return {"version": VERSION, "searches": searches, "rows": packer.packed, "counts": counts}

    def restore(self, state: dict[str, Any], make_row: Callable[[dict[str, Any]], Any]) -> None:
        check_version(state, "a pattern")
        unpacker = Unpacker(state["rows"], [], make_row)
        self.quit()
        for begun, place in state["searches"]:
            row = unpacker.row(place)
            self.waiting.add(PairSearch(row, self.plan.key(None, self.tags(row, None)), begun))
        self.started, self.expired, self.dropped, self.matched = state["counts"]

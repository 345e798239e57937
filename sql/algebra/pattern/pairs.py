"""Patterns of two events: `every a -> b`, with b bound to a by a key, in a given time or at
any time, and its absence.

| pattern | what b does | when the time is over |
|---|---|---|
| `every a -> b(k = a.k)` | a match | never |
| `every a -> b(k = a.k) where timer:within(d)` | a match | the search ends |
| `every a -> (timer:interval(d) and not b(k = a.k))` | ends the search | a match |

They give what the nodes of `logic`, `sequence` and `timers` give, from one dictionary of searches by key and
one queue in order of due times: all have the same length, so none is due before an older one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from sql.algebra.pattern.partials import Bounds
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.calendar.period import Period

if TYPE_CHECKING:
    from sql.algebra.pattern.base import Binding

SNAPSHOT_VERSION = 1

Fail = Callable[[Any, BaseException], None]

Hear = Callable[["Pairs", Sequence[Any], int, Fail], list[list["Binding"]]]
"""Leads events of one stream through the searches: the matches of each event that completes some. `fail`
hears of events that cannot be evaluated; they change nothing. Compiled from the conditions."""


@dataclass(frozen=True, slots=True)
class PairPlan:
    """What is known of a pattern of two events before it runs."""

    first_tag: int | None
    second_tag: int | None
    width: int
    """How many tags there are."""
    hear: dict[str, Hear]
    """By stream."""
    key: Callable[[None, Binding], Hashable]
    """The key a search waits for, of its tags; None: it waits for nothing."""
    rest: Callable[[Any, Binding], bool] | None
    """What the second event has to fulfil beyond its key."""
    length: Period | None
    is_absence: bool


class Search:
    """A first event that waits for its second. `due` None: for ever; ENDED: it waits no more."""

    __slots__ = ("due", "key", "row")

    def __init__(self, row: Any, key: Hashable, due: int | None) -> None:
        self.row = row
        self.key = key
        self.due = due


ENDED = -1

Searches = Search | deque[Search]
"""Those of one key."""


class Pairs:
    """A running pattern of two events; driven like `Pattern`."""

    SWEEP_MIN = 64

    def __init__(self, bounds: Bounds, zone: tzinfo, plan: PairPlan) -> None:
        self.plan = plan
        self.zone = zone
        self.most = bounds.partials
        self.drops = bounds.overflow == "drop_oldest"
        self.length = plan.length
        self.keeps_order = plan.length is not None or self.drops
        self.is_simple = plan.width == 2 and plan.first_tag == 0 and plan.second_tag == 1
        """Whether the tags of a match are the two events."""
        self.waiting: dict[Hashable, Searches] = {}
        """By key; most keys have one."""
        self.queue: deque[Search] = deque()
        """In order of their start, what has ended among them; unused where time ends none and
        the bound drops none."""
        self.ended = 0
        """How many in the queue have ended."""
        self.live = 0
        self.started = self.expired = self.dropped = self.matched = 0

    # --- driving --------------------------------------------------------------------------------------------

    def start(self, now: int) -> list[Binding]:
        """Begin to listen; nothing is true at once."""
        return []

    def enter(self, stream: str, row: Any, now: int) -> list[Binding]:
        """An event arrives; the matches it completes. Raises a data error before anything has changed."""
        out = self.plan.hear[stream](self, (row,), now, _raise)
        return out[0] if out else []

    def lot(self, stream: str, rows: Sequence[Any], now: int, fail: Fail) -> list[list[Binding]]:
        """`enter` for several events: the matches of each event that completes some. `fail`
        hears of data errors."""
        return self.plan.hear[stream](self, rows, now, fail)

    def due(self, now: int) -> int | None:
        """When a search that begins now is over."""
        return None if self.length is None else self.length.add(now, self.zone)

    def begin(self, row: Any, wanted: Hashable, found: Searches | None, due: int | None) -> Sequence[Binding]:
        """An event begins a search that waits for a key until it is due, and may end those found; the
        matches."""
        if found is None and self.live < self.most:
            self._begin(Search(row, wanted, due))
            return ()
        heard = () if found is None else self._fitting(row, found)
        begins = True
        if self.live >= self.most:
            self.dropped += 1
            begins = self.drops
            if begins:
                self._drop_oldest()
        told = [self._end(search, row) for search in heard if search.due != ENDED]
        if begins:
            self._begin(Search(row, wanted, due))
        return self._matched(told)

    def end(self, row: Any, found: Searches) -> Sequence[Binding]:
        """An event may be the second one of the searches found; the matches."""
        if found.__class__ is not Search or self.plan.rest is not None:
            return self._matched([self._end(search, row) for search in self._fitting(row, found)])
        del self.waiting[found.key]
        tags = (found.row, row) if self.is_simple else self._tags(found.row, row)
        self._note_end(found)
        if self.plan.is_absence:
            return ()
        self.matched += 1
        return (tags,)

    def _fitting(self, row: Any, found: Searches) -> Sequence[Search]:
        rest, heard = self.plan.rest, self._listening(found)
        return heard if rest is None else [search for search in heard if rest(row, self._tags(search.row))]

    def _matched(self, told: list[Binding]) -> Sequence[Binding]:
        """What ends searches are the matches, unless it must not come."""
        if self.plan.is_absence:
            return ()
        self.matched += len(told)
        return told

    @staticmethod
    def _listening(found: Searches | None) -> Sequence[Search]:
        if found is None:
            return ()
        return tuple(found) if isinstance(found, deque) else (found,)

    def _begin(self, search: Search) -> None:
        self.started += 1
        self.live += 1
        if self.keeps_order:
            self.queue.append(search)
        key = search.key
        if key is None:
            return
        known = self.waiting.setdefault(key, search)
        if known is search:
            return
        if isinstance(known, deque):
            known.append(search)
        else:
            self.waiting[key] = deque((known, search))

    def _end(self, search: Search, second: Any) -> Binding:
        """A search has its second event."""
        tags = self._tags(search.row, second)
        self._forget(search)
        self._note_end(search)
        return tags

    def _note_end(self, search: Search) -> None:
        """A search waits no more; where it stands in the queue it is passed over."""
        self.live -= 1
        search.due, search.row = ENDED, None
        self.ended += 1
        if self.ended > self.SWEEP_MIN and 2 * self.ended > len(self.queue):
            self._sweep()

    def _sweep(self) -> None:
        """Take what has ended out of the queue, which stays the same object."""
        left = [each for each in self.queue if each.due != ENDED]
        self.queue.clear()
        self.queue.extend(left)
        self.ended = 0

    def _forget(self, search: Search) -> None:
        """Take a search out of those of its key."""
        known = self.waiting.get(search.key)
        if known is search:
            del self.waiting[search.key]
        elif isinstance(known, deque):
            if known[0] is search:
                known.popleft()
            else:
                known.remove(search)
            if not known:
                del self.waiting[search.key]

    def _drop_oldest(self) -> None:
        while self.queue[0].due == ENDED:
            self.queue.popleft()
            self.ended -= 1
        self._end(self.queue[0], None)

    def _tags(self, first: Any, second: Any = None) -> Binding:
        plan = self.plan
        if self.is_simple:
            return (first, second)
        tags: list[Any] = [None] * plan.width
        for tag, row in ((plan.first_tag, first), (plan.second_tag, second)):
            if tag is not None:
                tags[tag] = row
        return tuple(tags)

    def advance(self, now: int) -> list[Binding]:
        """End the searches whose time is over by now."""
        told: list[Binding] = []
        while (due := self.deadline()) is not None and due <= now:
            search = self.queue.popleft()
            self._forget(search)
            self.live -= 1
            if self.plan.is_absence:
                told.append(self._tags(search.row))
            else:
                self.expired += 1
        self.matched += len(told)
        return told

    def deadline(self) -> int | None:
        """When `advance` has something to do next."""
        queue = self.queue
        while queue and queue[0].due == ENDED:
            queue.popleft()
            self.ended -= 1
        return queue[0].due if queue else None

    def quit(self) -> None:
        """End all searches."""
        self.waiting.clear()
        self.queue.clear()
        self.live = self.ended = 0

    is_over = False
    """It never ends by itself."""

    has_failed = False
    """What it evaluates raises, or is constant."""

    def failures(self) -> list[BaseException]:
        """What could not be evaluated since the last call."""
        return []

    def searches(self) -> Iterator[Binding]:
        """The tags of each search that waits for its second event."""
        return (self._tags(search.row) for search in self._all())

    def counters(self) -> dict[str, int]:
        """What it holds and what has happened."""
        return {
            "partials": self.live,
            "partials_started": self.started,
            "partials_expired": self.expired,
            "partials_dropped": self.dropped,
            "remembered_dropped": 0,
            "keys_dropped": 0,
            "lengths_null": 0,
            "matches": self.matched,
        }

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The searches in order of their start (of their keys, where time ends none), each row once."""
        packer = Packer()
        searches = [[search.due, packer.rows((search.row,))[0]] for search in self._all()]
        counts = [self.started, self.expired, self.dropped, self.matched]
        return {"version": SNAPSHOT_VERSION, "searches": searches, "rows": packer.packed, "counts": counts}

    def _all(self) -> Iterable[Search]:
        if self.keeps_order:
            return [search for search in self.queue if search.due != ENDED]
        return [search for found in self.waiting.values() for search in self._listening(found)]

    def restore(self, state: dict[str, Any], make_row: Callable[[dict[str, Any]], Any]) -> None:
        """Put a snapshot back into a pattern just built."""
        unpacker = Unpacker(state["rows"], [], make_row)
        self.quit()
        for due, place in state["searches"]:
            (row,) = unpacker.rows([place])
            self._begin(Search(row, self.plan.key(None, self._tags(row)), due))
        self.started, self.expired, self.dropped, self.matched = state["counts"]


def _raise(row: Any, error: BaseException) -> None:
    raise error

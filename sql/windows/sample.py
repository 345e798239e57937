"""Sample: the content of a relation instead of its changes. eKuiper's windows.

Each window takes events and says when to look: it feeds what enters and leaves to a `View` (which keeps the groups and
their aggregates incrementally) and calls `view.sample(start, end, trigger)` at its firing instants.

         HOPPINGWINDOW(ss, 4, 2)   |-----|-----|-----|        ends on the hop grid, [end - 4 s, end)
                                   a   b    c     d
                                         ^[a b]   ^[a b c]    a tick looks before the events of its own instant

         SLIDINGWINDOW(ss, 2)      a  b        c              looks at each event t, (t - 2 s, t]
                                   ^[a] ^[a b] ^[c]

A window of its own key (`OVER(PARTITION BY)`) is one instance per key: `KeyedWindow`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from heapq import heappop, heappush
from typing import Any, Protocol

from sql.aggregates.base import Removal
from sql.calendar.grid import Grid
from sql.windows.event import Event
from sql.windows.operator import FindEvent


class View(Protocol):
    """What a sampled window feeds: the rows after WHERE, grouped, with their aggregates."""

    def add(self, event: Event) -> bool:
        """Take an event in; False for one that cannot be evaluated, which is then in no window."""

    def remove(self, event: Event) -> None: ...
    def clear(self) -> None: ...
    def skip(self, windows: int) -> None:
        """So many empty windows in a row were not shown."""

    def sample(self, start_ms: int, end_ms: int, trigger_ms: int) -> None:
        """Emit the rows of the present content for the window [start, end)."""


class SampleWindow(ABC):
    """A window that is looked at. `push` and `advance` call the view; nothing is returned."""

    departure = Removal.FIFO

    def __init__(self, view: View) -> None:
        self.view = view

    @abstractmethod
    def push(self, event: Event, now: int) -> None:
        """An event that passed FILTER arrives; `advance(now)` has been called."""

    def next_deadline(self) -> int | None:
        return None

    def advance(self, now: int) -> None:
        """Fire what is due at or before `now`, in order."""

    def flush(self) -> None:
        """The bounded source has ended: open windows close at their nominal instants."""
        while (deadline := self.next_deadline()) is not None:
            self.advance(deadline)

    @abstractmethod
    def content(self) -> Iterable[Event]:
        """The events held."""

    def is_blank(self) -> bool:
        return not any(True for _ in self.content())

    def snapshot(self) -> Any:
        return {"events": [event.seq for event in self.content()], **self._marks()}

    def _marks(self) -> dict[str, Any]:
        """The state beside the events."""
        return {}

    def restore(self, state: Any, find: FindEvent) -> None:
        self._restore([find(seq) for seq in state["events"]], state)
        for event in self.content():
            self.view.add(event)

    @abstractmethod
    def _restore(self, events: list[Event], state: Any) -> None: ...


class Generations(SampleWindow):
    """Base of windows whose content is looked at once and then gone: tumbling, session, state."""

    departure = Removal.NEVER

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self.events: list[Event] = []

    def _enter(self, event: Event) -> bool:
        if not self.view.add(event):
            return False
        self.events.append(event)
        return True

    def _close(self, start_ms: int, end_ms: int) -> None:
        self.view.sample(start_ms, end_ms, end_ms)
        self.events = []
        self.view.clear()

    def content(self) -> Iterable[Event]:
        return self.events

    def _restore(self, events: list[Event], state: Any) -> None:
        self.events = events


class Tumbling(Generations):
    """TUMBLINGWINDOW: closes at each boundary of the grid, [start, end). Empty ones fire only with `emit_empty`."""

    def __init__(self, view: View, grid: Grid, emit_empty_from_ms: int | None, empty_max: int = 0) -> None:
        super().__init__(view)
        self.grid = grid
        self.emit_empty = emit_empty_from_ms is not None
        self.empty_max = empty_max
        self.end_ms = None if emit_empty_from_ms is None else grid.next(emit_empty_from_ms)

    def push(self, event: Event, now: int) -> None:
        if self._enter(event) and self.end_ms is None:
            self.end_ms = self.grid.next(event.time_ms)

    def next_deadline(self) -> int | None:
        return self.end_ms

    def advance(self, now: int) -> None:
        shown = 0
        while self.end_ms is not None and self.end_ms <= now:
            end = self.end_ms
            self.end_ms = self.grid.next(end) if self.emit_empty else None
            shown = 0 if self.events else shown + 1
            self._close(self.grid.floor(end - 1), end)
            if self.end_ms is not None and shown == self.empty_max:
                self.end_ms = skip_empty(self.view, self.grid, self.end_ms, now)

    def flush(self) -> None:
        if self.end_ms is not None and self.events:
            self.advance(self.end_ms)

    def is_blank(self) -> bool:
        return not self.events and not self.emit_empty

    def _marks(self) -> dict[str, Any]:
        return {"end": self.end_ms}

    def _restore(self, events: list[Event], state: Any) -> None:
        super()._restore(events, state)
        self.end_ms = state["end"]


class Hopping(SampleWindow):
    """HOPPINGWINDOW: at each end E of the hop grid the events of [E - length, E)."""

    def __init__(self, view: View, length_ms: int, hops: Grid, emit_empty_from_ms: int | None, empty_max: int = 0):
        super().__init__(view)
        self.empty_max = empty_max
        self.length_ms = length_ms
        self.hops = hops
        self.emit_empty = emit_empty_from_ms is not None
        self.events: deque[Event] = deque()
        self.end_ms = None if emit_empty_from_ms is None else hops.next(emit_empty_from_ms)

    def push(self, event: Event, now: int) -> None:
        if not self.view.add(event):
            return
        if self.end_ms is None:
            self.end_ms = self.hops.next(event.time_ms)
        self.events.append(event)

    def next_deadline(self) -> int | None:
        return self.end_ms

    def advance(self, now: int) -> None:
        shown = 0
        while self.end_ms is not None and self.end_ms <= now:
            end = self.end_ms
            self._drop_before(end - self.length_ms)
            shown = 0 if self.events else shown + 1
            self.view.sample(end - self.length_ms, end, end)
            self.end_ms = self.hops.next(end)
            if not self.emit_empty:
                self._drop_before(self.end_ms - self.length_ms)
                if not self.events:
                    self.end_ms = None
            elif shown == self.empty_max:
                self.end_ms = skip_empty(self.view, self.hops, self.end_ms, now)

    def _drop_before(self, edge_ms: int) -> None:
        while self.events and self.events[0].time_ms < edge_ms:
            self.view.remove(self.events.popleft())

    def flush(self) -> None:
        while self.events and self.end_ms is not None:
            self.advance(self.end_ms)

    def is_blank(self) -> bool:
        return not self.events and not self.emit_empty

    def content(self) -> Iterable[Event]:
        return self.events

    def _marks(self) -> dict[str, Any]:
        return {"end": self.end_ms}

    def _restore(self, events: list[Event], state: Any) -> None:
        self.events = deque(events)
        self.end_ms = state["end"]


def skip_empty(view: View, grid: Grid, end_ms: int, now: int) -> int:
    """Enough empty windows have been shown in one step: the next boundary after `now`; the view counts the rest."""
    after = grid.next(now)
    view.skip((after - end_ms) // grid.length_ms)
    return after


class Sliding(SampleWindow):
    """SLIDINGWINDOW: for each triggering event at t the events of (t - length, t]; delayed: (t - length, t + delay)."""

    def __init__(self, view: View, length_ms: int, delay_ms: int, triggers: Callable[[Event], bool]) -> None:
        super().__init__(view)
        self.length_ms = length_ms
        self.delay_ms = delay_ms
        self.triggers = triggers
        self.events: deque[Event] = deque()
        self.pending: deque[int] = deque()

    def push(self, event: Event, now: int) -> None:
        self._drop_until(event.time_ms - self.length_ms - self.delay_ms)
        if not self.view.add(event):
            return
        self.events.append(event)
        if not self.triggers(event):
            return
        if self.delay_ms:
            self.pending.append(event.time_ms)
        else:
            self.view.sample(event.time_ms - self.length_ms, event.time_ms, event.time_ms)

    def _drop_until(self, edge_ms: int) -> None:
        while self.events and self.events[0].time_ms <= edge_ms:
            self.view.remove(self.events.popleft())

    def next_deadline(self) -> int | None:
        if self.pending:
            return self.pending[0] + self.delay_ms
        # Expiry alone shows nothing, but a stream that falls silent must not hold its last window for ever.
        return self.events[-1].time_ms + self.length_ms + self.delay_ms if self.events else None

    def advance(self, now: int) -> None:
        while self.pending and self.pending[0] + self.delay_ms <= now:
            trigger = self.pending.popleft()
            self._drop_until(trigger - self.length_ms)
            self.view.sample(trigger - self.length_ms, trigger + self.delay_ms, trigger + self.delay_ms)
        if not self.pending:
            self._drop_until(now - self.length_ms - self.delay_ms)

    def content(self) -> Iterable[Event]:
        return self.events

    def is_blank(self) -> bool:
        return not self.events and not self.pending

    def _marks(self) -> dict[str, Any]:
        return {"pending": list(self.pending)}

    def _restore(self, events: list[Event], state: Any) -> None:
        self.events = deque(events)
        self.pending = deque(state["pending"])


class Session(Generations):
    """SESSIONWINDOW: closes at last + timeout, or at the first tick T of the max grid with T - first >= max."""

    def __init__(self, view: View, max_ms: int, ticks: Grid, timeout_ms: int) -> None:
        super().__init__(view)
        self.max_ms = max_ms
        self.ticks = ticks
        self.timeout_ms = timeout_ms
        self.tick_ms = 0

    def push(self, event: Event, now: int) -> None:
        if self._enter(event) and len(self.events) == 1:
            self.tick_ms = self.ticks.next(event.time_ms + self.max_ms - 1)

    def next_deadline(self) -> int | None:
        if not self.events:
            return None
        return min(self.events[-1].time_ms + self.timeout_ms, self.tick_ms)

    def advance(self, now: int) -> None:
        deadline = self.next_deadline()
        if deadline is not None and deadline <= now:
            self._close(self.events[0].time_ms, deadline)

    def _marks(self) -> dict[str, Any]:
        return {"tick": self.tick_ms}

    def _restore(self, events: list[Event], state: Any) -> None:
        super()._restore(events, state)
        self.tick_ms = state["tick"]


class Counting(SampleWindow):
    """COUNTWINDOW(n, k): after each k-th row, once n are there, the last n."""

    def __init__(self, view: View, size: int, interval: int) -> None:
        super().__init__(view)
        self.size = size
        self.interval = interval
        self.events: deque[Event] = deque()
        self.since = 0

    def push(self, event: Event, now: int) -> None:
        if not self.view.add(event):
            return
        self.events.append(event)
        if len(self.events) > self.size:
            self.view.remove(self.events.popleft())
        self.since += 1
        if self.since == self.interval:
            self.since = 0
            if len(self.events) == self.size:
                self.view.sample(self.events[0].time_ms, event.time_ms, event.time_ms)
        # A tumbling count window starts anew: nothing it has shown can be seen again.
        if self.since == 0 and self.interval == self.size and len(self.events) == self.size:
            self.events.clear()
            self.view.clear()

    def flush(self) -> None:
        """An unfinished count window stays unfinished."""

    def content(self) -> Iterable[Event]:
        return self.events

    def is_blank(self) -> bool:
        return not self.events and not self.since

    def _marks(self) -> dict[str, Any]:
        return {"since": self.since}

    def _restore(self, events: list[Event], state: Any) -> None:
        self.events = deque(events)
        self.since = state["since"]


class Between(Generations):
    """STATEWINDOW(begin, emit): from a row that begins to a row that emits, both inside.

    The emit condition is not tested on the opening row, as in eKuiper. With one condition each row that meets it shows
    what is stored and starts the next; rows before the first are dropped.
    """

    def __init__(self, view: View, begin: Callable[[Event], bool], emit: Callable[[Event], bool] | None) -> None:
        super().__init__(view)
        self.begin = begin
        self.emit = emit

    def push(self, event: Event, now: int) -> None:
        if self.emit is None:
            if self.begin(event):
                if self.events:
                    self._close(self.events[0].time_ms, event.time_ms)
                self._enter(event)
            elif self.events:
                self._enter(event)
        elif self.events:
            if self._enter(event) and self.emit(event):
                self._close(self.events[0].time_ms, event.time_ms)
        elif self.begin(event):
            self._enter(event)

    def flush(self) -> None:
        """An unfinished state window stays unfinished."""


class KeyedWindow(SampleWindow):
    """OVER(PARTITION BY): one window per key, each with its own view and its own output."""

    def __init__(self, key: Callable[[Event], Hashable], make: Callable[[], SampleWindow]) -> None:
        self.key = key
        self.make = make
        self.instances: dict[Hashable, SampleWindow] = {}
        self.order: dict[Hashable, int] = {}
        self.due: list[tuple[int, int, Hashable]] = []
        self.count = 0

    def push(self, event: Event, now: int) -> None:
        key = self.key(event)
        window = self.instances.get(key)
        if window is None:
            window = self._open(key)
        window.push(event, now)
        self._schedule(key, window)

    def _open(self, key: Hashable) -> SampleWindow:
        window = self.instances[key] = self.make()
        self.order[key] = self.count
        self.count += 1
        return window

    def _schedule(self, key: Hashable, window: SampleWindow) -> None:
        deadline = window.next_deadline()
        if deadline is not None:
            entry = (deadline, self.order[key], key)
            if not self.due or self.due[0] != entry:
                heappush(self.due, entry)
        elif window.is_blank():
            del self.instances[key], self.order[key]

    def next_deadline(self) -> int | None:
        while self.due:
            deadline, order, key = self.due[0]
            if self.order.get(key) == order and self.instances[key].next_deadline() == deadline:
                return deadline
            heappop(self.due)
        return None

    def advance(self, now: int) -> None:
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            key = heappop(self.due)[2]
            window = self.instances[key]
            window.advance(deadline)
            self._schedule(key, window)

    def content(self) -> Iterable[Event]:
        return (event for window in self.instances.values() for event in window.content())

    def snapshot(self) -> Any:
        parts = [
            [next(iter(window.content())).seq, self.order[key], window.snapshot()]
            for key, window in self.instances.items()
            if not window.is_blank()
        ]
        return {"count": self.count, "instances": parts}

    def restore(self, state: Any, find: FindEvent) -> None:
        for seq, order, part in state["instances"]:
            key = self.key(find(seq))
            window = self._open(key)
            self.order[key] = order
            window.restore(part, find)
            self._schedule(key, window)
        self.count = state["count"]

    def _restore(self, events: list[Event], state: Any) -> None:
        raise AssertionError("restore() does the work")

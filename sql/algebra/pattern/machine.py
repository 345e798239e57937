"""A running pattern: events and time in, matches out.

What happens at one event or one instant is decided here:

* All listeners that an event fits are found before any of them acts, and act in the order of their start;
  so what an event starts does not see that event, and what it has ended acts no more.
* PatternTimers fire in order of (due, number of the start), each at the present instant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from sql.algebra.pattern.atoms import Filter, FilterNode
from sql.algebra.pattern.nodes import Binding, PatternInstance, PatternPart, events_of
from sql.algebra.pattern.partials import PartialBounds, Partials
from sql.algebra.pattern.pattern_timers import Length, Observer, PatternTimers
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.calendar.period import Period
from sql.codegen.functions import DATA_ERRORS
from sql.errors import CorruptState

if TYPE_CHECKING:
    from sql.algebra.pattern.pattern_builder import PatternBuilder

Value = TypeVar("Value")

SNAPSHOT_VERSION = 2


class Machine:
    """The state shared by the instances of one pattern: the instant, the count of starts,
    timers, bounds, counters."""

    def __init__(self, zone: tzinfo, bounds: PartialBounds, *, keeps_matched: bool) -> None:
        self.keeps_matched = keeps_matched
        """True if an `and` remembers what no later row can need, because a match ends
        what holds its events."""
        self.zone = zone
        self.bounds = bounds
        self.now = 0
        self.number = 0
        """The number of the last start; it orders matches, and timers that are due together."""
        self.timers = PatternTimers()
        self.counts: Counter[str] = Counter()
        self.partials = Partials(bounds, self.counts)
        self.failures: list[BaseException] = []
        """The errors of evaluation while instances acted; the caller that drives the pattern
        takes and reports them."""

    def evaluate(self, function: Callable[[Binding], Value], binding: Binding) -> Value | None:
        """The value of a parameter; NULL, and a failure noted, where it cannot be evaluated."""
        try:
            return function(binding)
        except DATA_ERRORS as error:
            self.failures.append(error)
            return None

    def length(self, length: Length, binding: Binding) -> Period | None:
        """A length of time; NULL is counted, for what waits for it waits for ever."""
        found = self.evaluate(length, binding)
        if found is None:
            self.counts["lengths_null"] += 1
        return found


class Pattern:
    """A pattern that has been started. Drive it with `enter` and `advance`; both give the matches, in order.

    Where the caller keeps the clock: `advance(now)` comes before the events of `now`,
    whenever `deadline()` is due.
    """

    def __init__(self, builder: PatternBuilder) -> None:
        self.builder = builder
        self.plan = builder.plan
        self._assemble()

    def _assemble(self) -> None:
        """Nodes without any instance."""
        plan, builder = self.plan, self.builder
        self.machine = Machine(builder.zone, builder.bounds, keeps_matched=plan.discard)
        self.nodes: list[PatternPart] = []
        self.root_node = builder.nodes(self.machine, self.nodes)
        self.filters: dict[str, list[FilterNode]] = {}
        for node in self.nodes:
            if isinstance(node, FilterNode):
                self.filters.setdefault(node.stream, []).append(node)
        self.consumes = any(node.consume for nodes in self.filters.values() for node in nodes)
        self.root: PatternInstance | None = None
        self.matches: list[Binding] = []

    # --- driving --------------------------------------------------------------------------------------------

    def start(self, now: int) -> list[Binding]:
        """Begin. The caller reports or drops matches that are true at once; arrows go on from them."""
        self.machine.now = now
        self.root = self.root_node.make(self, (None,) * len(self.plan.tags))
        self.root.start()
        return self._told()

    def enter(self, stream: str, row: object, now: int) -> list[Binding]:
        """An event arrives; what is due by `now` has been done. Raises a data error before
        anything has changed."""
        found: list[Filter] = []
        for node in self.filters.get(stream, ()):
            node.find(row, found)
        if not found:
            return []
        self.machine.now = now
        if len(found) > 1:
            found.sort(key=_number)
            if self.consumes:
                level = max(listener.node.consume for listener in found)
                found = [listener for listener in found if listener.node.consume == level]
        for listener in found:
            listener.hear(row)
        return self._told() if self.matches else []

    def lot(
        self, stream: str, rows: Sequence[Any], now: int, fail: Callable[[Any, BaseException], None]
    ) -> list[list[Binding]]:
        """`enter` for several events: the matches of each event that completes some. `fail` is
        called for data errors."""
        out = []
        for row in rows:
            try:
                found = self.enter(stream, row, now)
            except DATA_ERRORS as error:
                fail(row, error)
                continue
            if found:
                out.append(found)
        return out

    def advance(self, now: int) -> list[Binding]:
        """Do what is due at or before `now`: each at `now`, in order of (due, number)."""
        machine = self.machine
        machine.now = now
        while (timed := machine.timers.take(now)) is not None:
            timed.fire()
        return self._told()

    def deadline(self) -> int | None:
        """When `advance` has something to do next."""
        return self.machine.timers.deadline()

    def quit(self) -> None:
        """End it, with all its timers."""
        root, self.root = self.root, None
        if root is not None:
            root.quit()

    @property
    def is_over(self) -> bool:
        """True if it has ended for good: it can never match again."""
        return self.root is None

    def waiting(self) -> Iterator[Filter | Observer]:
        """The filters and timers that wait to be true."""
        left = [] if self.root is None else [self.root]
        while left:
            instance = left.pop()
            if isinstance(instance, Filter | Observer):
                yield instance
            left += instance.below()

    def counters(self) -> dict[str, int]:
        """Its size and its counters."""
        counts = self.machine.counts
        names = (
            "partials_started",
            "partials_expired",
            "partials_dropped",
            "remembered_dropped",
            "keys_dropped",
            "lengths_null",
            "matches",
        )
        return {"partials": self.machine.partials.live, **{name: counts[name] for name in names}}

    @property
    def has_failed(self) -> bool:
        """True if something could not be evaluated since `failures` was called."""
        return bool(self.machine.failures)

    def failures(self) -> list[BaseException]:
        """The evaluation errors since the last call."""
        found, self.machine.failures = self.machine.failures, []
        return found

    # --- as the parent of the root --------------------------------------------------------------------------

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        """The whole has matched."""
        self.matches.append(binding)
        if over:
            self.root = None

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        """The whole has ended for good."""
        self.root = None

    def _told(self) -> list[Binding]:
        """The matches since the last call, as the annotations of the pattern let them through."""
        matches, self.matches = self.matches, []
        self.machine.counts["matches"] += len(matches)
        if matches and self.plan.discard and self.root is not None:
            self.root.discard({event for match in matches for event in events_of(match)})
        return _without_overlaps(matches) if self.plan.suppress else matches

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain data."""
        packer = Packer()
        root = None if self.root is None else self.root.pack(packer)
        return {
            "version": SNAPSHOT_VERSION,
            "number": self.machine.number,
            "counts": dict(self.machine.counts),
            "root": root,
            "bindings": packer.bindings,
            "rows": packer.packed,
        }

    def restore(self, state: dict[str, Any], make_row: Callable[[dict[str, Any]], Any]) -> None:
        """Put a snapshot back into a pattern just built, started or not."""
        if state.get("version") != SNAPSHOT_VERSION:
            raise CorruptState(f"a pattern of version {state.get('version')!r} is not {SNAPSHOT_VERSION}")
        self._assemble()
        machine = self.machine
        unpacker = Unpacker(state["rows"], state["bindings"], make_row)
        self.root = None if state["root"] is None else self.root_node.unpack(self, state["root"], unpacker)
        for listener in sorted(unpacker.listeners, key=_number):
            listener.node.listening.add(listener)
        for timed, place in sorted(unpacker.timers, key=lambda item: (item[0].due, item[0].number)):
            machine.timers.add(timed, place)
        machine.number = state["number"]
        machine.counts.clear()
        machine.counts.update(state["counts"])


_number = attrgetter("number")


def _without_overlaps(matches: Sequence[Binding]) -> list[Binding]:
    """The matches, in order, less those that share an event with one kept before."""
    kept: list[Binding] = []
    seen: set[int] = set()
    for match in matches:
        events = set(events_of(match))
        if not events & seen:
            kept.append(match)
            seen |= events
    return kept


__all__ = ["Machine", "PartialBounds", "Pattern"]

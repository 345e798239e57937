"""A running pattern: events and time in, matches out.

What happens at one event or one instant is decided here:

* All listeners that an event fits are found before any of them acts, and act in the order of their start;
  so what an event starts does not see that event, and what it has ended acts no more.
* Timers fire in order of (due, number of the start), each at the present instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from operator import attrgetter, itemgetter
from typing import Any

from sql.algebra.pattern.filters import Filter, FilterNode
from sql.algebra.pattern.listening import Binding, Listener, Listening
from sql.algebra.pattern.machine import COUNTERS, Machine, PatternWait
from sql.algebra.pattern.nodes import PatternInstance, PatternPart, events_of, packed, unpacked
from sql.algebra.pattern.observers import Observer
from sql.algebra.pattern.snapshot import VERSION, Packer, Unpacker, check_version
from sql.codegen.functions import DATA_ERRORS
from sql.errors import Fail
from sql.plan.options import RuleOptions
from sql.plan.pattern_plan import PatternPlan
from sql.record import Record


class PatternProgram(Record):
    """The data that all patterns of one plan share: the tree of nodes, and the filters among them."""

    plan: PatternPlan
    root: PatternPart
    filters: tuple[FilterNode, ...]
    zone: tzinfo
    options: RuleOptions


class Pattern:
    """A pattern that has been started. Drive it with `enter` and `advance`; both give the matches, in order.

    Where the caller keeps the clock: `advance(now)` comes before the events of `now`,
    whenever `deadline()` is due.
    """

    def __init__(self, program: PatternProgram, fail: Fail) -> None:
        self.program = program
        self.fail = fail
        self.passes: Callable[[Binding], bool] | None = None
        """The test of a match that comes before it is compared with others, and discards partial ones."""
        self._assemble()

    def _assemble(self) -> None:
        """A machine without any instance."""
        program = self.program
        self.machine = Machine(program.zone, program.options, self.fail, keeps_matched=program.plan.discard)
        self.consumes = any(node.step.consume for node in program.filters)
        self.by_stream: dict[str, list[Listening]] = {}
        """What listens, by stream."""
        for node in program.filters:
            listening = self.machine.listening[node] = Listening(node.tests)
            self.by_stream.setdefault(node.step.stream, []).append(listening)
        self.root: PatternInstance | None = None
        self.matches: list[Binding] = []

    # --- driving --------------------------------------------------------------------------------------------

    def start(self, now: int) -> list[Binding]:
        """Begin. The caller reports or drops matches that are true at once; arrows go on from them."""
        self.machine.now = now
        self.root = self.program.root.make(self, (None,) * len(self.program.plan.tags))
        self.root.start()
        return self._take_matches()

    def enter(self, stream: str, row: object, now: int) -> list[Binding]:
        """An event arrives; what is due by `now` has been done. Raises a data error before
        anything has changed."""
        found: list[Listener] = []
        for listening in self.by_stream.get(stream, ()):
            if listening.count and (listening.own is None or listening.own(row)):
                found += listening.find(row)
        if not found:
            return []
        self.machine.now = now
        if len(found) > 1:
            found.sort(key=_seq)
            if self.consumes:
                level = max(listener.consume for listener in found)
                found = [listener for listener in found if listener.consume == level]
        most = self.machine.options.max_pattern_partials
        for number, listener in enumerate(found):
            if len(self.matches) >= most:
                self.machine.counts["matches_dropped"] += len(found) - number
                break
            listener.take(row)
        return self._take_matches() if self.matches else []

    def enter_each(self, stream: str, rows: Sequence[Any], now: int) -> list[list[Binding]]:
        """`enter` for several events: the matches of each event that completes some; data errors are
        reported."""
        out = []
        for row in rows:
            try:
                found = self.enter(stream, row, now)
            except DATA_ERRORS as error:
                self.fail(row, error)
                continue
            if found:
                out.append(found)
        return out

    def advance(self, now: int) -> list[Binding]:
        """Do what is due at or before `now`: each at `now`, in order of (due, seq)."""
        machine = self.machine
        machine.now = now
        while (due := machine.timers.next_ms()) is not None and due <= now:
            machine.timers.pop().fire()
        return self._take_matches()

    def deadline(self) -> int | None:
        """When `advance` has something to do next."""
        return self.machine.timers.next_ms()

    def quit(self) -> None:
        """End it, with all its timers."""
        root, self.root = self.root, None
        if root is not None:
            root.quit()
        self.machine.timers.clear()

    def searches(self) -> Iterator[PatternWait]:
        """The filters and timers for which searches wait that have found an event."""
        left = [] if self.root is None else [self.root]
        while left:
            instance = left.pop()
            if isinstance(instance, Filter | Observer) and any(instance.binding):
                due = instance.due_ms if isinstance(instance, Observer) else None
                yield PatternWait(instance.binding, instance.node.step, instance.begun, due)
            left += instance.below()

    def counters(self) -> dict[str, int]:
        counts, live = self.machine.counts, self.machine.partials.live
        return {name: counts[name] for name in COUNTERS} | {"partials": live}

    # --- as the parent of the root --------------------------------------------------------------------------

    def on_true(self, child: PatternInstance, binding: Binding, *, over: bool) -> None:
        self.matches.append(binding)
        if over:
            self.root = None

    def on_false(self, child: PatternInstance, *, restartable: bool = True) -> None:
        self.root = None

    def _take_matches(self) -> list[Binding]:
        """The matches since the last call, as the annotations of the pattern let them through."""
        matches, self.matches = self.matches, []
        self.machine.counts["matches"] += len(matches)
        plan = self.program.plan
        if self.passes is not None:
            matches = [match for match in matches if self.passes(match)]
        if matches and plan.discard and self.root is not None:
            self.root.discard({event for match in matches for event in events_of(match)})
        return _without_overlaps(matches) if plan.suppress else matches

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain data."""
        packer = Packer()
        root = packed(self.root, packer)
        return {
            "version": VERSION,
            "number": self.machine.seq,
            "counts": dict(self.machine.counts),
            "root": root,
            "bindings": packer.bindings,
            "rows": packer.packed,
        }

    def restore(self, state: dict[str, Any], make_row: Callable[[dict[str, Any]], Any]) -> None:
        """Put a snapshot back into a pattern just built, started or not."""
        check_version(state, "a pattern")
        self._assemble()
        machine = self.machine
        unpacker = Unpacker(state["rows"], state["bindings"], make_row)
        self.root = unpacked(self.program.root, self, state["root"], unpacker)
        for _, listen in sorted(unpacker.listeners, key=itemgetter(0)):
            listen()
        for timed, due in unpacker.timers:
            machine.timers.move(timed, due, timed.seq)
        machine.seq = state["number"]
        machine.counts.clear()
        machine.counts.update(state["counts"])


_seq = attrgetter("seq")


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

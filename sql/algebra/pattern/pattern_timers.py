"""Time in patterns: what is due when, and the observers `timer:interval`, `timer:at`, `timer:schedule`."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Protocol

from sql.algebra.pattern.nodes import Binding, Parent, PatternInstance, PatternPart
from sql.calendar.crontab import Crontab
from sql.calendar.period import Period
from sql.calendar.schedule import Schedule
from sql.types import Saved

if TYPE_CHECKING:
    from sql.algebra.pattern.machine import Machine
    from sql.algebra.pattern.snapshot import Packer, Unpacker

Length = Callable[[Binding], Period | None]
"""A length of time where a binding stands; None for NULL."""


class Timed(Protocol):
    """An instance that waits for an instant. `number` decides between two that are due at once."""

    number: int
    due: int | None
    """The time in ms; None: it waits no more, and is skipped when its turn comes."""

    def fire(self) -> None:
        """The instant has come."""


class PatternTimers:
    """All waiting timers, by (due, number).

    Those of a node with one constant length come in order of their dues, so they wait in a queue; others in a
    heap. An ended one stays in until it surfaces, or until more than half have ended.
    """

    SWEEP_MIN = 64

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, Timed]] = []
        self.queues: dict[int, deque[Timed]] = {}
        """By the node's place in the tree."""
        self.ended = 0

    def add(self, timed: Timed, place: int | None = None) -> None:
        """Wait for the instance's `due`; `place`: its node's, where all have the same length."""
        assert timed.due is not None
        if place is not None:
            queue = self.queues.setdefault(place, deque())
            last = queue[-1].due if queue else None
            if not queue or (last is not None and last <= timed.due):
                queue.append(timed)
                return
        heappush(self.heap, (timed.due, timed.number, timed))

    def cancel(self) -> None:
        """One of those that wait has ended."""
        self.ended += 1
        if self.ended > self.SWEEP_MIN and 2 * self.ended > len(self.heap) + sum(
            map(len, self.queues.values())
        ):
            self.heap = [entry for entry in self.heap if entry[2].due is not None]
            heapify(self.heap)
            for place, queue in self.queues.items():
                self.queues[place] = deque(timed for timed in queue if timed.due is not None)
            self.ended = 0

    def _head(self) -> tuple[int, int, deque[Timed] | None] | None:
        """(due, number) of the next, and the queue it is in."""
        while self.heap and self.heap[0][2].due is None:
            heappop(self.heap)
            self.ended -= 1
        best: tuple[int, int, deque[Timed] | None] | None = (*self.heap[0][:2], None) if self.heap else None
        for queue in self.queues.values():
            while queue and queue[0].due is None:
                queue.popleft()
                self.ended -= 1
            if queue:
                due, number = queue[0].due, queue[0].number
                assert due is not None
                if best is None or (due, number) < best[:2]:
                    best = (due, number, queue)
        return best

    def deadline(self) -> int | None:
        """The earliest due."""
        head = self._head()
        return None if head is None else head[0]

    def take(self, now: int) -> Timed | None:
        """The next that is due by now, which waits no more."""
        head = self._head()
        if head is None or head[0] > now:
            return None
        timed = heappop(self.heap)[2] if head[2] is None else head[2].popleft()
        timed.due = None
        return timed


class ObserverNode(PatternPart):
    """An observer. `stays`: a schedule under `every` goes on by itself until its last instant."""

    def make(self, parent: Parent, binding: Binding) -> Observer:
        return Observer(self, parent, binding)

    def unpack(self, parent: Parent, state: Saved, unpacker: Unpacker) -> Observer:
        number, due, binding, begun = state
        made = Observer(self, parent, unpacker.binding(binding))
        made.number, made.due, made.begun = number, due, begun
        if due is not None:
            unpacker.timers.append((made, None))
        return made

    @abstractmethod
    def next_due(self, observer: Observer) -> int | None:
        """When it is true next, after `machine.now`; None: never."""


class IntervalNode(ObserverNode):
    """`timer:interval`."""

    def __init__(self, machine: Machine, place: int, length: Length) -> None:
        super().__init__(machine, place)
        self.length = length

    def next_due(self, observer: Observer) -> int | None:
        length = self.machine.length(self.length, observer.binding)
        return None if length is None else length.add(self.machine.now, self.machine.zone)


class CrontabNode(ObserverNode):
    """`timer:at`."""

    def __init__(self, machine: Machine, place: int, crontab: Crontab) -> None:
        super().__init__(machine, place)
        self.crontab = crontab

    def next_due(self, observer: Observer) -> int | None:
        return self.crontab.next_after(self.machine.now)


class ScheduleNode(ObserverNode):
    """`timer:schedule`."""

    def __init__(
        self, machine: Machine, place: int, schedule: Callable[[Binding], Schedule | None], *, stays: bool
    ) -> None:
        super().__init__(machine, place)
        self.schedule = schedule
        self.stays = stays

    def next_due(self, observer: Observer) -> int | None:
        schedule = self.machine.evaluate(self.schedule, observer.binding)
        machine = self.machine
        return None if schedule is None else schedule.next_after(machine.now, observer.begun, machine.zone)


class Observer(PatternInstance):
    """An observer that waits."""

    __slots__ = ("begun", "binding", "due", "node", "number", "parent")

    def __init__(self, node: ObserverNode, parent: Parent, binding: Binding) -> None:
        self.node = node
        self.parent: Parent | None = parent
        self.binding = binding
        self.number = 0
        self.due: int | None = None
        self.begun = 0
        """When it was started, in ms."""

    def start(self) -> None:
        machine = self.node.machine
        machine.number += 1
        self.number = machine.number
        self.begun = machine.now
        self._wait()

    def _wait(self) -> None:
        """Wait for the next instant; without one a schedule is false, and an interval
        of NULL waits for ever."""
        machine = self.node.machine
        due = self.node.next_due(self)
        if due is None:
            if isinstance(self.node, ScheduleNode):
                self._end_false()
        elif due <= machine.now:
            self._end_true()
        else:
            self.due = due
            machine.timers.add(self)

    def fire(self) -> None:
        if not self.node.stays:
            self._end_true()
            return
        parent = self.parent
        assert parent is not None
        due = self.node.next_due(self)
        if due is None:
            self._end_true()
            return
        self.due = due
        self.node.machine.timers.add(self)
        parent.on_true(self, self.binding, over=False)

    def _end_true(self) -> None:
        parent, self.parent = self.parent, None
        assert parent is not None
        parent.on_true(self, self.binding, over=True)

    def _end_false(self) -> None:
        parent, self.parent = self.parent, None
        assert parent is not None
        parent.on_false(self, restartable=False)

    def quit(self) -> None:
        self.parent = None
        if self.due is not None:
            self.due = None
            self.node.machine.timers.cancel()

    def pack(self, packer: Packer) -> Saved:
        return [self.number, self.due, packer.binding(self.binding), self.begun]

"""The observers of time: `timer:interval`, `timer:at`, `timer:schedule`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from sql.algebra.pattern.machine import Binding, Length, Machine
from sql.algebra.pattern.nodes import Parent, PatternInstance, PatternPart
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.calendar.crontab import Crontab
from sql.calendar.schedule import Schedule


class Observer(PatternInstance):
    """An observer that waits."""

    __slots__ = ("begun", "due")
    begun: int
    """When it was started, in ms."""

    def __init__(self, node: ObserverNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.due: int | None = None

    def start(self) -> None:
        """Wait for the next instant; without one a schedule is false, and an interval
        of NULL waits for ever."""
        machine = self.node.machine
        self.number = machine.number = machine.number + 1
        self.begun = machine.now
        due = self.node.next_due(self)
        if due is None:
            if self.node.may_end:
                self._end_false()
        elif due <= machine.now:
            self._end_true()
        else:
            self.due = due
            machine.timers.add(self)

    def fire(self) -> None:
        due = self.node.next_due(self) if self.node.stays else None
        if due is None:
            self._end_true()
            return
        parent = self.parent
        assert parent is not None
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

    def pack(self, packer: Packer) -> tuple[int, int | None, int, int]:
        return self.number, self.due, packer.binding(self.binding), self.begun

    def unpack(self, state: tuple[int, int | None, int, int], unpacker: Unpacker) -> None:
        self.number, self.due, binding, self.begun = state
        self.binding = unpacker.binding(binding)
        if self.due is not None:
            unpacker.timers.append((self, None))


class ObserverNode(PatternPart):
    """An observer. `stays`: a schedule under `every` goes on by itself until its last instant."""

    instance = Observer
    may_end = False
    """True if an observer without a next instant is false."""

    @abstractmethod
    def next_due(self, observer: Observer) -> int | None:
        """When it is true next, after `machine.now`; None: never."""


class IntervalNode(ObserverNode):
    """`timer:interval`."""

    def __init__(self, machine: Machine, length: Length) -> None:
        super().__init__(machine)
        self.length = length

    def next_due(self, observer: Observer) -> int | None:
        length = self.machine.length(self.length, observer.binding)
        return None if length is None else length.add(self.machine.now, self.machine.zone)


class CrontabNode(ObserverNode):
    """`timer:at`."""

    def __init__(self, machine: Machine, crontab: Crontab) -> None:
        super().__init__(machine)
        self.crontab = crontab

    def next_due(self, observer: Observer) -> int | None:
        return self.crontab.next_after(self.machine.now)


class ScheduleNode(ObserverNode):
    """`timer:schedule`."""

    may_end = True

    def __init__(
        self, machine: Machine, schedule: Callable[[Binding], Schedule | None], *, stays: bool
    ) -> None:
        super().__init__(machine)
        self.schedule = schedule
        self.stays = stays

    def next_due(self, observer: Observer) -> int | None:
        schedule = self.machine.evaluate(self.schedule, observer.binding)
        machine = self.machine
        return None if schedule is None else schedule.next_after(machine.now, observer.begun, machine.zone)

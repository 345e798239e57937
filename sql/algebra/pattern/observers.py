"""The observers of time: `timer:interval`, `timer:at`, `timer:schedule`."""

from __future__ import annotations

from collections.abc import Callable

from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.machine import Length
from sql.algebra.pattern.nodes import Parent, PatternInstance, PatternPart
from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.calendar.crontab import Crontab
from sql.calendar.schedule import Schedule
from sql.plan.pattern_plan import StepPlan


class Observer(PatternInstance):
    """An observer that waits."""

    __slots__ = ("begun", "due_ms")
    begun: int
    """When it was started, in ms."""

    def __init__(self, node: ObserverNode, parent: Parent, binding: Binding) -> None:
        super().__init__(node, parent, binding)
        self.due_ms: int | None = None

    def start(self) -> None:
        """Wait for the next instant; without one a schedule is false, and an interval
        of NULL waits for ever."""
        machine = self.machine
        self.seq = machine.seq = machine.seq + 1
        self.begun = machine.now
        due = self.node.next_due(self)
        if due is None:
            if self.node.may_end:
                self._end().on_false(self, restartable=False)
        elif due <= machine.now:
            self._end().on_true(self, self.binding, over=True)
        else:
            machine.timers.move(self, due, self.seq)

    def fire(self) -> None:
        due = self.node.next_due(self) if self.node.stays else None
        if due is None:
            self._end().on_true(self, self.binding, over=True)
            return
        assert self.parent is not None
        self.machine.timers.move(self, due, self.seq)
        self.parent.on_true(self, self.binding, over=False)

    def _end(self) -> Parent:
        """End, and return the parent to report to."""
        parent, self.parent = self.parent, None
        assert parent is not None
        return parent

    def quit(self) -> None:
        self.parent = None
        self.machine.timers.move(self, None)

    def pack(self, packer: Packer) -> tuple[int, int | None, int, int]:
        return self.seq, self.due_ms, packer.binding(self.binding), self.begun

    def unpack(self, state: tuple[int, int | None, int, int], unpacker: Unpacker) -> None:
        self.seq, due, binding, self.begun = state
        self.binding = unpacker.binding(binding)
        if due is not None:
            unpacker.timers.append((self, due))


class ObserverNode(PatternPart):
    """An observer. `stays`: a schedule under `every` goes on by itself until its last instant."""

    instance = Observer
    step: StepPlan
    next_due: Callable[[Observer], int | None]
    """When it is true next, after `machine.now`; None: never."""
    may_end: bool = False
    """True if an observer without a next instant is false."""
    stays: bool = False


def after(length: Length, observer: Observer) -> int | None:
    """When `timer:interval` is true."""
    machine = observer.machine
    found = machine.length(length, observer.binding)
    return None if found is None else found.add(machine.now, machine.zone)


def by_crontab(crontab: Callable[[Binding], Crontab | None], observer: Observer) -> int | None:
    """When `timer:at` is true; never where a field of it is NULL or cannot be."""
    machine = observer.machine
    found = machine.evaluate(crontab, observer.binding)
    return None if found is None else found.next_after(machine.now)


def by_schedule(schedule: Callable[[Binding], Schedule | None], observer: Observer) -> int | None:
    """When `timer:schedule` is true."""
    machine = observer.machine
    found = machine.evaluate(schedule, observer.binding)
    return None if found is None else found.next_after(machine.now, observer.begun, machine.zone)

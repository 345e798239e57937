"""Key: one instance of a whole operator per key, and which keys are forgotten."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from sql.aggregates.base import Removal
from sql.algebra.content_view import NOTHING, ContentView
from sql.algebra.deadlines import Deadlines
from sql.algebra.event import Delta, Event
from sql.algebra.operator import FindEvent, Operator
from sql.errors import DataError
from sql.types import Saved


class KeyState(TypedDict):
    """The number of keys ever; of each instance its first event, its place and its state; the idle keys."""

    count: int
    instances: list[tuple[int, int, Saved]]
    reclaim: ReclaimState | None


@dataclass(slots=True, eq=False)
class KeyedInstance:
    """The operator of one key, the event that began it, and its place in the order of the keys."""

    key: Hashable
    operator: Operator
    first: Event
    order: int
    due_ms: int | None = None


class Key(Operator):
    """One instance of `make()` per key. Each instance posts its own partial updates.

    With `reclaim` instances untouched for longer than the age are dropped in a sweep that runs when an event
    arrives; what they held leaves through the remove stream. With `keys_max` the event of a further key
    raises `DataError`; it must then come alone.
    """

    def __init__(
        self,
        key: Callable[[Event], Hashable],
        make: Callable[[Hashable, Event], Operator],
        reclaim: Reclaim | None = None,
        keys_max: int | None = None,
    ) -> None:
        self.key = key
        self.make = make
        self.reclaim = reclaim
        self.keys_max = keys_max
        self.instances: dict[Hashable, KeyedInstance] = {}
        self.deadlines: Deadlines[KeyedInstance] = Deadlines()
        self.worked: dict[KeyedInstance, None] = {}
        """The instances that have worked in this step, which its end is told to."""
        self.count = 0
        self.departure = Removal.ANY

    def push(self, delta: Delta, now: int) -> list[Delta]:
        swept = self._sweep(now) if self.reclaim else []
        out = []
        for key, part in self._by_key(delta):
            instance = self.instances.get(key)
            is_new = instance is None
            if instance is None:
                if self.keys_max is not None and len(self.instances) >= self.keys_max:
                    raise too_many_keys(self.keys_max)
                instance = self._open(key, (part.inserted or part.removed)[0], self.count)
            if self.reclaim:
                self.reclaim.touch(key, now)
            self.worked[instance] = None
            try:
                out += instance.operator.push(part, now)
            except Exception:
                if is_new:
                    self._drop(instance)
                raise
            self._schedule(instance)
        if swept:
            # One update with what caused the sweep: the old rows belong to the step of that event.
            first = out[0] if out else Delta()
            merged = Delta(first.inserted, [*swept, *first.removed])
            return [merged, *out[1:]]
        return out

    def _by_key(self, delta: Delta) -> Iterable[tuple[Hashable, Delta]]:
        if len(delta.inserted) == 1 and not delta.removed:
            return ((self.key(delta.inserted[0]), delta),)
        parts: dict[Hashable, tuple[list[Event], list[Event]]] = {}
        for side, events in enumerate(delta):
            for event in events:
                parts.setdefault(self.key(event), ([], []))[side].append(event)
        return ((key, Delta(*part)) for key, part in parts.items())

    def _open(self, key: Hashable, event: Event, order: int) -> KeyedInstance:
        instance = self.instances[key] = KeyedInstance(key, self.make(key, event), event, order)
        self.count += 1
        return instance

    def _drop(self, instance: KeyedInstance) -> None:
        self.deadlines.move(instance, None)
        self.worked.pop(instance, None)
        del self.instances[instance.key]

    def _schedule(self, instance: KeyedInstance) -> None:
        deadline = instance.operator.next_deadline()
        self.deadlines.move(instance, deadline, instance.order)
        if deadline is None and instance.operator.is_blank():
            self._drop(instance)

    def _sweep(self, now: int) -> list[Event]:
        assert self.reclaim is not None
        out: list[Event] = []
        for key in self.reclaim.aged(now):
            instance = self.instances.get(key)
            if instance is not None:
                out += instance.operator.posted()
                self._drop(instance)
        return out

    def next_deadline(self) -> int | None:
        return self.deadlines.next_ms()

    def advance(self, now: int) -> list[Delta]:
        """The earliest instance that is due; the caller goes on while one is."""
        deadline = self.deadlines.next_ms()
        if deadline is None or deadline > now:
            return []
        instance = self.deadlines.pop()
        self.worked[instance] = None
        out = instance.operator.advance(now)
        self._schedule(instance)
        return out

    def depends_on(self, variable: str) -> bool:
        return any(instance.operator.depends_on(variable) for instance in self.instances.values())

    def variable_changed(self, now: int) -> list[Delta]:
        out: list[Delta] = []
        for instance in list(self.instances.values()):
            self.worked[instance] = None
            out += instance.operator.variable_changed(now)
            self._schedule(instance)
        return out

    def end_step(self) -> None:
        for instance in self.worked:
            instance.operator.end_step()
        self.worked.clear()

    def content(self) -> Iterable[Event]:
        return (event for instance in self.instances.values() for event in instance.operator.content())

    def held(self) -> Iterable[Event]:
        for instance in self.instances.values():
            is_held = False
            for event in instance.operator.held():
                is_held = is_held or event is instance.first
                yield event
            if not is_held:
                yield instance.first

    def view_from(self, event: Event) -> ContentView:
        instance = self.instances.get(self.key(event))
        return NOTHING if instance is None else instance.operator.view_from(event)

    def snapshot(self) -> KeyState:
        found = self.instances.values()
        return {
            "count": self.count,
            "instances": [(each.first.seq, each.order, each.operator.snapshot()) for each in found],
            "reclaim": self.reclaim.snapshot(list(self.instances)) if self.reclaim else None,
        }

    def restore(self, state: KeyState, find: FindEvent) -> None:
        keys = []
        for seq, order, part in state["instances"]:
            first = find(seq)
            instance = self._open(self.key(first), first, order)
            instance.operator.restore(part, find)
            keys.append(instance.key)
            self._schedule(instance)
        self.count = state["count"]
        if self.reclaim and state["reclaim"]:
            self.reclaim.restore(state["reclaim"], keys)


def too_many_keys(keys_max: int) -> DataError:
    """The reason why an event with one more key is refused."""
    return DataError(
        f"more than {keys_max} keys of groupwin; raise maxGroups (maxKeys of the stream) or reclaim idle ones"
    )


ReclaimState = tuple[int | None, list[tuple[int, int]]]
"""The next search; the keys by their places, with the instant of the last event of each."""


class Reclaim:
    """The keys idle for longer than `age_ms`; searched every `every_ms`, on arrivals."""

    def __init__(self, age_ms: int, every_ms: int) -> None:
        self.age_ms = age_ms
        self.every_ms = every_ms
        self.touched: dict[Hashable, int] = {}
        self.next_sweep_ms: int | None = None

    def touch(self, key: Hashable, now: int) -> None:
        self.touched.pop(key, None)
        self.touched[key] = now  # re-inserted: the dict stays in order of last touch

    def aged(self, now: int) -> list[Hashable]:
        """The keys to drop now; empty between sweeps."""
        if self.next_sweep_ms is None:
            self.next_sweep_ms = now + self.every_ms
        if now < self.next_sweep_ms:
            return []
        self.next_sweep_ms = now + self.every_ms
        out = []
        for key, last in self.touched.items():
            if now - last <= self.age_ms:
                break
            out.append(key)
        for key in out:
            del self.touched[key]
        return out

    def snapshot(self, keys: Sequence[Hashable]) -> ReclaimState:
        places = {key: index for index, key in enumerate(keys)}
        return (
            self.next_sweep_ms,
            [(places[key], last) for key, last in self.touched.items() if key in places],
        )

    def restore(self, state: ReclaimState, keys: Sequence[Hashable]) -> None:
        self.next_sweep_ms, touched = state
        self.touched = {keys[place]: last for place, last in touched}

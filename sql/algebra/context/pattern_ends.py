"""Events that end partitions, and patterns that start or end them.

What ends partitions is found by hash where it is correlated with them, once for all where it reads the event
alone, else one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from sql.algebra.buckets import Buckets, items_of
from sql.algebra.context.end_atoms import Atom
from sql.algebra.context.level_definitions import EventCondition
from sql.algebra.context.lifecycle import Lifecycle
from sql.algebra.context.partition import Arrival, Partition
from sql.algebra.context.pattern_watch import Match, PatternCondition, PatternWatch, Tell
from sql.algebra.event import Event


class EventEnds:
    """The partitions of one level that an event may end."""

    def __init__(self, point: EventCondition) -> None:
        self.point = point
        self.by_key: Buckets[Partition] = Buckets()
        self.others: dict[Partition, None] = {}
        """The partitions whose condition is not correlated."""

    def add(self, partition: Partition) -> None:
        """Watch for the end of a partition."""
        if self.point.partition_key is None:
            self.others[partition] = None
            return
        key = partition.end_key = self.point.partition_key(None, partition.row)
        if key is not None:
            self.by_key.add(key, partition)

    def discard(self, partition: Partition) -> None:
        """Watch for it no longer."""
        if self.point.partition_key is None:
            self.others.pop(partition, None)
        elif partition.end_key is not None:
            self.by_key.discard(partition.end_key, partition)

    def of(self, event: Event) -> Sequence[Partition]:
        """The partitions the event ends, in order of allocation."""
        find, passes = self.point.find, self.point.passes
        found: Sequence[Partition]
        if find is None:
            if not self.others or not (self.point.asks_each or passes is None or passes(event, ())):
                return ()
            found = tuple(self.others)
            if not self.point.asks_each:
                return found
        else:
            one = find(event, self.by_key.found)
            if one is None:
                return ()
            found = items_of(one)
        return found if passes is None else [item for item in found if passes(event, item.row)]


class AtomIndex:
    """The partitions that an event may matter to, by the filters of their patterns."""

    def __init__(self, atoms: Mapping[str, Sequence[Atom]]) -> None:
        self._ways: dict[str, list[tuple[Atom, Buckets[Partition] | None]]] = {
            stream: [(atom, None if atom.key is None else Buckets()) for atom in some]
            for stream, some in atoms.items()
        }

    def add(self, partition: Partition) -> list[Any]:
        """Note the partition at work; its keys."""
        keys = []
        for atom, found in self._found():
            assert atom.key is not None
            key = atom.key(None)
            keys.append(key)
            if key is not None:
                found.add(key, partition)
        return keys

    def discard(self, partition: Partition, keys: Iterable[Any]) -> None:
        """Forget a partition that was noted with these keys."""
        for (_, found), key in zip(self._found(), keys, strict=True):
            if key is not None:
                found.discard(key, partition)

    def _found(self) -> list[tuple[Atom, Buckets[Partition]]]:
        return [(atom, found) for some in self._ways.values() for atom, found in some if found is not None]

    def of(self, stream: str, row: object, everyone: Iterable[Partition]) -> Sequence[Partition]:
        """The partitions whose pattern an event may move, in order of allocation;
        `everyone`: all in that order."""
        reached: dict[Partition, None] = {}
        for atom, found in self._ways.get(stream, ()):
            if not atom.passes(row):
                continue
            if found is None or atom.find is None:
                return tuple(everyone)
            reached |= dict.fromkeys(items_of(atom.find(row, found.found)))
        return sorted(reached, key=attrgetter("id"))


class PatternStart:
    """The pattern that starts partitions of one level, while it is watched."""

    def __init__(self, point: PatternCondition, fail: Tell, moved: Callable[[int | None], None]) -> None:
        """`moved` gets the instant at which time may complete it."""
        self.point = point
        self.fail = fail
        self.moved = moved
        self.watch: PatternWatch | None = None

    def begin(self, now_ms: int) -> list[Match]:
        """Watch for it anew; the matches that are there at once."""
        self.watch = PatternWatch(self.point, (), self.fail)
        return self._moved(self.watch.start(now_ms))

    def enter(self, arrival: Arrival) -> list[Match]:
        """The matches that an event completes."""
        if self.watch is None:
            return []
        return self._moved(self.watch.enter(arrival.stream, arrival.event.row, arrival.now_ms))

    def advance(self, now_ms: int) -> list[Match]:
        """The matches that time completes."""
        return [] if self.watch is None else self._moved(self.watch.advance(now_ms))

    def stop(self) -> None:
        """Watch for it no longer."""
        if self.watch is not None:
            self.watch.pattern.quit()
            self.watch = None

    def _moved(self, matches: list[Match]) -> list[Match]:
        """The matches; the level's deadline is that of the pattern."""
        assert self.watch is not None
        self.moved(self.watch.pattern.deadline())
        return matches

    def snapshot(self) -> dict[str, Any] | None:
        return None if self.watch is None else self.watch.pattern.snapshot()

    def restore(self, state: dict[str, Any] | None, now_ms: int) -> None:
        """Put a snapshot back."""
        if state is not None:
            self.watch = PatternWatch(self.point, (), self.fail)
            self.watch.restore(state, now_ms)


class PatternEnds:
    """The patterns that may end the partitions of one level."""

    def __init__(self, point: PatternCondition, life: Lifecycle) -> None:
        self.point = point
        self.life = life
        self.watches: dict[Partition, PatternWatch] = {}
        self.index = AtomIndex(point.atoms)

    def watch(self, partition: Partition, now_ms: int) -> None:
        """Watch for the end of a partition just started, which may be there at once."""
        watch = self.watches[partition] = PatternWatch(self.point, partition.row, self.life.bodies.fail)
        matches = watch.start(now_ms)
        watch.keys = self.index.add(partition)
        self._ended_by(partition, watch, matches, now_ms)

    def forget(self, partition: Partition) -> None:
        """The partition has ended."""
        watch = self.watches.pop(partition, None)
        if watch is not None:
            watch.pattern.quit()
            self.index.discard(partition, watch.keys)

    def reached(self, stream: str, row: object) -> Sequence[Partition]:
        """The partitions whose pattern an event may move, in order of allocation."""
        return self.index.of(stream, row, self.watches)

    def enter_all(self, arrival: Arrival) -> None:
        """An event may complete the pattern of any partition."""
        for partition in self.reached(arrival.stream, arrival.event.row):
            self.enter(partition, arrival)

    def enter(self, partition: Partition, arrival: Arrival) -> bool:
        """True if an event completes the pattern of a partition, which has ended then."""
        watch = self.watches.get(partition)
        if watch is None or arrival.stream not in self.point.atoms:
            return False
        matches = watch.enter(arrival.stream, arrival.event.row, arrival.now_ms)
        return self._ended_by(partition, watch, matches, arrival.now_ms)

    def advance(self, partition: Partition, now_ms: int) -> None:
        """Time may complete the pattern of a partition."""
        watch = self.watches.get(partition)
        if watch is not None:
            self._ended_by(partition, watch, watch.advance(now_ms), now_ms)

    def _ended_by(self, partition: Partition, watch: PatternWatch, matches: list[Match], now_ms: int) -> bool:
        if not matches:
            self.life.move_end(partition, watch.pattern.deadline())
            return False
        self.life.bodies.settle()
        self.point.keep(matches[0], partition.values)
        self.life.end(partition, now_ms)
        return True

    def snapshot(self, partition: Partition) -> dict[str, Any] | None:
        watch = self.watches.get(partition)
        return None if watch is None else watch.pattern.snapshot()

    def restore(self, partition: Partition, state: dict[str, Any], now_ms: int) -> None:
        """Put a pattern back."""
        watch = self.watches[partition] = PatternWatch(self.point, partition.row, self.life.bodies.fail)
        watch.restore(state, now_ms)
        watch.keys = self.index.add(partition)

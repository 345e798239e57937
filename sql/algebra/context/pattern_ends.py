"""Patterns that start or end partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sql.algebra.context.end_atoms import Atom, AtomIndex
from sql.algebra.pattern import Pattern, PatternBuilder
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.functions.definition import Context
from sql.rows import as_dict, as_dicts
from sql.types import Saved

if TYPE_CHECKING:
    from sql.algebra.context.level import Arrival, Level
    from sql.algebra.context.lifecycle import Lifecycle
    from sql.algebra.context.partition import Partition

Row = Sequence[Any]
Match = tuple[Any, ...]

Tell = Callable[[Any, BaseException, int], None]
"""Called for an error of evaluation: with the event,
or None if the pattern goes on without the part that failed, and the instant."""


@dataclass(slots=True)
class PatternCondition:
    """A pattern, watched by machines of its own: one per partition that it may end, one per
    level that it may start.

    builder    makes the machines
    functions  those of all machines, which read `clock` and, of the partition that is watched, `at_work`
    atoms      what an event must fulfil to matter, by stream
    tags       per tag: its name, the stream of its events,
               and the place it is kept at (None: under the name of all)
    place      where the whole match is kept, if it has a name
    inclusive  whether its tagged events count in the partition it starts
    """

    builder: PatternBuilder
    functions: FunctionSet
    clock: Context
    at_work: list[Any]
    atoms: dict[str, tuple[Atom, ...]]
    tags: tuple[tuple[str, str, int | None], ...]
    place: int | None = None
    inclusive: bool = False

    def keep(self, match: Match, values: list[Any]) -> None:
        """Put the events of a match among the partition's values."""
        found = [_shown(value) for value in match]
        if self.place is not None:
            values[self.place] = {tag: value for (tag, _, _), value in zip(self.tags, found, strict=True)}
            return
        for (_, _, place), value in zip(self.tags, found, strict=True):
            if place is not None:
                values[place] = value

    def counted(self, match: Match) -> Iterator[tuple[str, Any]]:
        """The stream and row of each event that counts in the partition it starts, in
        the order of the tags."""
        if not self.inclusive:
            return
        for (_, stream, _), value in zip(self.tags, match, strict=True):
            rows = value if isinstance(value, list) else [value]
            yield from ((stream, row) for row in rows if row is not None)


class PatternWatch:
    """A pattern that is watched, for a partition with these properties."""

    __slots__ = ("keys", "pattern", "point", "row", "tell")

    def __init__(self, point: PatternCondition, row: Row, tell: Tell) -> None:
        self.point = point
        self.row = row
        self.tell = tell
        self.pattern: Pattern = point.builder.pattern()
        self.keys: Sequence[Any] = ()
        """The keys by which events find the partition."""

    def start(self, now_ms: int) -> list[Match]:
        """Begin; the matches that are there at once."""
        self._begin(now_ms)
        return self._told(self.pattern.start(now_ms), now_ms)

    def enter(self, stream: str, row: Any, now_ms: int) -> list[Match]:
        """The matches that an event completes. Raises DataError before anything has changed."""
        self._begin(now_ms)
        try:
            found = self.pattern.enter(stream, row, now_ms)
        except DATA_ERRORS as error:
            raise self.point.functions.failure(error) from error
        return self._told(found, now_ms)

    def advance(self, now_ms: int) -> list[Match]:
        """The matches that time completes."""
        self._begin(now_ms)
        return self._told(self.pattern.advance(now_ms), now_ms)

    def restore(self, state: Saved, now_ms: int) -> None:
        """Put a snapshot back into a pattern just made."""
        self._begin(now_ms)
        self.pattern.restore(state, lambda row: row)

    def _begin(self, now_ms: int) -> None:
        self.point.clock.now_ms = now_ms
        self.point.at_work[:] = self.row

    def _told(self, matches: list[Match], now_ms: int) -> list[Match]:
        if self.pattern.has_failed:
            for error in self.pattern.failures():
                self.tell(None, self.point.functions.failure(error), now_ms)
        return matches


class PatternStart:
    """The pattern that starts partitions of one level, while it is watched."""

    def __init__(self, point: PatternCondition, level: Level) -> None:
        self.point = point
        self.level = level
        self.watch: PatternWatch | None = None

    def begin(self, now_ms: int) -> list[Match]:
        """Watch for it anew; the matches that are there at once."""
        self.watch = PatternWatch(self.point, (), self.level.life.bodies.fail)
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
        due_ms = self.watch.pattern.deadline()
        if due_ms != self.level.due_ms:
            self.level.due_ms = due_ms
            if due_ms is not None:
                self.level.life.timers.start(self.level)
        return matches

    def snapshot(self) -> Saved:
        return None if self.watch is None else self.watch.pattern.snapshot()

    def restore(self, state: Saved, now_ms: int) -> None:
        """Put a snapshot back."""
        if state is not None:
            self.watch = PatternWatch(self.point, (), self.level.life.bodies.fail)
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

    def snapshot(self, partition: Partition) -> Saved:
        watch = self.watches.get(partition)
        return None if watch is None else watch.pattern.snapshot()

    def restore(self, partition: Partition, state: Saved, now_ms: int) -> None:
        """Put a pattern back."""
        watch = self.watches[partition] = PatternWatch(self.point, partition.row, self.life.bodies.fail)
        watch.restore(state, now_ms)
        watch.keys = self.index.add(partition)


def _shown(value: object) -> Any:
    if value is None:
        return None
    return as_dicts(value) if isinstance(value, list) else as_dict(value)

"""Patterns that start or end partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sql.algebra.pattern import Pattern
from sql.rows import as_dict, as_dicts

Row = Sequence[Any]
Match = tuple[Any, ...]


@dataclass(slots=True)
class PatternCondition:
    """A pattern, watched by machines of its own: one per partition that it may end, one per
    level that it may start.

    make       a machine for a partition with these properties
    tags       per tag: its name, the stream of its events, and the place it is kept at (None: under the name of all)
    place      where the whole match is kept, if it has a name
    inclusive  whether its tagged events count in the partition it starts
    """

    make: Callable[[Row], Pattern]
    streams: frozenset[str]
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


class PatternEnds:
    """The patterns that may end the partitions of one level."""

    def __init__(self, point: PatternCondition) -> None:
        self.point = point
        self.patterns: dict[Any, Pattern] = {}

    def watch(self, partition: Any, now_ms: int) -> Match | None:
        """Begin to watch for the end of a partition; a match that is there at once."""
        pattern = self.patterns[partition] = self.point.make(partition.row)
        return next(iter(pattern.start(now_ms)), None)

    def forget(self, partition: Any) -> None:
        """The partition has ended."""
        pattern = self.patterns.pop(partition, None)
        if pattern is not None:
            pattern.quit()

    def enter(self, partition: Any, stream: str, row: object, now_ms: int) -> Match | None:
        """An event for the pattern of a partition; the match that ends it."""
        pattern = self.patterns.get(partition)
        return None if pattern is None else next(iter(pattern.enter(stream, row, now_ms)), None)

    def advance(self, partition: Any, now_ms: int) -> Match | None:
        """Time for the pattern of a partition; the match that ends it."""
        pattern = self.patterns.get(partition)
        return None if pattern is None else next(iter(pattern.advance(now_ms)), None)

    def deadline(self, partition: Any) -> int | None:
        """When the pattern of a partition has something to do."""
        pattern = self.patterns.get(partition)
        return None if pattern is None else pattern.deadline()

    def snapshot(self, partition: Any) -> Any:
        pattern = self.patterns.get(partition)
        return None if pattern is None else pattern.snapshot()

    def restore(self, partition: Any, state: Any) -> None:
        """Put a pattern back."""
        pattern = self.patterns[partition] = self.point.make(partition.row)
        pattern.restore(state, lambda row: row)


def _shown(value: object) -> Any:
    if value is None:
        return None
    return as_dicts(value) if isinstance(value, list) else as_dict(value)

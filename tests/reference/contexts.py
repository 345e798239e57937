"""Contexts by the book: the live partitions are a list, each event asks all of them,
sums are made from all rows.

What is computed is `select context.id, count(*), sum(n) from E` with each event, or `count(*), sum(n)` as the
report at a partition's end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Fits = Callable[[str, Row], bool]


@dataclass
class Partition:
    """A live partition. `due`: when time ends it."""

    id: int
    key: Any = None
    begun_by: Row | None = None
    due: int | None = None
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Condition:
    """A start or an end: an event (with the row that began the partition), or so many ms
    after the watch began."""

    text: str
    fits: Callable[[str, Row, Row | None], bool] = lambda stream, row, begun_by: False
    after: int | None = None


class Context(ABC):
    """The partitions of one context, from the deployment of the only statement at 0 on."""

    def __init__(self, *, reports: bool) -> None:
        self.reports = reports
        self.live: list[Partition] = []
        self.ids = 0
        self.now = 0
        self.out: list[tuple[int, Row]] = []
        self.begin()

    def begin(self) -> None:
        """What is there from the start."""

    @abstractmethod
    def event(self, stream: str, row: Row) -> None:
        """An event arrives now."""

    def offer(self, stream: str, row: Row) -> None:
        """The event that began what is around: it ends nothing here."""
        self.event(stream, row)

    def ended(self) -> None:
        """Time has ended a partition."""

    def send(self, stream: str, row: Row, now: int) -> list[tuple[int, Row]]:
        """An event; what is given out until then and because of it."""
        self.advance(now)
        self.event(stream, row)
        out, self.out = self.out, []
        return out

    def advance(self, now: int) -> None:
        """Time goes on through every due instant; at one instant older partitions end first."""
        while due := [each for each in self.live if each.due is not None and each.due <= now]:
            first = min(due, key=lambda each: (each.due, each.id))
            assert first.due is not None
            self.now = first.due
            self.end(first)
            self.ended()
        self.now = now

    def allocate(self, key: Any = None, begun_by: Row | None = None, after: int | None = None) -> Partition:
        made = Partition(self.ids, key, begun_by, None if after is None else self.now + after)
        self.ids += 1
        self.live.append(made)
        return made

    def end(self, partition: Partition) -> None:
        self.live.remove(partition)
        if self.reports:
            self.out.append((self.now, _sums(partition)))

    def give(self, partition: Partition, stream: str, row: Row) -> None:
        if stream != "E":
            return
        partition.rows.append(row)
        if not self.reports:
            self.out.append((self.now, {"i": partition.id, **_sums(partition)}))


def _sums(partition: Partition) -> Row:
    values = [row["n"] for row in partition.rows if row["n"] is not None]
    return {"c": len(partition.rows), "s": sum(values) if values else None}


class Segmented(Context):
    """`partition by`, `coalesce by`: `key` of an event of E; `end`, where partitions end."""

    def __init__(self, key: Callable[[Row], Any], end: Condition | None, *, reports: bool) -> None:
        self.key, self.until = key, end
        super().__init__(reports=reports)

    def event(self, stream: str, row: Row) -> None:
        if stream != "E":
            for each in [
                each for each in self.live if self.until and self.until.fits(stream, row, each.begun_by)
            ]:
                self.end(each)
            return
        mine = next((each for each in self.live if each.key == self.key(row)), None)
        if mine is not None and self.until and self.until.fits(stream, row, None):
            self.end(mine)
            return
        if mine is None:
            mine = self.allocate(self.key(row), after=None if self.until is None else self.until.after)
        self.give(mine, stream, row)


class Categories(Context):
    """`group by`: a partition per label, always there."""

    def __init__(self, labels: tuple[Callable[[Row], bool], ...], *, reports: bool) -> None:
        self.labels = labels
        super().__init__(reports=reports)

    def begin(self) -> None:
        for place in range(len(self.labels)):
            self.allocate(place)

    def event(self, stream: str, row: Row) -> None:
        for each, fits in zip(self.live, self.labels, strict=True):
            if stream == "E" and fits(row):
                self.give(each, stream, row)


class Span(Context):
    """`start … end`: one partition at most. `first` None: `start @now`."""

    def __init__(self, first: Condition | None, end: Condition | None, *, reports: bool) -> None:
        self.first, self.until = first, end
        super().__init__(reports=reports)

    def begin(self) -> None:
        if self.first is None:
            self._start()

    ended = begin

    def _start(self) -> Partition:
        return self.allocate(after=None if self.until is None else self.until.after)

    def event(self, stream: str, row: Row) -> None:
        if self.live and self.until is not None and self.until.fits(stream, row, None):
            self.end(self.live[0])
            if self.first is None:
                self._start()
            self.offer(stream, row)
        elif not self.live:
            self.offer(stream, row)
        else:
            self.give(self.live[0], stream, row)

    def offer(self, stream: str, row: Row) -> None:
        if not self.live and self.first is not None and self.first.fits(stream, row, None):
            self._start()
        for each in self.live:
            self.give_first(each, stream, row)

    def give_first(self, partition: Partition, stream: str, row: Row) -> None:
        """The event that began a partition counts in it."""
        self.give(partition, stream, row)


class Within(Span):
    """A span whose partitions each hold a context of their own;
    the statement runs in the partitions of that."""

    def __init__(
        self,
        first: Condition | None,
        end: Condition | None,
        inner: Callable[[bool], Context],
        *,
        reports: bool,
    ) -> None:
        self.inner = inner
        self.counted = 0
        super().__init__(first, end, reports=reports)

    def allocate(self, key: Any = None, begun_by: Row | None = None, after: int | None = None) -> Partition:
        made = super().allocate(key, begun_by, after)
        self.inside = self.inner(self.reports)
        for each in self.inside.live:
            each.id += self.counted
        self.inside.ids += self.counted
        return made

    def give(self, partition: Partition, stream: str, row: Row) -> None:
        self.out += self.inside.send(stream, row, self.now)

    def give_first(self, partition: Partition, stream: str, row: Row) -> None:
        self.inside.now = self.now
        self.inside.offer(stream, row)
        self.out += self.inside.out
        self.inside.out = []

    def end(self, partition: Partition) -> None:
        self.live.remove(partition)
        self.counted, self.inside.now = self.inside.ids, self.now
        for each in list(self.inside.live):
            self.inside.end(each)
        self.out += self.inside.out


class Overlapping(Context):
    """`initiated … terminated …`: each start allocates."""

    def __init__(self, first: Condition, end: Condition | None, *, reports: bool) -> None:
        self.first, self.until = first, end
        super().__init__(reports=reports)

    def event(self, stream: str, row: Row) -> None:
        for each in [
            each for each in self.live if self.until and self.until.fits(stream, row, each.begun_by)
        ]:
            self.end(each)
        before = list(self.live)
        if self.first.fits(stream, row, None):
            made = self.allocate(begun_by=row, after=None if self.until is None else self.until.after)
            self.give(made, stream, row)
        for each in before:
            self.give(each, stream, row)

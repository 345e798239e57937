"""When queries have something to do."""

from __future__ import annotations

from collections.abc import Mapping

from sql.algebra.deadlines import Deadlines
from sql.engine.query import Running


class Timer:
    """The deadline of one query, and its rank among those of one instant: higher priorities come first, then
    those deployed earlier."""

    __slots__ = ("due_ms", "name", "rank")

    def __init__(self, name: str, rank: tuple[int, int]) -> None:
        self.name = name
        self.rank = rank
        self.due_ms: int | None = None


class Timers:
    """The deadlines of queries, by name; each has a place in the order in which those of one instant fire."""

    def __init__(self, queries: Mapping[str, Running], order: Mapping[str, int]) -> None:
        self.queries = queries
        self.order = order
        self.suspended: set[str] = set()
        """Rules whose timers rest after a defect, until events come again."""
        self.by_name: dict[str, Timer] = {}
        self.deadlines: Deadlines[Timer] = Deadlines()
        """A query stands at its deadline or before: one that is found too early is put where it belongs."""
        self._changed: dict[str, None] = {}
        """Queries whose deadline may have changed: it is read once, before the earliest one is, however many
        events they have taken since."""

    def schedule(self, name: str) -> None:
        """Note that a query may have something else to do next."""
        self._changed[name] = None

    def schedule_all(self) -> None:
        """Note it of every query."""
        for name in self.queries:
            self.schedule(name)

    def remove(self, name: str) -> None:
        """A query is gone."""
        self.suspended.discard(name)
        timer = self.by_name.pop(name, None)
        if timer is not None:
            self.deadlines.move(timer, None)

    def _update(self) -> None:
        """Read the deadlines of the queries that have changed."""
        for name in self._changed:
            query = None if name in self.suspended else self.queries.get(name)
            deadline = None if query is None else query.next_deadline()
            if query is not None and deadline is not None:
                timer = self.by_name.get(name) or self._timer(name, query)
                self.deadlines.move(timer, deadline, *timer.rank)
        self._changed.clear()

    def _timer(self, name: str, query: Running) -> Timer:
        timer = self.by_name[name] = Timer(name, (-query.plan.priority, self.order[name]))
        return timer

    def next_ms(self) -> int | None:
        """The earliest instant of the processing clock at which a query has something to do."""
        if self._changed:
            self._update()
        while (timer := self.deadlines.first()) is not None:
            query = self.queries.get(timer.name)
            deadline = None if query is None else query.next_deadline()
            if deadline == timer.due_ms:
                return deadline
            self.deadlines.move(timer, deadline, *timer.rank)
        return None

    def due(self, instant: int) -> list[str]:
        """The queries due at or before `instant`, which have no deadline then, in their order."""
        found = []
        while (deadline := self.next_ms()) is not None and deadline <= instant:
            found.append(self.deadlines.pop().name)
        return found

"""Families: rules alike but for their names and the values they demand of a column. One loop serves them all.

    dev = 'p1' ─┐
    dev = 'p2' ─┼─ one look into a dictionary per event, then one loop over (event, rule)
    dev = 'p3' ─┘

The dictionary decides the condition that the loop leaves out.
An event that fails in the loop is done again by its rule's own code, which reports it.
Each rule keeps its own state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from math import inf
from typing import Any

from sql.algebra.sample.core import Core
from sql.algebra.sample.instance import Instance
from sql.codegen.source import Generated

UNTOLD_MAX = 10_000
"""After so many events rules with windows are given their number."""


@dataclass(frozen=True, slots=True)
class Kin:
    """The common parts of the rules of a family; equal signatures make one family."""

    signature: Any
    found: Callable[[], Family]
    """Makes a family without rules."""


class Family(ABC):
    """The rules by the value that each demands, which no other rule of the family does."""

    def __init__(self) -> None:
        self.by_value: dict[Any, Any] = {}
        """The argument of the loop beside an event, by value."""
        self.values: dict[str, tuple[Any, ...]] = {}
        """By rule the values it demands."""
        self.met: Counter[Any] = Counter()
        """The number of events since the last reconciling, by the loop's argument."""

    def add(self, name: str, values: Iterable[Any], query: object) -> None:
        """Add a rule, and the values it demands."""
        self.values[name] = tuple(values)
        self.by_value.update(dict.fromkeys(self.values[name], self.given_for(query)))

    @abstractmethod
    def given_for(self, query: Any) -> Any:
        """The argument of the loop beside the events of a rule."""

    def route(self, rows: Sequence[Any], values: Sequence[Any], at: Any, out: list[Any]) -> None:
        """Run the rules over their events, all at the instant `at`,
        or in event time with `at` the instants of each. The values are of the column's kind, or NULL."""
        found = list(map(self.by_value.get, values))
        given = list(filter(None, found))
        if not given:
            return
        if len(given) < len(rows):
            rows = list(compress(rows, found))
            at = at if at.__class__ is int else list(compress(at, found))
        self.met.update(given)
        self.run(given, rows, at, out)

    @abstractmethod
    def run(self, given: list[Any], rows: Sequence[Any], at: Any, out: list[Any]) -> None:
        """Run the loop over events that rules of the family demand."""

    def take_woken(self) -> list[str]:
        """The rules that may have a new deadline since the last call."""
        return []

    @abstractmethod
    def reconcile(self) -> dict[str, int]:
        """Add the work of the family to its rules; returns the number of events each has met."""


class RowFamily(Family):
    """Rules of one row per event. `pour` is the loop; `is_open`: whether every event it gets comes out,
    because there is no further condition."""

    def __init__(self, pour: Callable[..., list[tuple[Any, Any]]], is_open: bool) -> None:
        super().__init__()
        self.pour = pour
        self.is_open = is_open
        self.queries: dict[str, Any] = {}
        self.given: Counter[str] = Counter()
        """Emissions by rule since the last reconciling."""

    def given_for(self, query: Any) -> Any:
        self.queries[query.name] = query
        return query

    def run(self, given: list[Any], rows: Sequence[Any], at: Any, out: list[Any]) -> None:
        before = len(out)
        failed = self.pour(rows, given, at, out)
        if not self.is_open:
            self.given.update([emission.rule for emission in islice(out, before, None)])
        for query, row in failed:
            query.again(row, at, out)

    def reconcile(self) -> dict[str, int]:
        met = {name: self.met.pop(query, 0) for name, query in self.queries.items()}
        for name, query in self.queries.items():
            query.counts["rows_out"] += met[name] - query.failed if self.is_open else self.given.pop(name, 0)
            query.failed = 0
        return met


class WindowFamily(Family):
    """Rules over tumbling or hopping windows; the loop is given their cores."""

    def __init__(self, code: Generated, *, is_timed: bool) -> None:
        """`code` has the loop. `is_timed`: it takes the instant of each event, and does what is due
        among them."""
        super().__init__()
        self.code = code
        self.enter = code["enter_each"]
        self.is_timed = is_timed
        self.queries: dict[Core, Any] = {}
        self.untold = 0
        """The number of events that the rules have not counted yet."""
        self.last_ms: dict[Core, int] = {}
        """The instant of the newest of them."""
        self.told: Counter[str] = Counter()
        """By rule the events that it has counted since the last reconciling."""
        self.batch: dict[Core, None] = {}
        self.due_ms: float = inf
        """The instant before which nothing is due in a window of the batch."""
        self.stirred: set[Core] = set()
        """Cores of the batch that may have emitted rows."""
        self.woken: set[Core] = set()

    def given_for(self, query: Any) -> Core:
        core: Core = query.core
        self.queries[core] = query
        return core

    def run(self, given: list[Any], rows: Sequence[Any], at: Any, out: list[Any]) -> None:
        self.batch = dict.fromkeys(given)
        if self.is_timed and at.__class__ is int:
            at = (at,) * len(given)
        self.last_ms.update(zip(given, at, strict=True) if self.is_timed else dict.fromkeys(given, at))
        self.due_ms = self._earliest()
        self.enter(self, given, rows, at)
        if self.stirred:
            for core in sorted(self.stirred, key=list(self.queries).index):
                out += self.queries[core].take()
            self.stirred.clear()
        self.untold += len(given)
        if self.untold >= UNTOLD_MAX:
            self._tell()

    def _earliest(self) -> float:
        return min(core.instances.due_ms for core in self.batch)

    # --- what the loop calls --------------------------------------------------------------------------------

    def step(self, at_ms: int) -> float:
        """Do what is due in the windows of the batch; when something is due next."""
        for core in self.batch:
            if core.instances.due_ms <= at_ms:
                core.step(at_ms)
                self.stirred.add(core)
                self.woken.add(core)
        self.due_ms = self._earliest()
        return self.due_ms

    def open(self, core: Core, p: Instance, at_ms: int) -> float:
        """The first event of a window has come; when something is due next."""
        self.woken.add(core)
        self.due_ms = min(self.due_ms, core.open(p, at_ms))
        return self.due_ms

    def again(self, core: Core, row: object, at_ms: int) -> None:
        """An event has failed: its rule's own code does it again, and reports it."""
        core.enter((row,), (at_ms,) if self.is_timed else at_ms)
        self.stirred.add(core)
        self.woken.add(core)

    # --- counts for the rules -------------------------------------------------------------------------------

    def take_woken(self) -> list[str]:
        names = [self.queries[core].name for core in self.woken]
        self.woken.clear()
        return names

    def _tell(self) -> None:
        """Give the rules the number of events that have come, so that their contents fold them in time."""
        for core, count in self.met.items():
            query = self.queries[core]
            query.now_ms = max(query.now_ms, self.last_ms[core])
            self.told[query.name] += count
            core.content.note_came(count, core.parts)
        self.met.clear()
        self.last_ms.clear()
        self.untold = 0

    def reconcile(self) -> dict[str, int]:
        self._tell()
        told, self.told = self.told, Counter()
        return told

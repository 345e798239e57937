"""An estimate of the memory of rules and contexts: their objects are walked and their sizes added up.

Large containers are sampled. Objects shared by all rules (the catalog, modules, classes, code) are left out;
windows that several rules share are part of each. What a rule holds in the partitions of a context is part of
the context, which is estimated by some of its partitions. Short-lived objects, such as the batch under way,
belong to no rule: the process takes more than the sum.

A walk stops after some objects and goes on at the next look, so that the loop never waits for a large rule.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sql.engine.context.host import ContextHost
    from sql.engine.engine import Engine

SAMPLED = 100
"""The number of sampled entries of a container; the others are taken to be like them."""

OBJECTS_AT_ONCE = 500
"""Objects walked at one look: the loop waits for them, about a millisecond."""

AGAIN_MS = 10_000
"""A round through all rules and contexts begins once in this time at most, however many questions come."""

_SHARED = (type, types.ModuleType, types.BuiltinFunctionType, types.CodeType)

Walk = Generator[None, None, int]
"""A walk that stops after each object; its result is a number of bytes."""


def footprint(root: object, shared: Iterable[object] = ()) -> int:
    """Bytes of `root` and all that only it leads to; `shared` objects and what they lead to are left out.

    >>> text = "x" * 951
    >>> footprint([text, text]) == sys.getsizeof([text, text]) + 1000
    True
    """
    return completed(walk(root, set(map(id, shared))))


def completed(walked: Walk) -> int:
    """The result of a walk that need not stop."""
    while True:
        try:
            next(walked)
        except StopIteration as end:
            return int(end.value)


def walk(root: object, seen: set[int]) -> Walk:
    """Bytes of `root` and all that it leads to, but for objects whose `id` has been seen."""
    total = 0.0
    waiting: list[tuple[Any, float]] = [(root, 1.0)]
    while waiting:
        thing, times = waiting.pop()
        if id(thing) in seen or isinstance(thing, _SHARED):
            continue
        seen.add(id(thing))
        total += times * sys.getsizeof(thing)
        waiting += _parts(thing, times)
        yield
    return int(total)


def walk_each(things: Sequence[object], shared: Iterable[object] = ()) -> Walk:
    """Bytes that each of several like things adds to the others. What the first of them leads to as well is
    counted where there is no other; the tables in which they stand are not.

    >>> common = "x" * 951
    >>> rows = [(common, str(number) * 951) for number in range(9)]
    >>> completed(walk_each(rows)) == sys.getsizeof((1, 2)) + 1000
    True
    """
    seen = set(map(id, shared))
    first = others = 0
    for number, thing in enumerate(things):
        size = yield from walk(thing, seen)
        first, others = (first, others + size) if number else (size, 0)
    return others // (len(things) - 1) if len(things) > 1 else first


def _parts(thing: object, times: float) -> Iterator[tuple[Any, float]]:
    """The objects that an object refers to, each with the number of objects that it stands for."""
    if isinstance(thing, types.FunctionType):  # its globals are those of a module
        return ((cell, times) for cell in thing.__closure__ or ())
    if isinstance(thing, dict | list | tuple | set | frozenset | deque) and len(thing) > SAMPLED:
        step = len(thing) // SAMPLED
        times *= len(thing) / len(range(0, len(thing), step))
        entries = thing.items() if isinstance(thing, dict) else ((entry,) for entry in thing)
        return ((part, times) for entry in islice(entries, 0, None, step) for part in entry)
    return ((part, times) for part in gc.get_referents(thing))


class Memory:
    """The bytes of each rule, and of a partition of each context. A round through all of them goes on at each
    look."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.known: dict[str, int] = {}
        """Bytes by the names of queries."""
        self._round: Iterator[None] | None = None
        self._again_ms = 0

    def look(self, now_ms: int) -> bool:
        """Walk some objects; True if there are more for the next look."""
        if self._round is None:
            if now_ms < self._again_ms:
                return False
            self._round, self._again_ms = self._through_all(), now_ms + AGAIN_MS
        if sum(1 for _ in islice(self._round, OBJECTS_AT_ONCE)) < OBJECTS_AT_ONCE:
            self._round = None
        return self._round is not None

    def of_context(self, host: ContextHost) -> int:
        """The bytes of all partitions of a context."""
        return self.known.get(host.name, 0) * len(host.life.live)

    def _through_all(self) -> Iterator[None]:
        queries = self._engine.queries
        for name in list(queries):
            if name in queries:
                self.known[name] = yield from self._walk(name)
        self.known = {name: size for name, size in self.known.items() if name in queries}

    def _walk(self, name: str) -> Walk:
        roster, common = self._engine.roster, self._engine.common
        if name in roster.hosts:
            return walk_partitions(roster.hosts[name], common)
        member = roster.members.get(name)
        of_context = () if member is None else (member.host, *vars(member.host).values())
        return walk(roster.queries[name], set(map(id, (*common, *of_context))))


def walk_partitions(host: ContextHost, common: Iterable[object]) -> Walk:
    """The bytes of a live partition, with the state of all rules in it."""
    sample = list(islice(host.life.live, SAMPLED))
    levels = [item.level for item in sample]
    statements = [part for member in host.members.values() for part in (member, member.cells, member.code)]
    return walk_each(sample, [*common, host, *vars(host).values(), *levels, *statements])

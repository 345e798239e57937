"""An estimate of the memory of a rule: its objects are walked and their sizes added up.

Large containers are sampled, so a million groups are estimated in some ten milliseconds. Objects shared
by all rules (the catalog, modules, classes, code) are left out; windows that several rules share are part of
each. Short-lived objects, such as the batch under way, belong to no rule: the process takes more
than the sum.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

SAMPLED = 100
"""The number of sampled entries of a container; the others are taken to be like them."""

OBJECTS_AT_ONCE = 5_000
"""Objects walked for one request: the loop waits for them, some milliseconds. The rules come first that
were not walked for the longest time; one at least is walked to its end."""

AGAIN_MS = 10_000
"""Known footprints are brought up to date once in this time, however many requests come."""

_SHARED = (type, types.ModuleType, types.BuiltinFunctionType, types.CodeType)


def footprint(root: object, shared: Iterable[object] = ()) -> int:
    """Bytes of `root` and all that only it leads to; `shared` objects and what they lead to are left out.

    >>> text = "x" * 951
    >>> footprint([text, text]) == sys.getsizeof([text, text]) + 1000
    True
    """
    return _walked(root, shared)[0]


def _walked(root: object, shared: Iterable[object]) -> tuple[int, int]:
    """`footprint`, and the number of objects walked."""
    total, left_out = 0.0, set(map(id, shared))
    seen = set(left_out)
    waiting: list[tuple[Any, float]] = [(root, 1.0)]
    while waiting:
        thing, times = waiting.pop()
        if id(thing) in seen or isinstance(thing, _SHARED):
            continue
        seen.add(id(thing))
        total += times * sys.getsizeof(thing)
        waiting += _parts(thing, times)
    return int(total), len(seen) - len(left_out)


def footprint_of_each(things: Sequence[object], shared: Iterable[object] = ()) -> int | None:
    """Bytes that each of several like things adds to the others; None for fewer than two.

    What all of them lead to is left out, and so are the tables in which they stand.

    >>> common = "x" * 951
    >>> rows = [(common, str(number) * 951) for number in range(9)]
    >>> footprint_of_each(rows) == sys.getsizeof((1, 2)) + 1000
    True
    """
    sample = things[:SAMPLED]
    if len(sample) < 2:
        return None
    seen = list(shared)
    more, first = (footprint(list(part), seen) - sys.getsizeof(list(part)) for part in (sample, sample[:1]))
    return (more - first) // (len(sample) - 1)


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


class RuleMemory:
    """The footprints of the rules, the oldest of them brought up to date now and then."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        """Bytes by rule."""
        self._again_ms = 0

    def look(self, rules: Mapping[str, object], shared: Iterable[object], now_ms: int) -> Mapping[str, int]:
        """Bytes by rule. Some are from an earlier question; of many or large rules some are still missing."""
        self.known = {name: size for name, size in self.known.items() if name in rules}
        if now_ms < self._again_ms and len(self.known) == len(rules):
            return self.known
        self._again_ms = now_ms + AGAIN_MS
        looked = 0
        for name in [*(name for name in rules if name not in self.known), *self.known]:
            size, objects = _walked(rules[name], shared)
            self.known.pop(name, None)
            self.known[name] = size  # the last one now: its turn comes after all others
            looked += objects
            if looked >= OBJECTS_AT_ONCE:
                break
        return self.known

"""Aggregates as statements of a generated loop: what the accumulators do where values come and go.

Only for plain numbers: ints and floats that are a whole multiple of a unit, 2**-52 at first, 2**-100 at the
finest (71.53 is one, NaN and 1e-200 are not). Then a running sum is one Python integer, `total`, exact and
free of drift like the accumulator's. Whatever else comes is left to the accumulators. Each text may use the
names of `INLINE_NAMES`; property tests hold it to the accumulator of its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

SHIFTS = (52, 100)
"""The unit is 2**-shift. With the first, sums have few digits and floats become integers by a shorter way."""

INLINE_NAMES = {
    "value": "the value that enters, a plain number",
    "scaled": "the same in units, an integer",
    "left": "the value that leaves",
    "left_scaled": "the same in units",
    "count": "how many numbers are in the window",
    "total": "their sum in units",
    "shift": "the unit is 2**-shift",
    "scale": "the unit, a float",
    "floats": "how many of them are floats",
    "low, high": "queues of values that no later one beats, best first",
}


QUEUES = ("low", "high")
"""Which of the names kept are queues; the others are numbers."""


class Inline(NamedTuple):
    """Statements that keep an aggregate, and its result; `state` are the names it keeps, of those in
    `INLINE_NAMES`.

    An entry of `add` and `remove` is a whole statement, of one line or more.
    """

    state: tuple[str, ...]
    add: tuple[str, ...]
    remove: tuple[str, ...]
    result: str

    @property
    def is_scaled(self) -> bool:
        """Whether it keeps the exact sum."""
        return "total" in self.state

    @property
    def reads_left(self) -> bool:
        """Whether the value that leaves has to be known as it was."""
        return any("{left}" in statement for statement in self.remove)

    @property
    def is_in_order(self) -> bool:
        """Whether it holds only where the oldest value leaves first."""
        return any(name in QUEUES for name in self.state)


def _queue(name: str, beaten: str) -> Inline:
    add = f"while {{{name}}} and {{{name}}}[-1] {beaten} {{value}}:\n    {{{name}}}.pop()\n{{{name}}}.append({{value}})"
    remove = f"if {{{name}}}[0] == {{left}}:\n    {{{name}}}.popleft()"
    return Inline((name,), (add,), (remove,), f"{{{name}}}[0] if {{{name}}} else None")


_FLOATS = ("{floats} += {value}.__class__ is float",), ("{floats} -= {left}.__class__ is float",)

COUNT = Inline(("count",), ("{count} += 1",), ("{count} -= 1",), "{count}")
AVG = Inline(
    ("count", "total"),
    (*COUNT.add, "{total} += {scaled}"),
    (*COUNT.remove, "{total} -= {left_scaled}"),
    "{total} * {scale} / {count} if {count} else None",
)
SUM = Inline(
    ("count", "total", "floats"),
    AVG.add + _FLOATS[0],
    AVG.remove + _FLOATS[1],
    "({total} * {scale} if {floats} else {total} >> {shift}) if {count} else None",
)
MIN = _queue("low", ">")
MAX = _queue("high", "<")


def lines(statements: Iterable[str]) -> list[str]:
    """The lines of the statements of several aggregates, what they share only once."""
    return [line for statement in dict.fromkeys(statements) for line in statement.split("\n")]

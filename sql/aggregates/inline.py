"""Aggregates as statements of a generated loop: inline versions of the accumulators for values that leave.

Only for plain numbers: ints and floats that are a whole multiple of a unit, 2**-UNIT_SHIFT (71.53 is one, NaN
and 1e-200 are not). Then a running sum is one Python integer, `total`, exact and
free of drift like the accumulator's. All other values are left to the accumulators. Each text may use the
names of `INLINE_NAMES`; property tests compare it with the accumulator of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

UNIT_SHIFT = 64
"""The exponent of the unit of sums whose values leave one by one, 2**-UNIT_SHIFT."""

UNIT = 2.0**-UNIT_SHIFT

FINE = 2.0 ** (52 - UNIT_SHIFT)
"""A float that is no nearer to 0 is a whole number of units."""

LARGE = 1e20
"""A float that is no nearer to 0 is left to the accumulators: its integer would be long."""

WHOLE_MAX = 2**53
"""Whole numbers below are shifted into units; larger ones are left to accumulators."""

INLINE_NAMES = {
    "value": "the value that enters or leaves, a plain number",
    "scaled": "the same in units, an integer",
    "count": "how many numbers are in the window",
    "total": "their sum in units",
    "squares": "the sum of their squares, in units squared",
    "floats": "how many of them are floats",
    "low, high": "queues of values that no later one beats, best first",
}


def in_units(value: float) -> int | tuple[float]:
    """A number as a whole number of units, or as a tuple of one where it is none:
    too large, too fine, not finite."""
    if value.__class__ is int:
        return value << UNIT_SHIFT if -WHOLE_MAX < value < WHOLE_MAX else (value,)
    scaled = value * 2.0**UNIT_SHIFT
    return int(scaled) if -LARGE < value < LARGE and scaled.is_integer() else (value,)


QUEUES = ("low", "high")
"""The names that are queues; the other names of the state are numbers."""

NUMBERS = ("count", "total", "squares", "floats")
"""The names that are numbers."""


class Inline(NamedTuple):
    """Statements that maintain an aggregate, and its result; `state` are the names it uses, of those in
    `INLINE_NAMES`.

    An entry of `add` and `remove` is a whole statement, of one line or more. The result is a text,
    which may use NAN and `sqrt`. `with_rest` gives it where values are in the window that have no units:
    it takes what they are kept in (`sql.aggregates.rare`), and the state.
    """

    state: tuple[str, ...]
    add: tuple[str, ...]
    remove: tuple[str, ...]
    result: str
    with_rest: Callable[..., Any] | None = None

    @property
    def is_scaled(self) -> bool:
        """True if the state contains the exact sum."""
        return "total" in self.state

    @property
    def is_in_order(self) -> bool:
        """True if the statements are valid only where the oldest value leaves first."""
        return any(name in QUEUES for name in self.state)


def _queue(name: str, beaten: str) -> Inline:
    add = (
        f"while {{{name}}} and {{{name}}}[-1] {beaten} {{value}}:\n"
        f"    {{{name}}}.pop()\n{{{name}}}.append({{value}})"
    )
    remove = f"if {{{name}}}[0] == {{value}}:\n    {{{name}}}.popleft()"
    return Inline((name,), (add,), (remove,), f"{{{name}}}[0] if {{{name}}} else None")


_FLOATS = ("{floats} += {value}.__class__ is float",), ("{floats} -= {value}.__class__ is float",)

COUNT = Inline(("count",), ("{count} += 1",), ("{count} -= 1",), "{count}")
AVG = Inline(
    ("count", "total"),
    (*COUNT.add, "{total} += {scaled}"),
    (*COUNT.remove, "{total} -= {scaled}"),
    f"{{total}} * {UNIT!r} / {{count}} if {{count}} else None",
)
SUM = Inline(
    ("count", "total", "floats"),
    AVG.add + _FLOATS[0],
    AVG.remove + _FLOATS[1],
    f"({{total}} * {UNIT!r} if {{floats}} else {{total}} >> {UNIT_SHIFT}) if {{count}} else None",
)
MIN = _queue("low", ">")
MAX = _queue("high", "<")


def lines(statements: Iterable[str]) -> list[str]:
    """The lines of the statements of several aggregates; shared statements appear once."""
    return [line for statement in dict.fromkeys(statements) for line in statement.split("\n")]

"""Aggregates of sliding windows as statements: what the accumulators do, written into a generated loop.

Only for plain numbers: ints and floats that are a whole multiple of a unit, 2**-52 at first, 2**-100 at the finest
(71.53 is one, NaN and 1e-200 are not). Then a running sum is one Python integer, `total`, exact and free of drift like
the accumulator's. Whatever else comes is left to the accumulators. Each text may use the names of `INLINE_NAMES`;
property tests hold it to the accumulator of its name.
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
    "floats": "how many of them are floats",
    "low, high": "queues of values that no later one beats, best first",
}


class Inline(NamedTuple):
    """Statements that keep an aggregate, and its result; `state` are the names it keeps, of those in `INLINE_NAMES`."""

    state: tuple[str, ...]
    add: tuple[str, ...]
    remove: tuple[str, ...]
    result: str


def _queue(name: str, beaten: str) -> Inline:
    add = (
        f"while {{{name}}} and {{{name}}}[-1] {beaten} {{value}}:",
        f"    {{{name}}}.pop()",
        f"{{{name}}}.append({{value}})",
    )
    remove = (f"if {{{name}}}[0] == {{left}}:", f"    {{{name}}}.popleft()")
    return Inline((name,), add, remove, f"{{{name}}}[0] if {{{name}}} else None")


_COUNT = ("{count} += 1",), ("{count} -= 1",)
_TOTAL = ("{total} += {scaled}",), ("{total} -= {left_scaled}",)
_FLOATS = ("{floats} += {value}.__class__ is float",), ("{floats} -= {left}.__class__ is float",)

INLINE: dict[str, Inline] = {
    "count": Inline(("count",), *_COUNT, "{count}"),
    "sum": Inline(
        ("count", "total", "floats"), _COUNT[0] + _TOTAL[0] + _FLOATS[0], _COUNT[1] + _TOTAL[1] + _FLOATS[1],
        "({total} / (1 << {shift}) if {floats} else {total} >> {shift}) if {count} else None",
    ),
    "avg": Inline(
        ("count", "total"), _COUNT[0] + _TOTAL[0], _COUNT[1] + _TOTAL[1],
        "{total} * 2.0**-{shift} / {count} if {count} else None",
    ),
    "min": _queue("low", ">"),
    "max": _queue("high", "<"),
}  # fmt: skip
"""By the name of the aggregate."""


def united(names: Iterable[str], part: str) -> list[str]:
    """The statements (`add` or `remove`) of several aggregates of one argument, what they share only once."""
    blocks: dict[str, None] = {}
    for name in names:
        lines = getattr(INLINE[name], part)
        whole = ["\n".join(lines)] if name in ("min", "max") else lines
        blocks.update(dict.fromkeys(whole))
    return [line for block in blocks for line in block.split("\n")]


def states(names: Iterable[str]) -> list[str]:
    """The names of what several aggregates of one argument keep, each once."""
    return list(dict.fromkeys(state for name in names for state in INLINE[name].state))


def needs_scaled(names: Iterable[str]) -> bool:
    """Whether the exact sum is kept."""
    return bool({"sum", "avg"} & set(names))


def needs_values(names: Iterable[str]) -> bool:
    """Whether the values that leave have to be known as they were."""
    return bool({"sum", "min", "max"} & set(names))

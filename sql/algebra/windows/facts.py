"""The facts that every entry of the window catalog states, in either language."""

from __future__ import annotations

from collections.abc import Mapping

from sql.costs import CONSTANT_WINDOW, WindowCost
from sql.record import Record


class Stage(Record):
    """One operator of a window.

    policy  when it acts, or what it keeps, with a placeholder for each parameter:
            `count {n}`, twice it `{n:2}`. d, p, t and m are lengths of time; n and c counts; k keys
    origin  where its grid of times begins: in the catalog all that it may be
    note    what else it does
    """

    operator: str
    policy: str = ""
    origin: str = ""
    note: str = ""

    def written(self, values: Mapping[str, str]) -> str:
        """The stage with values for its parameters; a parameter without one stays a letter."""
        origin = f"origin {self.origin}" if self.origin else ""
        inside = ", ".join(part for part in (filled(self.policy, values), origin, self.note) if part)
        return f"{self.operator}({inside})" if inside else self.operator


class WindowFacts(Record, kw_only=True):
    """The composition of a window, and its cost: for `explain`, and for the manual's table of windows."""

    composition: tuple[Stage, ...]
    """The operators of the window, in the order in which events meet them."""
    cost: WindowCost = CONSTANT_WINDOW
    state: str
    """The bound of its state, with the placeholders of stages."""
    clock: str = "none"
    example: str
    summary: str
    unbounded: str | None = None
    """Why there is no bound on what it holds, as a sentence; None where there is one."""


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template with values for its placeholders.

    >>> filled("count {n}, of {n:2} at most, by {k}", {"n": "5"})
    'count 5, of 10 at most, by k'
    """
    return template.format_map(_Letters({name: _Value(value) for name, value in values.items()}))


class _Letters(dict[str, "_Value"]):
    def __missing__(self, letter: str) -> _Value:
        return _Value(letter)


class _Value(str):
    """A value that is written in a template: `{n:2}` is twice n."""

    __slots__ = ()

    def __format__(self, factor: str) -> str:
        if not factor:
            return str(self)
        if self.isdecimal():
            return str(int(factor) * int(self))
        return f"{factor}{self}" if len(self) == 1 else f"{factor} x {self}"

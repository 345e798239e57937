"""The global names of a piece of generated code."""

from __future__ import annotations

import math
from itertools import chain, count
from typing import Any


class Names:
    """The global names of a piece of generated code: helpers, and constants without a literal form."""

    def __init__(self, *, literals: bool = True) -> None:
        """`literals` False: constants are globals, so that rules that differ in them
        alone have equal texts."""
        self.literals = literals
        self.constants: dict[str, Any] = {}
        """The constants that are globals, in the order of the text."""
        self.bound: dict[str, Any] = {}
        """The globals of the code: few, with text keys only, so that Python's lookup is fast."""
        self._known: dict[int, str] = {}
        self._temporaries = 0

    def bind(self, value: object, hint: str) -> str:
        """A global name bound to `value`; the same one for the same object.

        Functions, variables and tables come with a prefix (`f_abs`, `v_limit`, `t_pumps`). A hint must not be
        the name of a local of the code around, which would hide the global.
        """
        known = self._known.get(id(value))
        if known is None:
            known = self._free(hint)
            self.bound[known] = value
            self._known[id(value)] = known
        return known

    def _free(self, hint: str) -> str:
        names = chain([hint], (f"{hint}_{number}" for number in count(len(self.bound))))
        return next(name for name in names if name not in self.bound)

    def temporary(self) -> str:
        """A local name not used before."""
        self._temporaries += 1
        return f"t{self._temporaries}"

    def constant(self, value: object) -> str:
        """A literal if Python has one, else a bound name: user text never becomes code."""
        if not self.literals and value.__class__ in (str, int, float):
            name = f"k_{len(self.constants)}"
            self.constants[name] = self.bound[name] = value
            return name
        if value is None or value.__class__ in (bool, str, int):
            return repr(value) if value.__class__ is not int or value >= 0 else f"({value!r})"
        if value.__class__ is float and math.isfinite(value):
            return f"({value!r})" if value < 0 else repr(value)
        return self.bind(value, "k")

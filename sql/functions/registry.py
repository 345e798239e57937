"""The scalar functions: one definition each, from which arity, types, NULL rule, manual page and example test
are derived.

To add a function write it in the file of its category:

    @function("lpad", category="string", returns=Type.STRING,
              parameters=(Parameter("text", Type.STRING), Parameter("n", Type.INTEGER)),
              examples=(("lpad('ab', 2)", "  ab"),))
    def lpad(text: str, n: int) -> str:
        \"\"\"The text with n spaces put before it.\"\"\"

Implementations get plain Python values (None, bool, int, float, str, bytes, list, dict, `datetime` never) of
the declared parameter types (`checks` ensures this) and return such values. A wrong value raises `DataError`;
TypeError, ValueError, OverflowError, ZeroDivisionError count as one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.functions.argument_checks import checked
from sql.functions.definition import Function, Implementation, Parameter
from sql.record import replace

__all__ = ["Parameter", "all_functions", "define", "forget", "function", "lookup", "names"]

_functions: dict[str, Function] = {}


def function(name: str, **definition: Any) -> Callable[[Implementation], Implementation]:
    """Register the decorated implementation as a scalar function. Keywords are the fields of `Function`."""

    def register(implementation: Implementation) -> Implementation:
        doc = (implementation.__doc__ or "").strip()
        define(Function(name=name, implementation=implementation, doc=doc, **definition))
        return implementation

    return register


def define(found: Function) -> None:
    """Register a function behind a check of its arguments."""
    found = replace(found, implementation=checked(found))
    for word in (found.name, *found.aliases):
        assert word not in _functions, f"function {word} is registered twice"
        _functions[word] = found


def forget(name: str) -> None:
    """Remove a function from the registry; compiled rules keep their reference to it."""
    found = _functions[name]
    for word in (name, *found.aliases):
        del _functions[word]


def lookup(name: str) -> Function | None:
    """The function called `name` (any case) or by an alias; None for an unknown one."""
    return _functions.get(name.lower())


def names() -> tuple[str, ...]:
    """All names and aliases, sorted."""
    return tuple(sorted(_functions))


def all_functions() -> tuple[Function, ...]:
    """Every function once, by category and name."""
    unique = {item.name: item for item in _functions.values()}
    return tuple(sorted(unique.values(), key=lambda item: (item.category, item.name)))

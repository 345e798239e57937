"""Functions of the climate, two of which do what a plug-in should not."""

from __future__ import annotations

from sql.functions.registry import Parameter, function
from sql.types import Type


@function(
    "fahrenheit",
    category="math",
    returns=Type.FLOAT,
    parameters=(Parameter("celsius", Type.NUMBER),),
    examples=(("fahrenheit(100)", 212.0),),
)
def fahrenheit(celsius: float) -> float:
    """The temperature in °F."""
    return celsius * 1.8 + 32


class Odd(Exception):
    """What no engine knows."""


@function("careless", category="math", returns=Type.FLOAT, parameters=(Parameter("x", Type.NUMBER),))
def careless(x: float) -> float:
    """Raises for negative numbers."""
    if x < 0:
        raise Odd("negative")
    return x


@function("endless", category="math", returns=Type.FLOAT, parameters=(Parameter("x", Type.NUMBER),))
def endless(x: float) -> float:
    """Does not come back for negative numbers."""
    while x < 0:
        pass
    return x

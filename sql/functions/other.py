"""Choice between values, and properties of the rule itself."""

from __future__ import annotations

from typing import Any

from sql.functions.argument_checks import unified
from sql.functions.definition import Context
from sql.functions.registry import Parameter, function
from sql.types import Type, equal, less, type_of

X = Parameter("x")
MORE = Parameter("more", variadic=True)


@function(
    "isnull",
    category="other",
    returns=Type.BOOLEAN,
    nulls="pass",
    parameters=(X,),
    examples=(("isnull(NULL)", True), ("isnull(0)", False)),
)
def isnull(x: object) -> bool:
    """True if the value is NULL; the same as `x IS NULL`."""
    return x is None


@function(
    "coalesce",
    category="other",
    returns=unified,
    nulls="pass",
    parameters=(X, MORE),
    aliases=("ifnull", "nvl"),
    examples=(("coalesce(NULL, 2, 3)", 2), ("coalesce(NULL)", None)),
)
def coalesce(*values: Any) -> Any:
    """The first argument that is not NULL; NULL if all are."""
    return next((value for value in values if value is not None), None)


@function(
    "nullif",
    category="other",
    returns=lambda types: types[0],
    nulls="pass",
    parameters=(X, Parameter("y")),
    examples=(("nullif(-1, -1)", None), ("nullif(5, -1)", 5)),
)
def nullif(x: object, y: object) -> Any:
    """NULL if the two are equal, else the first: turns a device's 'no value' number into NULL."""
    return None if equal(x, y) else x


@function(
    "greatest",
    category="other",
    returns=unified,
    nulls="pass",
    parameters=(X, MORE),
    examples=(("greatest(1, NULL, 3)", 3), ("greatest('a', 'b')", "b")),
)
def greatest(*values: Any) -> Any:
    """The largest argument, NULLs skipped; NULL if all are. Arguments of different types are an error."""
    largest = None
    for value in values:
        if value is not None and (largest is None or less(largest, value)):
            largest = value
    return largest


@function(
    "least",
    category="other",
    returns=unified,
    nulls="pass",
    parameters=(X, MORE),
    examples=(("least(2, NULL, 1)", 1),),
)
def least(*values: Any) -> Any:
    """The smallest argument, NULLs skipped; NULL if all are. Arguments of different types are an error."""
    smallest = None
    for value in values:
        if value is not None and (smallest is None or less(value, smallest)):
            smallest = value
    return smallest


@function(
    "typeof",
    category="other",
    returns=Type.STRING,
    parameters=(X,),
    examples=(("typeof(1.5)", "float"), ("typeof('a')", "string")),
)
def typeof(x: object) -> str:
    """The type of the value by its declaration name: bigint, float, string, boolean, bytea, array, struct."""
    kind = type_of(x)
    if kind is Type.ANY:  # an event of the gateway has a class of its own
        kind = Type.OBJECT
    return kind.value


@function(
    "newuuid", category="other", returns=Type.STRING, context=True, examples=(("length(newuuid())", 36),)
)
def newuuid(context: Context) -> str:
    """A random UUID (version 4). A replay of the same events gives the same ones."""
    from uuid import UUID

    return str(UUID(int=context.random.getrandbits(128), version=4))


@function(
    "rule_id", category="other", returns=Type.STRING, context=True, examples=(("rule_id()", "example"),)
)
def rule_id(context: Context) -> str:
    """The name of the rule."""
    return context.rule_id


@function(
    "rule_start",
    category="other",
    returns=Type.INTEGER,
    context=True,
    examples=(("rule_start()", 1704164640000),),
)
def rule_start(context: Context) -> int:
    """The instant at which the rule was started, in epoch milliseconds."""
    return context.start_ms


@function(
    "props",
    category="other",
    context=True,
    parameters=(Parameter("name", Type.STRING),),
    examples=(("props('site')", "north"), ("props('unknown')", None)),
)
def props(context: Context, name: str) -> Any:
    """The value of a configured property; NULL if there is none."""
    return context.properties.get(name)

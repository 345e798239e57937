"""Arrays as sets: union, intersection, difference, elements without repetition.

Elements are equal if they are the same group key: 1 and 1.0 are, 1 and '1' and TRUE are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sql.functions.nested.arrays import ARRAY, VALUE, Array
from sql.functions.registry import Parameter, function
from sql.types import Type, key_of

OTHER = Parameter("other", Type.ARRAY)


@function(
    "array_contains_any",
    category="array",
    returns=Type.BOOLEAN,
    nulls="pass",
    parameters=(ARRAY, OTHER),
    examples=(("array_contains_any(array_create(1, 2), array_create(2, 3))", True),),
)
def array_contains_any(array: Array | None, other: Array | None) -> bool:
    """True if the arrays have an element in common; false if either is NULL."""
    return array is not None and other is not None and not _keys(array).isdisjoint(map(key_of, other))


@function(
    "array_remove",
    category="array",
    returns=Type.ARRAY,
    parameters=(ARRAY, VALUE),
    examples=(("array_remove(array_create(1, 2, 1), 1)", [2]),),
)
def array_remove(array: Array, value: object) -> list[Any]:
    """The array without any element equal to the value."""
    key = key_of(value)
    return [item for item in array if key_of(item) != key]


@function(
    "array_union",
    category="array",
    returns=Type.ARRAY,
    nulls="pass",
    parameters=(ARRAY, OTHER),
    examples=(
        ("array_union(array_create(1), NULL)", [1]),
        ("array_union(array_create(1, 2, 2), array_create(2, 3))", [1, 2, 3]),
    ),
)
def array_union(array: Array | None, other: Array | None) -> list[Any]:
    """The elements of both arrays, each once, in order of first appearance; NULL counts as an empty array."""
    return _distinct((*(array or ()), *(other or ())))


@function(
    "array_intersect",
    category="array",
    returns=Type.ARRAY,
    parameters=(ARRAY, OTHER),
    examples=(("array_intersect(array_create(3, 2, 2), array_create(2, 3, 4))", [3, 2]),),
)
def array_intersect(array: Array, other: Array) -> list[Any]:
    """The elements of the first array that are also in the second, each once."""
    wanted = _keys(other)
    return _distinct(item for item in array if key_of(item) in wanted)


@function(
    "array_except",
    category="array",
    returns=Type.ARRAY,
    parameters=(ARRAY, OTHER),
    examples=(("array_except(array_create(1, 2, 1), array_create(2))", [1]),),
)
def array_except(array: Array, other: Array) -> list[Any]:
    """The elements of the first array that are not in the second, each once."""
    unwanted = _keys(other)
    return _distinct(item for item in array if key_of(item) not in unwanted)


@function(
    "array_distinct",
    category="array",
    returns=Type.ARRAY,
    parameters=(ARRAY,),
    examples=(("array_distinct(array_create(1, 2, 1.0))", [1, 2]),),
)
def array_distinct(array: Array) -> list[Any]:
    """The first of each group of equal elements; arrays and objects inside are compared by content."""
    return _distinct(array)


def _keys(array: Array) -> set[Any]:
    return set(map(key_of, array))


def _distinct(items: Iterable[Any]) -> list[Any]:
    first: dict[Any, Any] = {}
    for item in items:
        first.setdefault(key_of(item), item)
    return list(first.values())

"""Arrays: positions count from 0, or from the end if negative. Arguments are never changed, results are new
arrays.

Elements are equal if they are the same group key: 1 and 1.0 are, 1 and '1' and TRUE are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.errors import DataError
from sql.functions.definition import Context, Function
from sql.functions.limits import ELEMENTS_MAX, within
from sql.functions.registry import Parameter, function, lookup
from sql.types import Type, as_text, describe, key_of, less, order_key, ordered, whole

Array = Sequence[Any]

ARRAY = Parameter("array", Type.ARRAY)
VALUE = Parameter("value")


@function(
    "array_create",
    category="array",
    returns=Type.ARRAY,
    nulls="pass",
    parameters=(Parameter("value", variadic=True),),
    examples=(("array_create(1, NULL, 'a')", [1, "a"]), ("array_create(NULL)", None), ("array_create()", [])),
)
def array_create(*values: Any) -> list[Any] | None:
    """An array of the arguments without the NULLs; NULL if all are NULL."""
    kept = [value for value in values if value is not None]
    return kept if kept or not values else None


@function(
    "cardinality",
    category="array",
    returns=Type.INTEGER,
    nulls="pass",
    parameters=(VALUE,),
    examples=(("cardinality(array_create(1, 2))", 2), ("cardinality('abc')", 0), ("cardinality(NULL)", 0)),
)
def cardinality(value: object) -> int:
    """The number of elements; 0 if the value is not an array."""
    return len(value) if isinstance(value, (list, tuple)) else 0


@function(
    "array_cardinality",
    category="array",
    returns=Type.INTEGER,
    nulls="pass",
    parameters=(ARRAY,),
    examples=(
        ("array_cardinality(NULL)", 0),
        ("array_cardinality(parse_json('[1, null]'))", 1),
    ),
)
def array_cardinality(array: Array | None) -> int:
    """The number of elements that are not NULL; 0 for a NULL array."""
    return sum(item is not None for item in array or ())


def _check_index(index: object) -> None:
    if index.__class__ not in (int, str):
        raise DataError(f"element_at() takes an integer as an index, or text as a key, not {describe(index)}")


@function(
    "element_at",
    category="array",
    parameters=(Parameter("collection"), Parameter("index_or_key", check=_check_index)),
    examples=(
        ("element_at(array_create(10, 20), -1)", 20),
        ("element_at(array_create(10, 20), 2)", None),
        ("element_at(object_construct('a', 1), 'a')", 1),
    ),
)
def element_at(collection: object, index: object) -> Any:
    """The element of an array at an index, or of an object at a key; NULL if there is none."""
    if isinstance(collection, dict) and isinstance(index, str):
        return collection.get(index)
    place = whole(index)
    if isinstance(collection, (list, tuple)) and isinstance(place, int) and place.__class__ is not bool:
        return collection[place] if -len(collection) <= place < len(collection) else None
    raise DataError(
        f"element_at() takes an array and an integer, or an object and text, not {describe(collection)} "
        f"and {describe(index)}"
    )


@function(
    "array_position",
    category="array",
    returns=Type.INTEGER,
    nulls="pass",
    parameters=(ARRAY, VALUE),
    examples=(
        ("array_position(array_create('a', 'b', 'a'), 'a')", 0),
        ("array_position(array_create(1), '1')", -1),
    ),
)
def array_position(array: Array | None, value: object) -> int:
    """The position of the first element equal to the value, -1 if there is none or the array is NULL."""
    key = key_of(value)
    return next((index for index, item in enumerate(array or ()) if key_of(item) == key), -1)


@function(
    "array_last_position",
    category="array",
    returns=Type.INTEGER,
    nulls="pass",
    parameters=(ARRAY, VALUE),
    examples=(("array_last_position(array_create('a', 'b', 'a'), 'a')", 2),),
)
def array_last_position(array: Array | None, value: object) -> int:
    """The position of the last element equal to the value, -1 if there is none or the array is NULL."""
    key, array = key_of(value), array or ()
    return next((index for index in range(len(array) - 1, -1, -1) if key_of(array[index]) == key), -1)


@function(
    "array_contains",
    category="array",
    returns=Type.BOOLEAN,
    nulls="pass",
    parameters=(ARRAY, VALUE),
    examples=(("array_contains(array_create(1, 2), 2)", True), ("array_contains(NULL, 2)", False)),
)
def array_contains(array: Array | None, value: object) -> bool:
    """True if the value is an element; false for a NULL array."""
    key = key_of(value)
    return array is not None and any(key_of(item) == key for item in array)


@function(
    "array_max",
    category="array",
    parameters=(ARRAY,),
    examples=(("array_max(parse_json('[1, null, 3]'))", 3), ("array_max(parse_json('[]'))", None)),
)
def array_max(array: Array) -> Any:
    """The largest number or text, NULLs skipped; NULL if there is none. Other types or a mix are errors."""
    largest = None
    for item in map(ordered, array):
        if item is not None and (largest is None or less(largest, item)):
            largest = item
    return largest


@function(
    "array_min",
    category="array",
    parameters=(ARRAY,),
    examples=(("array_min(parse_json('[2, null, 1]'))", 1),),
)
def array_min(array: Array) -> Any:
    """The smallest number or text, NULLs skipped; NULL if there is none. Other types or a mix are errors."""
    smallest = None
    for item in map(ordered, array):
        if item is not None and (smallest is None or less(item, smallest)):
            smallest = item
    return smallest


@function(
    "array_sort",
    category="array",
    returns=Type.ARRAY,
    parameters=(ARRAY,),
    examples=(("array_sort(array_create(10, 9, 'a', true))", [True, 9, 10, "a"]),),
)
def array_sort(array: Array) -> list[Any]:
    """The elements in ascending order of value; mixed types in the order null, boolean, number, text."""
    return sorted(array, key=order_key)


@function(
    "array_shuffle",
    category="array",
    returns=Type.ARRAY,
    context=True,
    parameters=(ARRAY,),
    examples=(("cardinality(array_shuffle(array_create(1, 2, 3)))", 3),),
)
def array_shuffle(context: Context, array: Array) -> list[Any]:
    """The elements in random order. A replay of the same events gives the same order."""
    shuffled = list(array)
    context.random.shuffle(shuffled)
    return shuffled


@function(
    "array_concat",
    category="array",
    returns=Type.ARRAY,
    nulls="pass",
    parameters=(ARRAY, Parameter("other", Type.ARRAY, variadic=True)),
    examples=(("array_concat(array_create(1), NULL, array_create(1, 2))", [1, 1, 2]),),
)
def array_concat(*arrays: Array | None) -> list[Any]:
    """The arrays one after the other; NULL counts as an empty array."""
    return [item for array in arrays if array is not None for item in array]


@function(
    "array_flatten",
    category="array",
    returns=Type.ARRAY,
    parameters=(ARRAY,),
    examples=(("array_flatten(parse_json('[1, [2, [3]]]'))", [1, 2, [3]]),),
)
def array_flatten(array: Array) -> list[Any]:
    """The array with the elements of arrays inside in their place, one level deep."""
    flat: list[Any] = []
    for item in array:
        if isinstance(item, (list, tuple)):
            flat.extend(item)
        else:
            flat.append(item)
    return flat


@function("array_join", category="array", returns=Type.STRING,
          parameters=(ARRAY, Parameter("separator", Type.STRING),
                      Parameter("null_text", Type.STRING, optional=True)),
          examples=(("array_join(array_create('a', 1), '-')", "a-1"),
                    ("array_join(parse_json('[1, null]'), ',', '?')", "1,?")))  # fmt: skip
def array_join(array: Array, separator: str, null_text: str | None = None) -> str:
    """The elements as one text with the separator between; NULLs are left out unless a text for them is an
    argument."""
    texts = (null_text if item is None else as_text(item) for item in array)
    return separator.join(text for text in texts if text is not None)


def _of_one_argument(name: str) -> Function:
    found = lookup(name)
    least, most = found.arity if found else (0, 0)
    if found is None or least > 1 or most == 0:
        raise DataError(f"array_map() takes the name of a scalar function of one argument, not '{name}'")
    return found


@function(
    "array_map",
    category="array",
    returns=Type.ARRAY,
    context=True,
    parameters=(Parameter("function", Type.STRING, constant=True, check=_of_one_argument), ARRAY),
    examples=(
        ("array_map('upper', array_create('a', 'b'))", ["A", "B"]),
        ("array_map('abs', parse_json('[-1, null]'))", [1, None]),
    ),
)
def array_map(context: Context, name: str, array: Array) -> list[Any]:
    """The results of a built-in function of one argument, named by a text, for each element."""
    found = _of_one_argument(name)
    leading = (context,) if found.context else ()
    skips = found.nulls == "propagate"
    return [None if skips and item is None else found.implementation(*leading, item) for item in array]


@function(
    "repeat",
    category="array",
    returns=Type.ARRAY,
    parameters=(VALUE, Parameter("n", Type.INTEGER)),
    examples=(("repeat('a', 3)", ["a", "a", "a"]),),
)
def repeat(value: object, n: int) -> list[Any]:
    """An array of n copies of the value, at most ELEMENTS_MAX; n below 1 gives an empty array."""
    return [value] * within(max(n, 0), ELEMENTS_MAX, "ELEMENTS_MAX")


def _step(step: int) -> None:
    if step == 0:
        raise DataError("sequence() takes a step that is not 0")


@function("sequence", category="array", returns=Type.ARRAY,
          parameters=(Parameter("first", Type.INTEGER), Parameter("last", Type.INTEGER),
                      Parameter("step", Type.INTEGER, optional=True, check=_step)),
          examples=(("sequence(1, 4)", [1, 2, 3, 4]), ("sequence(3, 1)", [3, 2, 1]),
                    ("sequence(1, 6, 2)", [1, 3, 5])))  # fmt: skip
def sequence(first: int, last: int, step: int | None = None) -> list[int]:
    """The integers from first to last, both included, at most ELEMENTS_MAX; the step is
    -1 when first > last."""
    if step is None:
        step = 1 if first <= last else -1
    if step == 0 or (last - first) * step < 0:
        raise DataError(f"sequence() never reaches {last} from {first} by steps of {step}")
    within(abs(last - first) // abs(step) + 1, ELEMENTS_MAX, "ELEMENTS_MAX")
    return list(range(first, last + (1 if step > 0 else -1), step))


KVPAIRS = Parameter("pairs", Type.ARRAY)


@function(
    "kvpair_array_to_obj",
    category="array",
    returns=Type.OBJECT,
    parameters=(KVPAIRS,),
    examples=(('kvpair_array_to_obj(parse_json(\'[{"key": "a", "value": 1}]\'))', {"a": 1}),),
)
def kvpair_array_to_obj(pairs: Array) -> dict[str, Any]:
    """An object from an array of `{key, value}` objects; a later pair wins."""
    built: dict[str, Any] = {}
    for pair in pairs:
        if not (isinstance(pair, dict) and isinstance(pair.get("key"), str) and "value" in pair):
            raise DataError(
                f"kvpair_array_to_obj() takes objects with a text 'key' and a 'value', not {describe(pair)}"
            )
        built[pair["key"]] = pair["value"]
    return built

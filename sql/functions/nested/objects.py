"""Objects: keys keep the order of insertion. Arguments are never changed, results are new objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.errors import DataError
from sql.functions.registry import Parameter, function
from sql.types import Type, describe

Object = dict[str, Any]

OBJECT = Parameter("object", Type.OBJECT)


def _picking(caller: str) -> tuple[Parameter, ...]:
    """The parameters of a function of an object and some of its keys, or one array of them."""
    first = Parameter("key_or_keys", check=lambda name: _names((name,), caller))
    return OBJECT, first, Parameter("key", Type.STRING, variadic=True)


@function(
    "keys",
    category="object",
    returns=Type.ARRAY,
    parameters=(OBJECT,),
    examples=(("keys(object_construct('b', 1, 'a', 2))", ["b", "a"]),),
)
def keys(source: Object) -> list[str]:
    """The keys, in order."""
    return list(source)


@function(
    "values",
    category="object",
    returns=Type.ARRAY,
    parameters=(OBJECT,),
    examples=(("values(object_construct('b', 1, 'a', 2))", [1, 2]),),
)
def values(source: Object) -> list[Any]:
    """The values, in the order of their keys."""
    return list(source.values())


@function(
    "items",
    category="object",
    returns=Type.ARRAY,
    parameters=(OBJECT,),
    examples=(("items(object_construct('a', 1))", [["a", 1]]),),
)
def items(source: Object) -> list[list[Any]]:
    """An array of `[key, value]` arrays, in order."""
    return [[key, value] for key, value in source.items()]


@function(
    "object",
    category="object",
    returns=Type.OBJECT,
    parameters=(Parameter("keys", Type.ARRAY), Parameter("values", Type.ARRAY)),
    examples=(("object(array_create('a', 'b'), array_create(1, 2))", {"a": 1, "b": 2}),),
)
def from_keys_and_values(names: Sequence[Any], contents: Sequence[Any]) -> Object:
    """An object from an array of keys and an array of values of the same length."""
    if len(names) != len(contents):
        raise DataError(f"object() takes as many values as keys, not {len(contents)} for {len(names)}")
    return {_key(name, "object"): value for name, value in zip(names, contents, strict=True)}


@function(
    "zip",
    category="object",
    returns=Type.OBJECT,
    parameters=(Parameter("entries", Type.ARRAY),),
    examples=(
        ("zip(array_create(array_create('a', 1)))", {"a": 1}),
        ("zip(parse_json('[[\"a\", 1], null]'))", {"a": 1}),
    ),
)
def from_entries(entries: Sequence[Any]) -> Object:
    """An object from an array of `[key, value]` arrays; a later entry wins, NULL is left out."""
    built: Object = {}
    for entry in entries:
        if entry is None:
            continue
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise DataError(f"zip() takes entries of a key and a value, not {describe(entry)}")
        built[_key(entry[0], "zip")] = entry[1]
    return built


def _constant_key(name: object) -> None:
    _key(name, "object_construct")


@function(
    "object_construct",
    category="object",
    returns=Type.OBJECT,
    nulls="pass",
    in_pairs=True,
    parameters=(Parameter("key", variadic=True, check=_constant_key), Parameter("value", variadic=True)),
    examples=(("object_construct('a', 1, NULL, 2, 'b', NULL)", {"a": 1, "b": None}),),
)
def object_construct(*pairs: Any) -> Object:
    """An object from keys and values in turn; a pair with a NULL key is left out."""
    if len(pairs) % 2:
        raise DataError(f"object_construct() takes pairs of key and value, not {len(pairs)} arguments")
    found = zip(pairs[::2], pairs[1::2], strict=True)
    return {_key(name, "object_construct"): value for name, value in found if name is not None}


@function(
    "object_concat",
    category="object",
    returns=Type.OBJECT,
    nulls="pass",
    parameters=(OBJECT, Parameter("other", Type.OBJECT, variadic=True)),
    examples=(("object_concat(zip(parse_json('[[\"a\", 1]]')), NULL)", {"a": 1}),),
)
def object_concat(*objects: Object | None) -> Object:
    """The objects merged, not their contents; the last one that has a key wins, NULL is skipped."""
    merged: Object = {}
    for source in objects:
        merged.update(source or {})
    return merged


@function(
    "erase",
    category="object",
    returns=Type.OBJECT,
    parameters=_picking("erase"),
    examples=(
        ("erase(object_construct('a', 1, 'b', 2), 'a')", {"b": 2}),
        ("erase(object_construct('a', 1, 'b', 2), array_create('a', 'b'))", {}),
    ),
)
def erase(source: Object, *names: Any) -> Object:
    """The object without these keys: single texts, or one array of them."""
    unwanted = set(_names(names, "erase"))
    return {key: value for key, value in source.items() if key not in unwanted}


@function(
    "object_pick",
    category="object",
    returns=Type.OBJECT,
    parameters=_picking("object_pick"),
    examples=(
        ("object_pick(object_construct('a', 1, 'b', 2), 'b')", {"b": 2}),
        ('object_pick(parse_json(\'{"a": {"b": 1, "c": 2}}\'), \'a.b\')', {"a": {"b": 1}}),
    ),
)
def object_pick(source: Object, *names: Any) -> Object:
    """The object with only these keys: single texts, or one array of them; `a.b` picks `b` inside `a`."""
    picked: Object = {}
    for name in _names(names, "object_pick"):
        if name in source:
            picked[name] = source[name]
        elif "." in name:
            _pick_inside(source, name.split("."), picked)
    return picked


def _pick_inside(source: object, path: list[str], picked: Object) -> None:
    """Copy the value at `path` into `picked`; do nothing if the path leads nowhere."""
    for step in path[:-1]:
        source = source.get(step) if isinstance(source, dict) else None
    if not isinstance(source, dict) or path[-1] not in source:
        return
    for step in path[:-1]:
        # A copy: a value picked whole before must not change in the event it came from.
        picked[step] = dict(picked.get(step, {}))
        picked = picked[step]
    picked[path[-1]] = source[path[-1]]


@function(
    "object_size",
    category="object",
    returns=Type.INTEGER,
    nulls="pass",
    parameters=(OBJECT,),
    examples=(("object_size(object_construct('a', 1))", 1), ("object_size(NULL)", 0)),
)
def object_size(source: Object | None) -> int:
    """The number of keys; 0 for NULL."""
    return len(source) if source is not None else 0


@function(
    "obj_to_kvpair_array",
    category="object",
    returns=Type.ARRAY,
    parameters=(OBJECT,),
    examples=(("obj_to_kvpair_array(object_construct('a', 1))", [{"key": "a", "value": 1}]),),
)
def obj_to_kvpair_array(source: Object) -> list[Object]:
    """An array of `{key, value}` objects, in order."""
    return [{"key": key, "value": value} for key, value in source.items()]


def _key(name: object, caller: str) -> str:
    if isinstance(name, str):
        return name
    raise DataError(f"{caller}() takes text as a key, not {describe(name)}")


def _names(names: tuple[Any, ...], caller: str) -> list[str]:
    """The keys as a list, from `'a', 'b'` or from one array of them."""
    if len(names) == 1 and isinstance(names[0], (list, tuple)):
        names = tuple(names[0])
    return [_key(name, caller) for name in names]

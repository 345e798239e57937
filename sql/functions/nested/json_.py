"""JSON text, and paths into arrays and objects. Nesting is bounded by JSON_DEPTH_MAX."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sql.errors import DataError
from sql.functions.limits import CACHED_PATTERNS, JSON_DEPTH_MAX, within
from sql.functions.notations.json_path import compile_path
from sql.functions.registry import Parameter, function
from sql.types import Type

VALUE = Parameter("value")
_compiled = lru_cache(CACHED_PATTERNS)(compile_path)

PATH = Parameter("path", Type.STRING, check=_compiled)


@function(
    "to_json",
    category="json",
    returns=Type.STRING,
    nulls="pass",
    parameters=(VALUE,),
    examples=(
        ("to_json(object_construct('a', array_create(1, 'b')))", '{"a":[1,"b"]}'),
        ("to_json(NULL)", "null"),
    ),
)
def to_json(value: object) -> str:
    """The value as compact JSON text; bytes become base64 text. NaN and infinities have
    no JSON form: an error."""
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_base64)
    except RecursionError:
        raise DataError(f"to_json() takes at most {JSON_DEPTH_MAX} levels, which is JSON_DEPTH_MAX") from None
    _check_depth(value)
    return text


@function(
    "parse_json",
    category="json",
    parameters=(Parameter("text", Type.STRING),),
    examples=(("parse_json('{\"a\": [1, 2.5]}')", {"a": [1, 2.5]}), ("parse_json('null')", None)),
)
def parse_json(text: str) -> Any:
    """The value of a JSON text. Text that is not JSON is an error; of a duplicate key the last one counts."""
    import json

    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise DataError(
            f"parse_json() takes at most {JSON_DEPTH_MAX} levels, which is JSON_DEPTH_MAX"
        ) from None
    except ValueError as error:
        raise DataError(f"parse_json(): not JSON: {error}") from None
    _check_depth(value)
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"'{name}' is not a JSON value")


def _base64(value: object) -> str:
    from base64 import b64encode

    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise DataError(f"to_json() has no form for {type(value).__name__}")


def _check_depth(value: object) -> None:
    """Refuse values nested deeper than JSON_DEPTH_MAX; level by level, so that the check
    itself needs no deep stack."""
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, (list, tuple, dict))]:
        depth = within(depth + 1, JSON_DEPTH_MAX, "JSON_DEPTH_MAX")
        level = [inner for item in level for inner in _children(item)]


def _children(value: object) -> Any:
    return value.values() if isinstance(value, dict) else value


@function(
    "json_path_exists",
    category="json",
    returns=Type.BOOLEAN,
    nulls="pass",
    parameters=(VALUE, PATH),
    examples=(
        ("json_path_exists(parse_json('{\"a\": 1}'), '$.a')", True),
        ("json_path_exists(parse_json('{\"a\": 1}'), '$.b')", False),
    ),
)
def json_path_exists(value: object, path: str | None) -> bool:
    """True if the path leads to a value, also to null; false if the value or the path is NULL,
    and in text that is no JSON."""
    if value is None or path is None:
        return False
    try:
        document = _document(value)
    except DataError:
        return False
    return any(True for _ in _compiled(path).find(document))


@function(
    "json_path_query",
    category="json",
    parameters=(VALUE, PATH),
    examples=(
        ("json_path_query(parse_json('{\"a\": {\"b\": 1}}'), '$.a.b')", 1),
        ("json_path_query('[{\"x\": 1}, {\"x\": 3}]', '$[*].x')", [1, 3]),
        ("json_path_query(parse_json('[{\"x\": 1}, {\"x\": 3}]'), '$[?@.x>1]')", [{"x": 3}]),
    ),
)
def json_path_query(value: object, path: str) -> Any:
    """The value that a path leads to, NULL if there is none; an array of all values for a path to several
    places.

    JSON text is read as its value. `$` is the value itself, `.key` or `["key"]` a member, `[i]` an element
    (from the end when negative). Paths to several places have `[a:b]`, a slice, `[*]` or `.*`, all members or
    elements, `..key` at any depth, or `[? @.x > 1 && @.y == "a"]`, the elements that satisfy the condition.
    """
    compiled = _compiled(path)
    found = list(compiled.find(_document(value)))
    return found if compiled.is_open else next(iter(found), None)


@function(
    "json_path_query_first",
    category="json",
    parameters=(VALUE, PATH),
    examples=(
        ("json_path_query_first(parse_json('[{\"x\": 1}, {\"x\": 3}]'), '$[*].x')", 1),
        ("json_path_query_first(parse_json('{\"a\": [5, 6]}'), '$.a')", 5),
        ("json_path_query_first(parse_json('{\"a\": [5, 6]}'), '$.a[-1]')", 6),
    ),
)
def json_path_query_first(value: object, path: str) -> Any:
    """The first of what `json_path_query` gives: of the values of a path to several places, or of the
    elements of an array; another value is itself the first. NULL if there is none."""
    found = json_path_query(value, path)
    return next(iter(found), None) if isinstance(found, list | tuple) else found


def _document(value: object) -> Any:
    """The value that a path is followed in: that of a JSON text, or the argument itself."""
    return parse_json(value) if isinstance(value, str) else value

"""Lists and objects."""

from __future__ import annotations

from typing import Any

from sinks.template.functions.registry import Function, must_forms
from sinks.template.functions.texts import whole_number
from sinks.template.values import is_true, kind_of, print_value
from sql.errors import DataError
from sql.functions.limits import ELEMENTS_MAX
from sql.types import Value, key_of


def _list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise DataError(f"template: {name} needs a list, not a {kind_of(value)}")
    return list(value)


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"template: {name} needs an object, not a {kind_of(value)}")
    return value


def _dict(*pairs: Any) -> dict[str, Any]:
    if len(pairs) % 2:
        raise DataError("template: dict needs keys and values in turn")
    return {print_value(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}


def _uniq(value: object) -> list[Any]:
    found: dict[Any, Any] = {}
    for item in _list(value, "uniq"):
        found.setdefault(key_of(item), item)
    return list(found.values())


def _until(count: object) -> list[int]:
    if not isinstance(count, int) or not 0 <= count <= ELEMENTS_MAX:
        raise DataError(f"template: until needs a number from 0 to {ELEMENTS_MAX}")
    return list(range(count))


def _until_step(start: object, stop: object, step: object) -> list[int]:
    """From `start` in steps, without `stop`; nothing where the step leads away from it."""
    first, end, by = (whole_number(value, "untilStep") for value in (start, stop, step))
    numbers = range(first, end, by) if by else range(0)
    if len(numbers) > ELEMENTS_MAX:
        raise DataError(f"template: untilStep makes at most {ELEMENTS_MAX} numbers")
    return list(numbers)


def _seq(*bounds: object) -> str:
    """`seq end` from 1, `seq start end`, `seq start step end`: numbers with spaces between, both ends in."""
    numbers = [whole_number(value, "seq") for value in bounds]
    if not numbers:
        return ""
    first, end = numbers[0] if len(numbers) > 1 else 1, numbers[-1]
    one = -1 if end < first else 1
    step = numbers[1] if len(numbers) == 3 else one
    if step * one <= 0:
        return ""
    return " ".join(map(str, _until_step(first, end + one, step)))


def _chunk(size: object, value: object) -> list[list[Any]]:
    """Lists of so many elements, the last with the rest."""
    count, items = whole_number(size, "chunk"), _list(value, "chunk")
    if count <= 0:
        raise DataError("template: chunk needs a size above 0")
    return [items[at : at + count] for at in range(0, len(items), count)]


def _picked(value: Value, names: tuple[Any, ...], *, wanted: bool) -> dict[str, Any]:
    """The entries whose names are among these, or are not."""
    return {key: item for key, item in value.items() if (key in names) == wanted}


def _merged(name: str, *objects: Any, overwrite: bool) -> dict[str, Any]:
    """One object of several, and of the objects in them. The first value of a name counts that is not empty,
    or with `overwrite` the last one."""
    merged: dict[str, Any] = {}
    for value in objects:
        for key, item in _object(value, name).items():
            before = merged.get(key)
            if isinstance(before, dict) and isinstance(item, dict):
                merged[key] = _merged(name, before, item, overwrite=overwrite)
            elif key not in merged or (is_true(item) if overwrite else not is_true(before)):
                merged[key] = item
    return merged


def _merge(*objects: Any) -> dict[str, Any]:
    return _merged("merge", *objects, overwrite=False)


def _merge_overwrite(*objects: Any) -> dict[str, Any]:
    return _merged("mergeOverwrite", *objects, overwrite=True)


def _without(value: object, *items: Any) -> list[Any]:
    left_out = set(map(key_of, items))
    return [item for item in _list(value, "without") if key_of(item) not in left_out]


def _pluck(name: object, *objects: Any) -> list[Any]:
    """The values of one name in several objects, of those that have it."""
    return [found[name] for item in objects if name in (found := _object(item, "pluck"))]


def _dig(*names_default_value: Any) -> Any:
    """The value at a way of names into an object, or the default where it leads nowhere."""
    *names, otherwise, value = names_default_value
    for name in names:
        if name not in (found := _object(value, "dig")):
            return otherwise
        value = found[name]
    return value


_PLAIN: dict[str, Function] = {
    "list": Function(lambda *values: list(values), 0, None),
    "first": Function(lambda value: next(iter(_list(value, "first")), None), 1, 1),
    "last": Function(lambda value: next(reversed(_list(value, "last")), None), 1, 1),
    "rest": Function(lambda value: _list(value, "rest")[1:], 1, 1),
    "initial": Function(lambda value: _list(value, "initial")[:-1], 1, 1),
    "append": Function(lambda value, item: [*_list(value, "append"), item], 2, 2),
    "prepend": Function(lambda value, item: [item, *_list(value, "prepend")], 2, 2),
    "concat": Function(
        lambda *values: [item for value in values for item in _list(value, "concat")], 1, None
    ),
    "reverse": Function(lambda value: _list(value, "reverse")[::-1], 1, 1),
    "uniq": Function(_uniq, 1, 1),
    "compact": Function(lambda value: [item for item in _list(value, "compact") if is_true(item)], 1, 1),
    "sortAlpha": Function(lambda value: sorted(map(print_value, _list(value, "sortAlpha"))), 1, 1),
    "has": Function(lambda item, value: key_of(item) in set(map(key_of, _list(value, "has"))), 2, 2),
    "until": Function(_until, 1, 1),
    "untilStep": Function(_until_step, 3, 3),
    "seq": Function(_seq, 0, 3),
    "chunk": Function(_chunk, 2, 2),
    "without": Function(_without, 1, None),
    "toStrings": Function(lambda value: list(map(print_value, _list(value, "toStrings"))), 1, 1),
    "dict": Function(_dict, 0, None),
    "get": Function(lambda value, key: _object(value, "get").get(key, ""), 2, 2),
    "pluck": Function(_pluck, 2, None),
    "dig": Function(_dig, 3, None),
    "hasKey": Function(lambda value, key: key in _object(value, "hasKey"), 2, 2),
    "pick": Function(lambda value, *names: _picked(_object(value, "pick"), names, wanted=True), 1, None),
    "omit": Function(lambda value, *names: _picked(_object(value, "omit"), names, wanted=False), 1, None),
    "merge": Function(_merge, 1, None),
    "mergeOverwrite": Function(_merge_overwrite, 1, None),
    "deepCopy": Function(lambda value: value, 1, 1),
    "keys": Function(
        lambda *objects: [key for value in objects for key in sorted(_object(value, "keys"))], 1, None
    ),
    "values": Function(lambda value: [item for _, item in sorted(_object(value, "values").items())], 1, 1),
}

_MUST = (
    *("append", "chunk", "compact", "deepCopy", "first", "has", "initial", "last", "merge", "mergeOverwrite"),
    *("prepend", "rest", "reverse", "uniq", "without"),
)

FUNCTIONS: dict[str, Function] = {
    **_PLAIN,
    **must_forms(_PLAIN, _MUST),
    "tuple": _PLAIN["list"],
    "push": _PLAIN["append"],
    "mustPush": _PLAIN["append"],
}

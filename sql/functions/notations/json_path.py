"""A small JSON path: `$`, `.key`, `["key"]`, `[i]`, `[a:b]`, `[*]`, `.*`, `..key`, `[?
@.x > 1 && @.y == "a"]`.

A path compiles to a tuple of steps; each step maps one value to the values it leads to. A step that does not
fit (a key of an array, a comparison of text with a number) leads nowhere and is no error: a path is a search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from sql.errors import DataError
from sql.functions.limits import JSON_DEPTH_MAX
from sql.record import Record
from sql.types import Value, key_of, type_of

Step = Callable[[Any], Iterable[Any]]
Condition = Callable[[Any], bool]
Operand = Callable[[Any], tuple[Any, ...]]
"""The values of an operand, given the current element: none if a path leads nowhere."""


class Path(Record):
    """A compiled path."""

    steps: tuple[Step, ...]
    is_open: bool = False
    """True if the path may lead to several places: it contains a slice, `*`, `..` or a condition."""

    def find(self, value: object) -> Iterator[Any]:
        """All values that the path leads to from `value`, in order."""
        return _follow(value, self.steps)


def compile_path(text: str) -> Path:
    """Compile a path; raises `DataError` with the position of an error.

    >>> list(compile_path("$.a[1]").find({"a": [1, 2]}))
    [2]
    """
    reader = _Reader(text)
    reader.expect(r"\$", "'$'")
    path = _read_steps(reader)
    if reader.rest():
        raise reader.error("a step")
    return path


def _follow(value: object, steps: tuple[Step, ...]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    for inner in steps[0](value):
        yield from _follow(inner, steps[1:])


# --- steps --------------------------------------------------------------------------------------------------


def _member(name: str) -> Step:
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _element(index: int) -> Step:
    def step(value: Value) -> Iterable[Any]:
        fits = isinstance(value, (list, tuple)) and -len(value) <= index < len(value)
        return (value[index],) if fits else ()

    return step


def _slice(start: int | None, end: int | None) -> Step:
    return lambda value: value[start:end] if isinstance(value, (list, tuple)) else ()


def _children(value: object) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def _descendants(value: object) -> Iterator[Any]:
    """The value and all below it, depth first, at most JSON_DEPTH_MAX levels down."""
    stack = [(value, 0)]
    while stack:
        found, depth = stack.pop()
        yield found
        if depth < JSON_DEPTH_MAX:
            stack.extend((inner, depth + 1) for inner in reversed(list(_children(found))))


def _selected(condition: Condition) -> Step:
    return lambda value: [item for item in _children(value) if condition(item)]


# --- reading ------------------------------------------------------------------------------------------------

_NAME = r"[^\W\d][\w-]*"
_STRING = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\''
_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"


class _Reader:
    """A reader of the path text, with its position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.is_open = False
        """True if the part of the path read so far may lead to several places."""
        self.depth = 0

    def take(self, pattern: str) -> str | None:
        """The text matching `pattern` here, white space before it skipped; None, and no
        move, if it does not."""
        found = re.compile(r"\s*(" + pattern + ")").match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found.group(1)

    def expect(self, pattern: str, what: str) -> str:
        found = self.take(pattern)
        if found is None:
            raise self.error(what)
        return found

    def rest(self) -> str:
        return self.text[self.at :].strip()

    def error(self, wanted: str) -> DataError:
        found = f"'{self.rest()[:20]}'" if self.rest() else "the end"
        return DataError(f"JSON path '{self.text}': expected {wanted} at position {self.at}, found {found}")


def _read_steps(reader: _Reader) -> Path:
    steps: list[Step] = []
    outer, reader.is_open = reader.is_open, False
    while True:
        if reader.take(r"\.\."):
            steps.append(_descendants)
            reader.is_open = True
            if not reader.take(r"(?=\[)"):
                steps.append(_read_name(reader))
        elif reader.take(r"\."):
            steps.append(_read_name(reader))
        elif reader.take(r"\["):
            steps.append(_read_bracket(reader))
            reader.expect(r"\]", "']'")
        else:
            path = Path(tuple(steps), reader.is_open)
            reader.is_open = outer
            return path


def _read_name(reader: _Reader) -> Step:
    if reader.take(r"\*"):
        return _all_of(reader)
    return _member(reader.expect(_NAME, "a key or '*'"))


def _all_of(reader: _Reader) -> Step:
    reader.is_open = True
    return _children


def _read_bracket(reader: _Reader) -> Step:
    if reader.take(r"\*"):
        return _all_of(reader)
    if reader.take(r"\?"):
        reader.is_open = True
        return _selected(_read_or(reader))
    quoted = reader.take(_STRING)
    if quoted is not None:
        return _member(_unquoted(quoted))
    start = reader.take(r"-?\d+")
    if reader.take(":"):
        reader.is_open = True
        end = reader.take(r"-?\d+")
        return _slice(int(start) if start else None, int(end) if end else None)
    if start is None:
        raise reader.error("an index, a key in quotes, '*' or '?'")
    return _element(int(start))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)


def _read_or(reader: _Reader) -> Condition:
    parts = [_read_and(reader)]
    while reader.take(r"\|\|"):
        parts.append(_read_and(reader))
    return parts[0] if len(parts) == 1 else lambda item: any(part(item) for part in parts)


def _read_and(reader: _Reader) -> Condition:
    parts = [_read_condition(reader)]
    while reader.take("&&"):
        parts.append(_read_condition(reader))
    return parts[0] if len(parts) == 1 else lambda item: all(part(item) for part in parts)


def _read_condition(reader: _Reader) -> Condition:
    reader.depth += 1
    if reader.depth > JSON_DEPTH_MAX:
        raise reader.error(f"at most {JSON_DEPTH_MAX} conditions (JSON_DEPTH_MAX)")
    if reader.take("!(?!=)"):
        negated = _read_condition(reader)
        return lambda item: not negated(item)
    if reader.take(r"\("):
        inner = _read_or(reader)
        reader.expect(r"\)", "')'")
        return inner
    left = _read_operand(reader)
    operator = reader.take("==|!=|<=|>=|=|<|>")
    if operator is None:
        return lambda item: bool(left(item))
    return _comparison(left, _OPERATORS[operator], _read_operand(reader))


_OPERATORS = {"==": eq, "=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def _comparison(left: Operand, compare: Callable[[Any, Any], Any], right: Operand) -> Condition:
    by_key = compare in (eq, ne)

    def condition(item: object) -> bool:
        for a in left(item):
            for b in right(item):
                if by_key:
                    if compare(key_of(a), key_of(b)):
                        return True
                elif _ordered(a, b) and compare(a, b):
                    return True
        return False

    return condition


def _ordered(a: object, b: object) -> bool:
    kinds = type_of(a), type_of(b)
    return (kinds[0] is kinds[1] and isinstance(a, (str, bool, int, float))) or all(
        kind.is_numeric for kind in kinds
    )


def _read_operand(reader: _Reader) -> Operand:
    if reader.take("@"):
        path = _read_steps(reader)
        return lambda item: tuple(path.find(item))
    literal = reader.take(rf"{_STRING}|{_NUMBER}|(?:true|false|null)\b")
    if literal is None:
        raise reader.error("'@', a number, a text, true, false or null")
    value = (_literal(literal),)
    return lambda item: value


def _literal(text: str) -> Any:
    if text[0] in "\"'":
        return _unquoted(text)
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


_WORDS = {"true": True, "false": False, "null": None}

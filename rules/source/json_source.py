"""JSON read with positions: eKuiper's rule files as they are, tabs and surrogate pairs included."""

from __future__ import annotations

import re
from json import JSONDecodeError, JSONDecoder
from typing import Any

from rules.source.document import Builder, Document
from rules.source.scalars import DIGITS_MAX
from sql.errors import Span

_BLANK = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD = re.compile(r"true|false|null")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECODER = JSONDecoder(strict=True)
_VALUES = {"true": True, "false": False, "null": None}


class _Broken(Exception):
    """The text is not JSON at this offset."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def read(builder: Builder) -> Document | None:
    """The document of the builder's text; None and a reported problem if it is not JSON.

    Recursion is bounded by the builder's limit of depth.
    """
    text = builder.report.text.text
    if not text.strip():
        builder.report.error("R008", "the file is empty", Span(0, 1))
        return None
    try:
        position = _blank(text, _value(text, _blank(text, 0), builder))
        if position < len(text):
            raise _Broken("text after the end of the JSON value", position)
    except _Broken as error:
        builder.report.error("R001", str(error), Span(error.offset, error.offset + 1))
        return None
    return builder.finish()


def _blank(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    assert found is not None
    return found.end()


def _value(text: str, start: int, builder: Builder) -> int:
    """Read the value at `start`; the offset behind it."""
    first = text[start : start + 1]
    if first == "{":
        return _collection(text, start, builder, {}, "}")
    if first == "[":
        return _collection(text, start, builder, [], "]")
    if first == '"':
        value, end = _string(text, start)
        builder.scalar(value, Span(start, end), "json")
        return end
    if word := _WORD.match(text, start):
        builder.scalar(_VALUES[word[0]], Span(*word.span()), "plain")
        return word.end()
    if number := _NUMBER.match(text, start):
        builder.scalar(_number(number, builder), Span(*number.span()), "plain")
        return number.end()
    raise _Broken("a value is missing here" if not first else f"'{first}' cannot begin a JSON value", start)


def _collection(text: str, start: int, builder: Builder, data: Any, close: str) -> int:
    builder.begin(data, Span(start, start + 1))
    position = _blank(text, start + 1)
    while text[position : position + 1] != close:
        if close == "}":
            position = _key(text, position, builder)
        position = _blank(text, _value(text, position, builder))
        following = text[position : position + 1]
        if following == ",":
            comma, position = position, _blank(text, position + 1)
            if text[position : position + 1] == close:
                raise _Broken(f"a comma before '{close}'; JSON does not allow it", comma)
        elif following != close:
            line = builder.report.text.position(start)[0]
            raise _Broken(f"',' or '{close}' is missing; '{text[start]}' was opened in line {line}", position)
    builder.end(position + 1)
    return position + 1


def _key(text: str, start: int, builder: Builder) -> int:
    if text[start : start + 1] != '"':
        raise _Broken("a key in double quotes is missing here", start)
    name, end = _string(text, start)
    builder.key(name, Span(start, end))
    colon = _blank(text, end)
    if text[colon : colon + 1] != ":":
        raise _Broken("':' is missing after the key", colon)
    return _blank(text, colon + 1)


def _string(text: str, start: int) -> tuple[str, int]:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except JSONDecodeError as error:
        message = f"{error.msg[0].lower()}{error.msg[1:]}".removesuffix(" at")
        raise _Broken(f"not a JSON text: {message}", error.pos) from None
    if _SURROGATE.search(value):
        raise _Broken("half of a surrogate pair in this text", start)
    return value, end


def _number(number: re.Match[str], builder: Builder) -> int | float | None:
    written = number[0]
    if len(written) > DIGITS_MAX:
        builder.report.error("R009", f"a number of more than {DIGITS_MAX} characters", Span(*number.span()))
        return None
    if number[1] is None and number[2] is None:
        return int(written)
    value = float(written)
    if value in (float("inf"), float("-inf")):
        builder.report.error("R009", f"'{written}' is too large for a float", Span(*number.span()))
        return None
    return value

"""Text, hashes and base64. The text a function works on is its last argument, so that it can be piped in."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Callable
from typing import Any

from sinks.formats.json_text import json_text
from sinks.template.functions.registry import Function
from sinks.template.values import kind_of, print_value
from sql.errors import DataError
from sql.functions.limits import TEXT_CHARACTERS_MAX


def of_texts(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its arguments as text."""
    return lambda *values: function(*map(print_value, values))


def whole_number(value: object, name: str) -> int:
    """An argument of the function called `name` that is a whole number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError(f"template: {name} needs a whole number, not a {kind_of(value)}")
    return value


def _repeat(count: object, text: object) -> str:
    times, piece = whole_number(count, "repeat"), print_value(text)
    if times < 0 or times * len(piece) > TEXT_CHARACTERS_MAX:
        raise DataError(f"template: repeat makes at most {TEXT_CHARACTERS_MAX} characters")
    return piece * times


def _substr(start: object, end: object, text: object) -> str:
    """Characters from start to end; a negative start means the beginning, a negative end the end."""
    first, last, whole = whole_number(start, "substr"), whole_number(end, "substr"), print_value(text)
    return whole[max(0, first) : last if 0 <= last <= len(whole) else None]


def _trunc(length: object, text: object) -> str:
    """The first `length` characters; the last ones for a negative number."""
    count, whole = whole_number(length, "trunc"), print_value(text)
    return whole[:count] if count >= 0 else whole[count:]


def _indent(count: object, text: object) -> str:
    margin = _repeat(count, " ")
    return margin + print_value(text).replace("\n", "\n" + margin)


def _abbrev(width: object, text: object) -> str:
    most, whole = whole_number(width, "abbrev"), print_value(text)
    return whole if len(whole) <= most or most < 4 else whole[: most - 3] + "..."


def _title(text: str) -> str:
    return re.sub(r"(?<!\w)\w", lambda match: match[0].upper(), text)


def _split(separator: str, text: str) -> dict[str, str]:
    return {
        f"_{number}": piece for number, piece in enumerate(text.split(separator) if separator else list(text))
    }


def _split_n(separator: object, most: object, text: object) -> dict[str, str]:
    """At most so many pieces, the last with the rest of the text; all of them for a negative number."""
    count, mark, whole = whole_number(most, "splitn"), print_value(separator), print_value(text)
    if count == 0:
        return {}
    if mark:
        pieces = whole.split(mark, count - 1 if count > 0 else -1)
    else:
        head = list(whole) if count < 0 else list(whole[: count - 1])
        pieces = head if len(head) == len(whole) else [*head, whole[len(head) :]]
    return {f"_{number}": piece for number, piece in enumerate(pieces)}


def _split_list(separator: str, text: str) -> list[str]:
    return text.split(separator) if separator else list(text)


def _join(separator: object, items: object) -> str:
    values = items if isinstance(items, list | tuple) else [items]
    return print_value(separator).join(print_value(item) for item in values if item is not None)


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise DataError(f"template: b64dec: {error}") from None


def _decoded_32(text: str) -> str:
    try:
        return base64.b32decode(text).decode()
    except (binascii.Error, ValueError) as error:
        raise DataError(f"template: b32dec: {error}") from None


def _fail(reason: str) -> str:
    raise DataError(f"template: {reason}")


def _digest(algorithm: str) -> Callable[..., str]:
    return of_texts(lambda text: hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest())


FUNCTIONS: dict[str, Function] = {
    "upper": Function(of_texts(str.upper), 1, 1),
    "lower": Function(of_texts(str.lower), 1, 1),
    "swapcase": Function(of_texts(str.swapcase), 1, 1),
    "initials": Function(of_texts(lambda text: "".join(word[0] for word in text.split())), 1, 1),
    "plural": Function(lambda one, many, count: one if count == 1 else many, 3, 3),
    "title": Function(of_texts(_title), 1, 1),
    "untitle": Function(
        of_texts(lambda text: re.sub(r"(?<!\w)\w", lambda match: match[0].lower(), text)), 1, 1
    ),
    "trim": Function(of_texts(str.strip), 1, 1),
    "trimAll": Function(of_texts(lambda characters, text: text.strip(characters)), 2, 2),
    "trimall": Function(of_texts(lambda characters, text: text.strip(characters)), 2, 2),
    "trimPrefix": Function(of_texts(lambda part, text: text.removeprefix(part)), 2, 2),
    "trimSuffix": Function(of_texts(lambda part, text: text.removesuffix(part)), 2, 2),
    "replace": Function(of_texts(lambda old, new, text: text.replace(old, new)), 3, 3),
    "contains": Function(of_texts(lambda part, text: part in text), 2, 2),
    "hasPrefix": Function(of_texts(lambda part, text: text.startswith(part)), 2, 2),
    "hasSuffix": Function(of_texts(lambda part, text: text.endswith(part)), 2, 2),
    "repeat": Function(_repeat, 2, 2),
    "substr": Function(_substr, 3, 3),
    "trunc": Function(_trunc, 2, 2),
    "abbrev": Function(_abbrev, 2, 2),
    "nospace": Function(of_texts(lambda text: "".join(text.split())), 1, 1),
    "indent": Function(_indent, 2, 2),
    "nindent": Function(lambda count, text: "\n" + _indent(count, text), 2, 2),
    "quote": Function(of_texts(lambda *texts: " ".join(map(json_text, texts))), 1, None),
    "squote": Function(of_texts(lambda *texts: " ".join(f"'{text}'" for text in texts)), 1, None),
    "cat": Function(
        lambda *values: " ".join(print_value(value) for value in values if value is not None), 1, None
    ),
    "split": Function(of_texts(_split), 2, 2),
    "splitn": Function(_split_n, 3, 3),
    "splitList": Function(of_texts(_split_list), 2, 2),
    "join": Function(_join, 2, 2),
    "toString": Function(print_value, 1, 1),
    "b32enc": Function(of_texts(lambda text: base64.b32encode(text.encode()).decode()), 1, 1),
    "b32dec": Function(of_texts(_decoded_32), 1, 1),
    "b64enc": Function(of_texts(lambda text: base64.b64encode(text.encode()).decode()), 1, 1),
    "b64dec": Function(of_texts(_decoded), 1, 1),
    "base64": Function(of_texts(lambda text: base64.b64encode(text.encode()).decode()), 1, 1),
    "sha1sum": Function(_digest("sha1"), 1, 1),
    "sha256sum": Function(_digest("sha256"), 1, 1),
    "sha512sum": Function(_digest("sha512"), 1, 1),
    "md5sum": Function(_digest("md5"), 1, 1),
    "adler32sum": Function(of_texts(lambda text: str(zlib.adler32(text.encode()))), 1, 1),
    "fail": Function(of_texts(_fail), 1, 1),
}

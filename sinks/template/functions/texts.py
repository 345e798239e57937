"""Text, hashes and base64. The text a function works on is its last argument, so that it can be piped in."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from typing import Any

from sinks.formats.json_text import json_text
from sinks.template.functions.registry import Function
from sinks.template.values import kind_of, print_value
from sql.errors import DataError
from sql.functions.limits import TEXT_CHARACTERS_MAX
from sql.functions.notations.regex import compile_regex


def _texts(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its arguments as text."""
    return lambda *values: function(*map(print_value, values))


def _whole(value: object, name: str) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError(f"template: {name} needs a whole number, not a {kind_of(value)}")
    return value


def _repeat(count: object, text: object) -> str:
    times, piece = _whole(count, "repeat"), print_value(text)
    if times < 0 or times * len(piece) > TEXT_CHARACTERS_MAX:
        raise DataError(f"template: repeat makes at most {TEXT_CHARACTERS_MAX} characters")
    return piece * times


def _substr(start: object, end: object, text: object) -> str:
    """Characters from start to end; a negative start means the beginning, a negative end the end."""
    first, last, whole = _whole(start, "substr"), _whole(end, "substr"), print_value(text)
    return whole[max(0, first) : last if 0 <= last <= len(whole) else None]


def _trunc(length: object, text: object) -> str:
    """The first `length` characters; the last ones for a negative number."""
    count, whole = _whole(length, "trunc"), print_value(text)
    return whole[:count] if count >= 0 else whole[count:]


def _indent(count: object, text: object) -> str:
    margin = _repeat(count, " ")
    return margin + print_value(text).replace("\n", "\n" + margin)


def _abbrev(width: object, text: object) -> str:
    most, whole = _whole(width, "abbrev"), print_value(text)
    return whole if len(whole) <= most or most < 4 else whole[: most - 3] + "..."


def _title(text: str) -> str:
    return re.sub(r"(?<!\w)\w", lambda match: match[0].upper(), text)


def _split(separator: str, text: str) -> dict[str, str]:
    return {
        f"_{number}": piece for number, piece in enumerate(text.split(separator) if separator else list(text))
    }


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


def _digest(algorithm: str) -> Callable[..., str]:
    return _texts(lambda text: hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest())


def _matches(pattern: str, text: str) -> bool:
    return compile_regex(pattern).first(text) is not None


def _find(pattern: str, text: str) -> str:
    return compile_regex(pattern).first(text) or ""


def _replace_all(pattern: str, text: str, by: str) -> str:
    return compile_regex(pattern).replace(text, by)


FUNCTIONS: dict[str, Function] = {
    "upper": Function(_texts(str.upper), 1, 1),
    "lower": Function(_texts(str.lower), 1, 1),
    "swapcase": Function(_texts(str.swapcase), 1, 1),
    "initials": Function(_texts(lambda text: "".join(word[0] for word in text.split())), 1, 1),
    "plural": Function(lambda one, many, count: one if count == 1 else many, 3, 3),
    "title": Function(_texts(_title), 1, 1),
    "untitle": Function(
        _texts(lambda text: re.sub(r"(?<!\w)\w", lambda match: match[0].lower(), text)), 1, 1
    ),
    "trim": Function(_texts(str.strip), 1, 1),
    "trimAll": Function(_texts(lambda characters, text: text.strip(characters)), 2, 2),
    "trimall": Function(_texts(lambda characters, text: text.strip(characters)), 2, 2),
    "trimPrefix": Function(_texts(lambda part, text: text.removeprefix(part)), 2, 2),
    "trimSuffix": Function(_texts(lambda part, text: text.removesuffix(part)), 2, 2),
    "replace": Function(_texts(lambda old, new, text: text.replace(old, new)), 3, 3),
    "contains": Function(_texts(lambda part, text: part in text), 2, 2),
    "hasPrefix": Function(_texts(lambda part, text: text.startswith(part)), 2, 2),
    "hasSuffix": Function(_texts(lambda part, text: text.endswith(part)), 2, 2),
    "repeat": Function(_repeat, 2, 2),
    "substr": Function(_substr, 3, 3),
    "trunc": Function(_trunc, 2, 2),
    "abbrev": Function(_abbrev, 2, 2),
    "nospace": Function(_texts(lambda text: "".join(text.split())), 1, 1),
    "indent": Function(_indent, 2, 2),
    "nindent": Function(lambda count, text: "\n" + _indent(count, text), 2, 2),
    "quote": Function(_texts(lambda *texts: " ".join(map(json_text, texts))), 1, None),
    "squote": Function(_texts(lambda *texts: " ".join(f"'{text}'" for text in texts)), 1, None),
    "cat": Function(
        lambda *values: " ".join(print_value(value) for value in values if value is not None), 1, None
    ),
    "split": Function(_texts(_split), 2, 2),
    "splitList": Function(_texts(_split_list), 2, 2),
    "join": Function(_join, 2, 2),
    "toString": Function(print_value, 1, 1),
    "regexMatch": Function(_texts(_matches), 2, 2),
    "regexReplaceAll": Function(_texts(_replace_all), 3, 3),
    "regexFind": Function(_texts(_find), 2, 2),
    "b32enc": Function(_texts(lambda text: base64.b32encode(text.encode()).decode()), 1, 1),
    "b64enc": Function(_texts(lambda text: base64.b64encode(text.encode()).decode()), 1, 1),
    "b64dec": Function(_texts(_decoded), 1, 1),
    "base64": Function(_texts(lambda text: base64.b64encode(text.encode()).decode()), 1, 1),
    "sha1sum": Function(_digest("sha1"), 1, 1),
    "sha256sum": Function(_digest("sha256"), 1, 1),
    "sha512sum": Function(_digest("sha512"), 1, 1),
    "md5sum": Function(_digest("md5"), 1, 1),
}

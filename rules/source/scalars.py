"""The values of plain scalars, and the position in the file of each character of a scalar's value.

Plain scalars follow the core schema of YAML 1.2: only `true` and `false` are booleans (`on`, `off`, `yes`,
`no` stay text), `12:30:45` and dates stay text, `010` is ten, `0o10` eight, `1e3` a float.
"""

from __future__ import annotations

import re
from typing import Any

from rules.source.document import Place

_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".inf": float("inf"), ".Inf": float("inf"), ".INF": float("inf"), "+.inf": float("inf"),
    "-.inf": float("-inf"), ".nan": float("nan"), ".NaN": float("nan"), ".NAN": float("nan"),
}  # fmt: skip
DIGITS_MAX = 1000
"""The longest whole number, in digits; a longer one is a `ValueError`."""


def resolve_plain(text: str) -> Any:
    """The value of an unquoted scalar. Raises ValueError for a number that is too long or too large.

    >>> [resolve_plain(text) for text in ("on", "12:30:45", "010", "1e3", "0x1F", "~", "2026-01-01")]
    ['on', '12:30:45', 10, 1000.0, 31, None, '2026-01-01']
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if len(text) > DIGITS_MAX and (_INTEGER.fullmatch(text) or _FLOAT.fullmatch(text)):
        raise ValueError(f"a number of more than {DIGITS_MAX} characters; quote it if it is text")
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise ValueError(f"'{text}' is too large for a float; quote it if it is text")
        return number
    if _OCTAL.fullmatch(text):
        return int(text.removeprefix("0o"), 8)
    return int(text.removeprefix("0x"), 16) if _HEXADECIMAL.fullmatch(text) else text


def was_octal(text: str) -> bool:
    """True if YAML 1.1 read this number with leading zeros in base eight, unlike us."""
    return re.fullmatch(r"[-+]?0[0-7]*[1-7][0-7]*", text) is not None


def offsets(source: str, place: Place, value: str) -> list[int]:
    """For each character of a text scalar's value, and for its end, its offset in the file.

    Folding, indentation, chomping and quoting only ever touch white space and escapes, so the characters that
    are not white space stand in the file in the same order as in the value. They are paired one by one; white
    space lies directly behind what precedes it.
    """
    marks = _visible(source, place)
    needed = sum(not char.isspace() for char in value)
    if needed > len(marks):
        return [place.value.start] * (len(value) + 1)
    result: list[int] = []
    behind = _content_start(source, place)
    following = iter(marks)
    for char in value:
        if not char.isspace():
            behind, end = next(following)
            result.append(behind)
            behind = end
        else:
            result.append(behind)
            # Never run past the line: a fold's blank is the line's end.
            behind += source[behind : behind + 1] in (" ", "\t")
    result.append(behind)
    return result


_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\r\n|.)",
    re.DOTALL,
)
_BLANK_ESCAPES = frozenset("ntrvf _NLP\t\n\r")


def _visible(source: str, place: Place) -> list[tuple[int, int]]:
    """Start and end of every character in the file that gives one non-blank character of the value."""
    position, last = _content_start(source, place), place.value.end
    if place.style in ("'", '"', "json"):
        last -= 1
    found = []
    while position < last:
        char, width = source[position], 1
        blank = char.isspace()
        if char == "\\" and place.style in ('"', "json"):
            escape = _ESCAPE.match(source, position)
            width = len(escape[0]) if escape else 1
            blank = escape is not None and _is_blank_escape(escape[0])
        elif char == "'" and place.style == "'":
            width = 2
        if not blank:
            found.append((position, position + width))
        position += width
    return found


def _is_blank_escape(escape: str) -> bool:
    if escape[1] in "xuU" and len(escape) > 2 and escape.count("\\") == 1:
        return chr(int(escape[2:], 16)).isspace()  # noqa: FURB166 - the prefix is a backslash and a letter
    return escape[1] in _BLANK_ESCAPES


def _content_start(source: str, place: Place) -> int:
    if place.style in ("|", ">"):
        newline = source.find("\n", place.value.start)
        return place.value.end if newline < 0 else newline + 1
    return place.value.start + (place.style in ("'", '"', "json"))

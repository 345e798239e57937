"""Time patterns such as `YYYY-MM-dd HH:mm:ss.SSS`: from an instant to text, and from text to an instant.

    Y y  year, 4 or 2 digits               a    AM or PM
    G    era: AD                           m    minute
    M    month: 1, 01, Jan, January        s    second
    d    day of the month                  S    fraction of the second, as many digits as letters
    E    day of the week: Mon, Monday      z    zone name
    H    hour 0 to 23                      Z    offset: +0100, ZZZ +01:00
    h    hour 1 to 12                      X    offset: +01, XX +0100, XXX +01:00

Every other character stands for itself, `T` too. A backslash takes the next character as it is, single quotes
take all between them, and two of them are one quote. A fraction adds its point if none stands before it:
`ssSSS` and `ss.SSS` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from sql.errors import DataError
from sql.functions.instants import DAYS, MONTHS
from sql.functions.limits import CACHED_PATTERNS

Field = tuple[str, int]
"""A letter and the number of its repetitions; a literal character is ('', its code point)."""


_TOKEN = re.compile(
    r"\\(?P<escaped>.)|'(?P<quoted>[^']*)'|(?P<letter>[A-Za-z])(?P=letter)*|(?P<other>.)", re.DOTALL
)


@lru_cache(CACHED_PATTERNS)
def fields_of(pattern: str) -> tuple[Field, ...]:
    """The fields of a pattern; raises `DataError` for a letter, or a number of them, without a meaning.

    >>> fields_of("YYYY-M")
    (('Y', 4), ('', 45), ('M', 1))
    """
    fields: list[Field] = []
    for token in _TOKEN.finditer(pattern):
        letter = "Y" if token["letter"] == "y" else token["letter"]
        if letter is None or letter not in _WIDTHS:
            fields += [("", ord(character)) for character in _as_written(token)]
            continue
        width = len(token[0])
        if width > _WIDTHS[letter] or (letter == "Y" and width % 2):
            raise DataError(
                f"time pattern '{pattern}': '{token[0]}' has no meaning; write it as text with '\\'"
            )
        if letter == "S" and fields[-1:] not in _POINTS:
            fields += _POINTS[0]
        fields.append((letter, width))
    return tuple(fields)


def _as_written(token: re.Match[str]) -> str:
    """The literal characters of a part of a pattern."""
    if token["quoted"] is not None:
        return token["quoted"] or "'"
    return token["escaped"] or token[0]


_POINTS: tuple[list[Field], ...] = ([("", ord("."))], [("", ord(","))])
_WIDTHS = {
    "Y": 4, "G": 1, "M": 4, "d": 2, "E": 4, "H": 2, "h": 2, "a": 2, "m": 2, "s": 2, "S": 9, "z": 4, "Z": 3,
    "X": 3,
}  # fmt: skip
"""The letters with a meaning, and the most repetitions of each."""


def format_moment(found: datetime, pattern: str) -> str:
    """The moment written by the pattern.

    >>> format_moment(datetime(2024, 1, 2, 15, 4), "E d MMM YY, h:mm a")
    'Tue 2 Jan 24, 3:04 PM'
    """
    return "".join([_WRITERS[letter](found, width) for letter, width in fields_of(pattern)])


def _number(part: Callable[[datetime], int]) -> Callable[[datetime, int], str]:
    return lambda found, width: f"{part(found):0{width}d}"


def _month(found: datetime, width: int) -> str:
    if width <= 2:
        return f"{found.month:0{width}d}"
    name = MONTHS[found.month - 1]
    return name if width == 4 else name[:3]


def _day_name(found: datetime, width: int) -> str:
    name = DAYS[found.weekday()]
    return name if width == 4 else name[:3]


def _offset(found: datetime, width: int) -> str:
    """`+01`, `+0100` or `+01:00` by width 1, 2, 3; minutes other than 0 are shown at width 1 too."""
    minutes = int((found.utcoffset() or timedelta()).total_seconds()) // 60
    sign, minutes = ("-", -minutes) if minutes < 0 else ("+", minutes)
    hours, rest = divmod(minutes, 60)
    if width == 3:
        return f"{sign}{hours:02d}:{rest:02d}"
    return f"{sign}{hours:02d}{rest:02d}" if width == 2 or rest else f"{sign}{hours:02d}"


_WRITERS: dict[str, Callable[[datetime, int], str]] = {
    "": lambda found, code: chr(code),
    "Y": lambda found, width: f"{found.year:04d}"[-width:],
    "G": lambda found, width: "AD",
    "M": _month,
    "d": _number(lambda found: found.day),
    "E": _day_name,
    "H": _number(lambda found: found.hour),
    "h": _number(lambda found: found.hour % 12 or 12),
    "a": lambda found, width: "PM" if found.hour >= 12 else "AM",
    "m": _number(lambda found: found.minute),
    "s": _number(lambda found: found.second),
    "S": lambda found, width: f"{found.microsecond:06d}000"[:width],
    "z": lambda found, width: found.tzname() or "",
    "Z": lambda found, width: _offset(found, max(width, 2)),
    "X": _offset,
}


# --- from text ----------------------------------------------------------------------------------------------


def parse_moment(text: str, pattern: str, zone: tzinfo) -> datetime:
    """The moment of `text` by the pattern; parts that it lacks are those of 1970-01-01 00:00 in `zone`.

    >>> parse_moment("02/01/24 3 PM", "dd/MM/YY h a", UTC).isoformat()
    '2024-01-02T15:00:00+00:00'
    """
    found = _matcher(pattern).fullmatch(text)
    if found is None:
        raise DataError(f"'{text[:40]}' does not fit the time pattern '{pattern}'")
    said = {name: value for name, value in found.groupdict().items() if value is not None}
    try:
        offset = said.get("offset")
        return datetime(
            _year(said),
            _month_number(said),
            int(said.get("d", 1)),
            _hour(said),
            int(said.get("m", 0)),
            int(said.get("s", 0)),
            int(f"{said.get('S', '0'):0<6}"[:6]),
            zone if offset is None else _zone(offset),
        )
    except ValueError as error:
        raise DataError(f"'{text[:40]}' is not a date: {error}") from None


def check_readable(pattern: str) -> None:
    """Raise `DataError` for a pattern that cannot parse any text."""
    _matcher(pattern)


@lru_cache(CACHED_PATTERNS)
def _matcher(pattern: str) -> re.Pattern[str]:
    """A pattern without ambiguous repetition: every field matches a bounded number of characters."""
    parts: list[str] = []
    seen: set[str] = set()
    for letter, width in fields_of(pattern):
        name = "offset" if letter in ("Z", "X") else letter
        if letter and name in seen:
            raise DataError(
                f"time pattern '{pattern}': '{letter}' stands twice, so text cannot be read by it"
            )
        seen.add(name)
        parts.append(re.escape(chr(width)) if not letter else f"(?P<{name}>{_expression(letter, width)})")
    return re.compile("".join(parts), re.IGNORECASE | re.ASCII)


def _expression(letter: str, width: int) -> str:
    if letter == "M" and width > 2:
        return "|".join(name if width == 4 else name[:3] for name in MONTHS)
    if letter == "E":
        return "|".join(name if width == 4 else name[:3] for name in DAYS)
    if letter in ("Y", "S"):
        return rf"\d{{{width}}}"
    return _EXPRESSIONS.get(letter, r"\d{2}" if width == 2 else r"\d{1,2}")


_EXPRESSIONS = {
    "a": "AM|PM",
    "G": "AD",
    "z": "UTC|GMT",
    "Z": r"Z|[+-]\d\d:?\d\d",
    "X": r"Z|[+-]\d\d(?::?\d\d)?",
}


def _year(said: dict[str, str]) -> int:
    text = said.get("Y", "1970")
    if len(text) == 4:
        return int(text)
    return int(text) + (1900 if int(text) >= 69 else 2000)  # POSIX: 69 to 99 are of the last century


def _month_number(said: dict[str, str]) -> int:
    text = said.get("M", "1")
    if text.isdigit():
        return int(text)
    return [name[:3].lower() for name in MONTHS].index(text[:3].lower()) + 1


def _hour(said: dict[str, str]) -> int:
    if "H" in said:
        return int(said["H"])
    hour = int(said.get("h", 0))
    if "a" not in said:
        return hour
    return hour % 12 + (12 if said["a"].upper() == "PM" else 0)


def _zone(offset: str) -> tzinfo:
    if offset in "Zz":
        return UTC
    digits = offset[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
    return timezone(timedelta(minutes=-minutes if offset[0] == "-" else minutes))

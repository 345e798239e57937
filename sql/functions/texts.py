"""Text: joining, cutting, searching, padding. Positions count characters from 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.errors import DataError
from sql.functions.limits import TEXT_CHARACTERS_MAX, within
from sql.functions.registry import Parameter, function
from sql.types import Type, Value, as_text

TEXT = Parameter("text", Type.STRING, as_text=True)
PART = Parameter("part", Type.STRING, as_text=True)


@function(
    "concat",
    category="string",
    returns=Type.STRING,
    nulls="pass",
    parameters=(Parameter("x"), Parameter("more", variadic=True)),
    examples=(("concat('a', NULL, 'b')", "ab"), ("concat('t', 20)", "t20")),
)
def concat(*values: Any) -> str:
    """The arguments as text, one after the other; NULL counts as empty text. Arrays
    and objects are errors."""
    return "".join(
        [value if value.__class__ is str else as_text(value) for value in values if value is not None]
    )


@function(
    "length",
    category="string",
    returns=Type.INTEGER,
    nulls="pass",
    parameters=(Parameter("x"),),
    inline="len({0})",
    examples=(("length('Grüße')", 5), ("length(NULL)", 0), ("length(array_create(1, 2))", 2)),
)
def length(value: Value) -> int:
    """The number of characters of a text, elements of an array, keys of an object; 0 for NULL.

    A number or a boolean counts as its text.
    """
    if value is None:
        return 0
    return len(as_text(value) if value.__class__ in (int, float, bool) else value)


@function(
    "numbytes",
    category="string",
    returns=Type.INTEGER,
    nulls="pass",
    parameters=(TEXT,),
    examples=(("numbytes('ü')", 2), ("numbytes(NULL)", 0)),
)
def numbytes(text: str | None) -> int:
    """The length of the text in UTF-8 bytes; 0 for NULL."""
    return len(text.encode()) if text else 0


@function(
    "lower",
    category="string",
    returns=Type.STRING,
    parameters=(TEXT,),
    inline="str.lower({0})",
    examples=(("lower('Abc')", "abc"),),
)
def lower(text: str) -> str:
    """The text in lower case."""
    return text.lower()


@function(
    "upper",
    category="string",
    returns=Type.STRING,
    parameters=(TEXT,),
    inline="str.upper({0})",
    examples=(("upper('Abc')", "ABC"),),
)
def upper(text: str) -> str:
    """The text in upper case."""
    return text.upper()


@function(
    "reverse",
    category="string",
    returns=Type.STRING,
    parameters=(TEXT,),
    examples=(("reverse('abc')", "cba"),),
)
def reverse(text: str) -> str:
    """The characters in reverse order."""
    return text[::-1]


@function(
    "trim",
    category="string",
    returns=Type.STRING,
    parameters=(TEXT,),
    inline="str.strip({0})",
    examples=(("trim('  a ')", "a"),),
)
def trim(text: str) -> str:
    """The text without white space at both ends."""
    return text.strip()


@function(
    "ltrim",
    category="string",
    returns=Type.STRING,
    parameters=(TEXT,),
    inline="str.lstrip({0})",
    examples=(("ltrim('  a ')", "a "),),
)
def ltrim(text: str) -> str:
    """The text without white space at its beginning."""
    return text.lstrip()


@function(
    "rtrim",
    category="string",
    returns=Type.STRING,
    parameters=(TEXT,),
    inline="str.rstrip({0})",
    examples=(("rtrim('  a ')", "  a"),),
)
def rtrim(text: str) -> str:
    """The text without white space at its end."""
    return text.rstrip()


def _count(n: int) -> None:
    if n < 0:
        raise DataError(f"padding takes a number of characters from 0, not {n}")


N = Parameter("n", Type.INTEGER, check=_count)
FILL = Parameter("fill", Type.STRING, optional=True)


@function(
    "lpad",
    category="string",
    returns=Type.STRING,
    parameters=(TEXT, N, FILL),
    examples=(("lpad('ab', 2)", "  ab"), ("lpad('7', 3, '0')", "007"), ("lpad('abcd', 3, '0')", "abc")),
)
def lpad(text: str, n: int, fill: str | None = None) -> str:
    """`lpad(text, n)` puts n spaces before the text. `lpad(text, n, fill)` fills or cuts it to n
    characters."""
    padding = _padding(text, n, fill)
    return padding + text if fill is None else padding + text[:n]


@function(
    "rpad",
    category="string",
    returns=Type.STRING,
    parameters=(TEXT, N, FILL),
    examples=(("rpad('ab', 2)", "ab  "), ("rpad('7', 3, 'ab')", "7ab"), ("rpad('abcd', 3, '0')", "abc")),
)
def rpad(text: str, n: int, fill: str | None = None) -> str:
    """`rpad(text, n)` puts n spaces behind the text. `rpad(text, n, fill)` fills or cuts it to n
    characters."""
    padding = _padding(text, n, fill)
    return text + padding if fill is None else text[:n] + padding


def _padding(text: str, n: int, fill: str | None) -> str:
    _count(n)
    within(n if fill is not None else n + len(text), TEXT_CHARACTERS_MAX, "TEXT_CHARACTERS_MAX")
    if fill is None:
        return " " * n
    missing = max(0, n - len(text))
    if missing and not fill:
        raise DataError("padding to a width takes a fill text that is not empty")
    return (fill * (missing // len(fill) + 1))[:missing] if missing else ""


@function(
    "startswith",
    category="string",
    returns=Type.BOOLEAN,
    nulls="pass",
    parameters=(TEXT, PART),
    inline="str.startswith({0}, {1})",
    examples=(("startswith('pump-1', 'pump')", True), ("startswith(NULL, 'a')", False)),
)
def startswith(text: str | None, part: str | None) -> bool:
    """True if the text begins with the part; false if either is NULL."""
    return text is not None and part is not None and text.startswith(part)


@function(
    "endswith",
    category="string",
    returns=Type.BOOLEAN,
    nulls="pass",
    parameters=(TEXT, PART),
    inline="str.endswith({0}, {1})",
    examples=(("endswith('pump-1', '-1')", True), ("endswith('a', NULL)", False)),
)
def endswith(text: str | None, part: str | None) -> bool:
    """True if the text ends with the part; false if either is NULL."""
    return text is not None and part is not None and text.endswith(part)


@function(
    "indexof",
    category="string",
    returns=Type.INTEGER,
    nulls="pass",
    parameters=(TEXT, PART),
    inline="str.find({0}, {1})",
    examples=(("indexof('abc', 'c')", 2), ("indexof('abc', 'x')", -1)),
)
def indexof(text: str | None, part: str | None) -> int:
    """The position of the part's first occurrence in the text, from 0; -1 if none or either is NULL."""
    return -1 if text is None or part is None else text.find(part)


def _start(start: int) -> None:
    if start < 0:
        raise DataError(f"substring() takes a start from 0, not {start}")


def _length(length: int) -> None:
    if length < 0:
        raise DataError(f"substring() takes a length from 0, not {length}")


@function(
    "substring",
    category="string",
    returns=Type.STRING,
    parameters=(
        TEXT,
        Parameter("start", Type.INTEGER, check=_start),
        Parameter("length", Type.INTEGER, optional=True, check=_length),
    ),
    examples=(("substring('abcdef', 2)", "cdef"), ("substring('abcdef', 2, 3)", "cde")),
)
def substring(text: str, start: int, length: int | None = None) -> str:
    """The characters from `start` (from 0), at most `length` of them. Past the end there are none."""
    _start(start)
    if length is None:
        return text[start:]
    _length(length)
    return text[start : start + length]


def _constant_index(index: int) -> None:
    if index < 0:
        raise DataError(
            f"split_value() takes a constant index from 0, not {index}; element_at() counts from the end"
        )


@function(
    "split_value",
    category="string",
    returns=Type.STRING,
    parameters=(
        TEXT,
        Parameter("separator", Type.STRING, as_text=True),
        Parameter("index", Type.INTEGER, check=_constant_index),
    ),
    examples=(("split_value('a/b/c', '/', 1)", "b"), ("split_value('abc', '', 1)", "b")),
)
def split_value(text: str, separator: str, index: int) -> str:
    """The piece at `index` (from 0) of the text cut at the separator; an index from the data may be negative.

    A negative index counts from the end: -1 is the last piece. An index out of range is an error. An empty
    separator cuts the text into its characters.
    """
    pieces: Sequence[str] = text.split(separator) if separator else text
    if not -len(pieces) <= index < len(pieces):
        raise DataError(f"split_value() has {len(pieces)} pieces, so none at {index}")
    return pieces[index]


@function(
    "replace",
    category="string",
    returns=Type.STRING,
    parameters=(TEXT, Parameter("from", Type.STRING), Parameter("to", Type.STRING)),
    examples=(("replace('a-b-c', '-', '+')", "a+b+c"), ("replace('abc', '', 'x')", "abc")),
)
def replace(text: str, part: str, by: str) -> str:
    """The text with every occurrence of a part replaced; an empty part is found nowhere."""
    if not part:
        return text
    within(len(text) + text.count(part) * (len(by) - len(part)), TEXT_CHARACTERS_MAX, "TEXT_CHARACTERS_MAX")
    return text.replace(part, by)

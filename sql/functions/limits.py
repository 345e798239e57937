"""The bounds of arguments and results of functions: no event can make the gateway run out of memory or time.

Each is reported with its name when an event meets it; such an event is an error event, the rule goes on.
"""

from __future__ import annotations

from sql.errors import DataError

ELEMENTS_MAX = 100_000
"""The most elements of an array that `repeat` and `sequence` make."""

TEXT_CHARACTERS_MAX = 1_000_000
"""The longest text that `lpad`, `rpad`, `replace` and `regexp_replace` make."""

INTEGER_BITS_MAX = 1024
"""The longest integer that `power` makes, in bits: about 308 decimal digits, the range of a float."""

DECIMALS_MAX = 30
"""The most decimals of `format`."""

JSON_DEPTH_MAX = 100
"""The deepest nesting that `parse_json` and `to_json` take."""

DECOMPRESSED_BYTES_MAX = 16 * 1024 * 1024
"""The largest result of `decompress`, in bytes: a small message must not unpack into all of the memory."""

REGEX_STEPS_MAX = 100_000_000
"""The most backtracking steps that a pattern may need on a text, estimated from above, if google-re2 is not
installed."""

CACHED_PATTERNS = 512
"""The number of regular expressions, JSON paths and time patterns kept compiled, each kind apart."""


def within(size: int, bound: int, name: str) -> int:
    """`size`; raises `DataError` with the name of the bound that it exceeds.

    >>> within(3, 10, "ELEMENTS_MAX")
    3
    """
    if size > bound:
        raise DataError(f"a result of {size} exceeds {name}, which is {bound}")
    return size

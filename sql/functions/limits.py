"""The bounds on what a function may produce or take in: no event can make the gateway
run out of memory or time.

Each is reported with its name when an event meets it; such an event is an error event, the rule goes on.
"""

from __future__ import annotations

from sql.errors import DataError

ELEMENTS_MAX = 100_000
"""Most elements of an array that `repeat` and `sequence` make."""

TEXT_CHARACTERS_MAX = 1_000_000
"""Longest text that `lpad`, `rpad`, `replace` and `regexp_replace` make."""

INTEGER_BITS_MAX = 1024
"""Largest integer `power` makes: about 308 decimal digits, the range of a float."""

DECIMALS_MAX = 30
"""Most decimals of `format`, `round` and `trunc`."""

JSON_DEPTH_MAX = 100
"""Deepest nesting `parse_json` and `to_json` take."""

DECOMPRESSED_BYTES_MAX = 16 * 1024 * 1024
"""Largest result of `decompress`: a small message must not unpack into all of the memory."""

REGEX_STEPS_MAX = 100_000_000
"""Most backtracking steps a pattern may need on a text, estimated from above, when google-re2 is not
installed."""

CACHED_PATTERNS = 512
"""Regular expressions, JSON paths and time patterns kept compiled, each kind apart."""


def within(size: int, bound: int, name: str) -> int:
    """`size`, or a `DataError` naming the bound it exceeds.

    >>> within(3, 10, "ELEMENTS_MAX")
    3
    """
    if size > bound:
        raise DataError(f"a result of {size} exceeds {name}, which is {bound}")
    return size

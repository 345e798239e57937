"""Lengths of time as words."""

from __future__ import annotations

_LENGTHS = ((86_400_000, "day"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def length(millis: int) -> str:
    """A length of time in its largest fitting unit.

    >>> length(10_000), length(1500), length(90_000), length(250), length(86_400_000)
    ('10 s', '1.5 s', '1.5 min', '250 ms', '1 day')
    """
    for unit_ms, name in _LENGTHS:
        if millis >= unit_ms and (millis * 10) % unit_ms == 0:
            plural = "s" if name == "day" and millis != unit_ms else ""
            return f"{f'{millis / unit_ms:.1f}'.removesuffix('.0')} {name}{plural}"
    return f"{millis} ms"


def about(millis: int) -> str:
    """A length of time in whole numbers of the largest unit that it has at least two of, rounded down.

    >>> about(125_900), about(90_400), about(250), about(1_795_814_926_997)
    ('2 min', '1.5 min', '250 ms', '20784 days')
    """
    unit_ms = next((unit_ms for unit_ms, _ in _LENGTHS if millis >= 2 * unit_ms), 1)
    return length(millis // unit_ms * unit_ms)

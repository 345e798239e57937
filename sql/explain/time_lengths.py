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
            return f"{millis / unit_ms:g} {name}{plural}"
    return f"{millis} ms"

"""Numbers with what they count."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """The number with its noun.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"

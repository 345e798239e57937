"""Numeric noise of the reference: its standard deviation of equal values is now and then
6e-08 or NaN instead of 0.

The deviations of the scenarios' small numbers are either 0 or far from it. So where the reference says NaN or
nearly nothing an exact 0 is as good an answer (semantics: variance and deviation by a stable method).
"""

from __future__ import annotations

import re
from typing import Any

DEVIATION = re.compile(r"\bstddev\([^)]*\)\s+as\s+(\w+)", re.IGNORECASE)
NEARLY_NOTHING = 1e-6


class Noise:
    """An expected value that may be noise around an exact 0."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"0.0 (the reference says {self.value!r})"


def with_noise(steps: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The steps of a scenario, what may be noise in their expectations marked."""
    columns = frozenset(DEVIATION.findall(text))
    if not columns:
        return steps
    return [
        {**step, "expect": [_emission(item, columns) for item in step["expect"]]}
        if "expect" in step
        else step
        for step in steps
    ]


def _emission(emission: dict[str, Any], columns: frozenset[str]) -> dict[str, Any]:
    sides: dict[str, Any] = {
        side: [_row(row, columns) for row in emission[side]]
        for side in ("insert", "remove")
        if side in emission
    }
    return {**emission, **sides}


def _row(row: dict[str, Any], columns: frozenset[str]) -> dict[str, Any]:
    return {
        name: Noise(value) if name in columns and _may_be_noise(value) else value
        for name, value in row.items()
    }


def _may_be_noise(value: Any) -> bool:
    return value == "NaN" or (isinstance(value, float) and 0 < abs(value) < NEARLY_NOTHING)

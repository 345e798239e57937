"""InfluxDB's line protocol: `measurement,tag=value field=1,other="text" 1700000000000`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sinks.formats.json_text import json_text

_NAMES = str.maketrans({",": r"\,", "=": r"\=", " ": r"\ ", "\n": r"\n"})
_MEASUREMENTS = str.maketrans({",": r"\,", " ": r"\ ", "\n": r"\n"})

INTEGER_MAX = 2**63 - 1


def line(measurement: str, tags: Mapping[str, str], fields: Mapping[str, Any], at: int | None) -> str:
    """One point. Raises ValueError if no field would be stored.

    >>> line("room 1", {"dev": "a,b"}, {"t": 21.5, "n": 3, "ok": True, "s": 'say "x"'}, 5)
    'room\\\\ 1,dev=a\\\\,b t=21.5,n=3i,ok=true,s="say \\\\"x\\\\"" 5'
    """
    written = [
        f"{name.translate(_NAMES)}={text}" for name, value in fields.items() if (text := _field(value))
    ]
    if not written:
        raise ValueError("no column of the row can be a field")
    head = measurement.translate(_MEASUREMENTS)
    for name, value in sorted(tags.items()):
        if value:
            head += f",{name.translate(_NAMES)}={value.rstrip(chr(92)).translate(_NAMES)}"
    return f"{head} {','.join(written)}" + ("" if at is None else f" {at}")


def _field(value: object) -> str | None:
    """A value as a field; None for NULL, NaN and infinities, which have none."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}i" if abs(value) <= INTEGER_MAX else repr(float(value))
    if isinstance(value, float):
        return repr(value)
    text = value if isinstance(value, str) else json_text(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

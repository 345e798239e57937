"""Encode values as JSON, and count those that JSON cannot hold.

JSON has no NaN and no infinities; they are written as null, and `count_non_finite` counts them, so that the
loss shows in the metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder(enc_hook=str)


def json_bytes(value: object) -> bytes:
    """Compact UTF-8 JSON. Bytes become base64; NaN and infinities become null.

    >>> json_bytes({"a": 1, "b": float("nan")})
    b'{"a":1,"b":null}'
    """
    return _encoder.encode(value)


def json_text(value: object) -> str:
    """`json_bytes` as text."""
    return json_bytes(value).decode()


def count_non_finite(values: Iterable[Any]) -> int:
    """The number of NaN and infinities in `values`, at any depth.

    >>> count_non_finite([1.0, float("inf"), {"a": [float("nan")]}])
    2
    """
    count = 0
    for value in values:
        if isinstance(value, float):
            count += not math.isfinite(value)
        elif value is None or isinstance(value, (str, int)):  # known without asking the abstract class
            continue
        elif isinstance(value, (dict, Mapping)):  # as is a dict
            count += count_non_finite(value.values())
        elif isinstance(value, list | tuple):
            count += count_non_finite(value)
    return count

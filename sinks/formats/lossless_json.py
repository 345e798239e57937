"""JSON for our own files: it keeps NaN, infinities, integers of any size, lone
surrogates and byte strings."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

_BYTES = "$bytes"


def tagged(value: object) -> dict[str, Any]:
    """A byte string as JSON. TypeError for other values."""
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    raise TypeError(f"a {type(value).__name__} is not plain data")


def untagged(value: dict[str, Any]) -> Any:
    """The value that `tagged` was called with; other objects as they are."""
    return base64.b64decode(value[_BYTES]) if value.keys() == {_BYTES} else value


def encode(value: object, other: Callable[[object], dict[str, Any]] = tagged) -> bytes:
    """Plain data as compact UTF-8 JSON; `other` makes an object of what is no plain
    data, or raises TypeError.

    >>> encode({"sum": float("inf"), "raw": b"ab"})
    b'{"sum":Infinity,"raw":{"$bytes":"YWI="}}'
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=other).encode(
        "utf-8", "surrogatepass"
    )


def decode(data: bytes, other: Callable[[dict[str, Any]], Any] = untagged) -> Any:
    """The value that `encode` was called with; `other` says what an object stands for.
    ValueError for anything else.

    >>> decode(encode({"raw": b"ab"}))
    {'raw': b'ab'}
    """
    return json.loads(data.decode("utf-8", "surrogatepass"), object_hook=other)

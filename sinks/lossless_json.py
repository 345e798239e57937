"""JSON for our own files: it keeps NaN, infinities, integers of any size, lone
surrogates and byte strings."""

from __future__ import annotations

import base64
import json
from typing import Any

_BYTES = "$bytes"


def encode(value: object) -> bytes:
    """Plain data as compact UTF-8 JSON; raises TypeError for other values.

    >>> encode({"sum": float("inf"), "raw": b"ab"})
    b'{"sum":Infinity,"raw":{"$bytes":"YWI="}}'
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_tagged).encode(
        "utf-8", "surrogatepass"
    )


def decode(data: bytes) -> Any:
    """The value that `encode` was called with. Raises ValueError for anything else.

    >>> decode(encode({"raw": b"ab"}))
    {'raw': b'ab'}
    """
    return json.loads(data.decode("utf-8", "surrogatepass"), object_hook=_untagged)


def _tagged(value: object) -> dict[str, str]:
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    raise TypeError(f"a {type(value).__name__} is not plain data")


def _untagged(value: dict[str, Any]) -> Any:
    return base64.b64decode(value[_BYTES]) if value.keys() == {_BYTES} else value

"""Signed manifests: only a holder of a gateway's key can announce its files.

A manifest names the SHA-256 of its file, so its signature covers the file too.
This module needs nothing but the standard library: Spark's workers import it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

FIELD = "signature"
KEY_CHARS_MIN = 16
"""A shorter key could be guessed."""


def signature(fields: Mapping[str, Any], key: str) -> str:
    """The HMAC-SHA256 of a manifest, in hexadecimal:
    of its other fields as JSON in ASCII, sorted by name, without spaces.

    >>> signature({"rows": 1, "name": "ä"}, "k" * 16)[:8]
    '1da4ed04'
    """
    told = {name: value for name, value in fields.items() if name != FIELD}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def is_signed(fields: Mapping[str, Any], key: str) -> bool:
    """True if a manifest has the signature of this key."""
    return hmac.compare_digest(str(fields.get(FIELD, "")).encode(), signature(fields, key).encode())


def is_same(one: bytes, other: bytes) -> bool:
    """True if two manifests announce the same, whatever their signatures: a key may be changed between an
    upload and its repetition."""
    return one == other or _unsigned(one) == _unsigned(other) is not None


def _unsigned(content: bytes) -> dict[str, Any] | None:
    try:
        return {name: value for name, value in json.loads(content).items() if name != FIELD}
    except (ValueError, AttributeError):
        return None


def read_keys(text: str) -> dict[str, str]:
    """The keys of gateways from a file: a JSON object of gateway ids and keys. Raises ValueError."""
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found.values()):
        raise ValueError("it is no JSON object of gateways and their keys")
    if short := sorted(name for name, key in found.items() if len(key) < KEY_CHARS_MIN):
        raise ValueError(f"the key of {short[0]} has less than {KEY_CHARS_MIN} characters")
    return found

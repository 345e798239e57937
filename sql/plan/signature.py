"""The signature of a plan's state: equal for plans that compute the same from the same state.

It is plain data made of kinds and parameters. A field that holds its default is left out, so that a new field
with a default changes no signature and resets no saved window; the position of a text in its file does not
count either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from enum import Enum
from itertools import zip_longest
from typing import Any

from sql.aggregates.base import Aggregate
from sql.functions.definition import Function
from sql.record import Record, changed_fields

Parts = Sequence[tuple[str, object]]
"""The parts of a plan that its state depends on, in a fixed order, each with the name of its clause."""


def state_signature(parts: Parts) -> str:
    """The signature as a short text."""
    text = json.dumps(plain([value for _, value in parts]), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def differences(one: Parts, other: Parts) -> list[str]:
    """The differences of two plans' states, in the words of the query: the reasons why one cannot continue
    from the state of the other."""
    pairs = zip_longest(one, other, fillvalue=("ON", None))
    return list(dict.fromkeys(name for (name, mine), (_, theirs) in pairs if plain(mine) != plain(theirs)))


_AS_THEY_ARE = frozenset((str, int, bool, type(None)))


def plain(value: object) -> Any:
    """Plan data as JSON: kinds by name, fields that are not at their default."""
    if value.__class__ in _AS_THEY_ARE:  # most are, and a plan has some fifty
        return value
    if isinstance(value, Function | Aggregate):
        return {type(value).__name__: value.name}
    if isinstance(value, Record):
        return {type(value).__name__: {name: plain(held) for name, held in changed_fields(value)}}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, dict):
        return {"dict": [[plain(key), plain(item)] for key, item in value.items()]}
    if isinstance(value, frozenset | set):
        return {"set": sorted(json.dumps(plain(item)) for item in value)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if value.__class__ is float:
        return {"float": value.hex()}  # 1 and 1.0 are two parameters
    return value

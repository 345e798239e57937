"""Plans and rules on their way between two processes of the gateway: pickled, with entries by name."""

from __future__ import annotations

import io
import pickle
from typing import Any

from msgspec.structs import asdict

from rules.secrets import Secret
from sql.aggregates import base as aggregates
from sql.algebra.derived.univariate import PREFIX, UNIVARIATE
from sql.functions import registry
from sql.functions.definition import Function
from sql.record import replace

Named = Function | aggregates.Aggregate
"""Entries of registries. Their code cannot be pickled, and both processes have it."""


def dumped(value: object) -> bytes:
    """A value for `pickle.load` of the other process."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {Function: _reduced, aggregates.Aggregate: _reduced, Secret: _revealed}
    pickler.dump(value)
    return buffer.getvalue()


def _reduced(entry: Named) -> Any:
    """The entry by its name, with the fields that a plan has changed."""
    known = _entry(entry.__class__, entry.name)
    if known is None:
        return entry.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    before = asdict(known)
    changed = {name: value for name, value in asdict(entry).items() if value is not before[name]}
    return _varied, (entry.__class__, entry.name, changed)


def _varied(kind: type[Named], name: str, changed: dict[str, Any]) -> Named:
    known = _entry(kind, name)
    assert known is not None, f"{name} is known to the process that reads the rule files only"
    return replace(known, **changed) if changed else known


def _entry(kind: type[Named], name: str) -> Named | None:
    """The entry of that name in this process."""
    if kind is Function:
        return registry.lookup(name)
    return aggregates.lookup(name) or UNIVARIATE.get(name.removeprefix(PREFIX))


def _revealed(secret: Secret) -> Any:
    """Only from one process of the gateway to the other: `Secret` itself refuses to be stored."""
    return Secret, (secret.reveal(),)

"""The signature of a plan's state: equal for plans that compute the same from the same state.

It is plain data made of kinds and parameters. A field that holds its default is left out, so that a new field
with a default changes no signature and resets no saved window; the position of a text in its file does not
count either.
"""

from __future__ import annotations

import hashlib
import json
from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from sql.aggregates.base import Aggregate
from sql.functions.definition import Function
from sql.record import Record, changed_fields

if TYPE_CHECKING:
    from sql.plan.logical import Plan

STATE_VERSIONS = {"delta": 2, "lots": 2, "sample": 2}
"""By mode: increased if the form of stored states changes, so that older ones are not restored."""


def state_signature(plan: Plan) -> str:
    """The signature as a short text."""
    text = json.dumps(plain([value for _, value in _parts(plan)]), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def differences(one: Plan, other: Plan) -> list[str]:
    """The differences of two plans' states, in the words of the query: the reasons why one cannot continue
    from the state of the other."""
    parts = zip_longest(_parts(one), _parts(other), fillvalue=("ON", None))
    return list(dict.fromkeys(name for (name, mine), (_, theirs) in parts if plain(mine) != plain(theirs)))


def _parts(plan: Plan) -> list[tuple[str, Any]]:
    """The parts of the plan that the state depends on, in a fixed order, each with the name of its clause."""
    return [
        ("the kind of query", [plan.mode, STATE_VERSIONS[plan.mode]]), ("FROM", plan.sources),
        ("the windows of FROM", [source.windows for source in plan.sources]), ("JOIN", plan.joins),
        ("analytic functions", plan.analytics), ("the window of GROUP BY", plan.window),
        ("WHERE", plan.where), ("GROUP BY", plan.group_by), ("aggregates", plan.aggregates),
        ("prev()", plan.prevs), ("the kind of rows", plan.row_kind), ("OUTPUT", plan.output),
        ("last_hit functions", plan.hits), ("columns that spread", plan.spreads),
        ("the context", plan.context),
        ("subqueries", [[part.plan.fingerprint, part.kind, part.correlated] for part in plan.subqueries]),
        ("the stream's timestamp", plan.timestamp), ("the option zone", plan.options.zone),
        ("the option lateTolerance", plan.options.late_tolerance_ms), ("INTO TABLE", plan.into_table),
        *([("JOIN", plan.asks)] if plan.asks else []),
        *([] if plan.acts is None else [("ON", plan.acts)]),
    ]  # fmt: skip


def plain(value: object) -> Any:
    """Plan data as JSON: kinds by name, fields that are not at their default."""
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

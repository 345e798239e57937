"""The order and number of the rows of one output: ORDER BY, DISTINCT, LIMIT."""

from __future__ import annotations

from typing import Any

from sql.algebra.output.spreads import Spreads
from sql.codegen.functions import FunctionSet, constant_value
from sql.emission import Out
from sql.plan.logical import Plan
from sql.types import key_of


def in_order(
    rows: list[Out], plan: Plan, limit: tuple[int | None, int], spreads: Spreads | None = None
) -> list[dict[str, Any]]:
    """ORDER BY, the functions that make rows and columns, DISTINCT and LIMIT of one output batch."""
    if plan.order_by:
        rows = sorted(rows, key=lambda row: row.order)
    out = [row.row for row in rows]
    if spreads is not None:
        out = spreads.apply(out)
    if plan.distinct:
        out = _distinct(out)
    count, offset = limit
    if count is None and not offset:
        return out
    return out[offset:] if count is None else out[offset : offset + count]


def _distinct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen = set()
    out = []
    for row in rows:
        key = key_of(row)
        if key not in seen:
            seen.add(key)
            out.append(row)
    return out


def row_limit(plan: Plan, functions: FunctionSet) -> tuple[int | None, int]:
    """LIMIT (None: no limit; negative in EPL too) and OFFSET with the present values of variables."""
    limit = constant_value(plan.limit, functions)
    offset = constant_value(plan.offset, functions) or 0
    return (None if limit is None or limit < 0 else limit), max(0, offset)

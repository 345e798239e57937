"""The rows of one output: ORDER BY, DISTINCT and LIMIT, and before them arrays that become rows.

Arrays become rows, structs become columns, columns that did not change go:

unnest        {"$unnest": [1, {"a": 2}], "k": 7}   ->  {"k": 7, "unnest": 1}  {"k": 7, "a": 2}
extract       {"$extract": {"a": 2}, "k": 7}       ->  {"k": 7, "a": 2}
changed_cols  only the columns that differ from the row emitted before; a row without any is not emitted

NULL and an empty array make no row; extract of NULL adds no column. A key replaces a column of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sql.aggregates.plain_values import decode, encode
from sql.codegen.functions import FunctionSet, constant_value
from sql.emission import Out, Row
from sql.plan.clauses import SpreadPlan
from sql.plan.logical import Plan
from sql.plan.walk import variables_in
from sql.rows import as_dict
from sql.types import Plain, key_of

RowLimit = Callable[[], tuple[int | None, int]]
"""The present LIMIT (None: no limit; negative in EPL too) and OFFSET."""


class Spreads:
    """The spreading functions of one SELECT, with what `changed_cols` remembers."""

    def __init__(self, plans: Iterable[SpreadPlan]) -> None:
        self.plans = tuple(plan for plan in plans if plan.kind != "requests")
        self.known: list[dict[str, Any]] = [{} for _ in self.plans]

    def apply(self, rows: list[Row]) -> list[Row]:
        """The rows of an output in order, as they are emitted."""
        for place, plan in enumerate(self.plans):
            made: list[Row] = []
            for row in rows:
                values = [(row.pop(item), column) for item, column in plan.items]
                if plan.kind == "changes":
                    shown = {**row, **self._changed(place, plan, values)}
                    made += [shown] if shown else []
                elif plan.kind == "columns":
                    made.append({**row, **(values[0][0] or {})})
                else:
                    made += [_beside(row, element, plan.name) for element in values[0][0] or ()]
            rows = made
        return rows

    def _changed(self, place: int, plan: SpreadPlan, values: list[tuple[Any, str | None]]) -> Row:
        known = self.known[place]
        out: Row = {}
        for name, value in _columns(values):
            if value is None and plan.ignore_null:
                continue
            if name not in known or key_of(known[name]) != key_of(value):
                known[name] = value
                out[plan.prefix + name] = value
        return out

    def snapshot(self) -> list[dict[str, Plain]]:
        """The values emitted last, by function and column."""
        return [{name: encode(value) for name, value in known.items()} for known in self.known]

    def restore(self, state: list[dict[str, Plain]]) -> None:
        self.known = [{name: decode(value) for name, value in known.items()} for known in state]


def _beside(row: Row, element: object, name: str) -> Row:
    """The row of one element: a struct's keys become columns, anything else stands under `name`."""
    return {**row, **element} if isinstance(element, dict) else {**row, name: element}


def _columns(values: list[tuple[Any, str | None]]) -> Iterable[tuple[str, Any]]:
    for value, column in values:
        if column is not None:
            yield column, value
        elif value is not None:
            yield from ((name, item) for name, item in as_dict(value).items() if name != "$meta")


def in_order(
    rows: list[Any], plan: Plan, limit: RowLimit, spreads: Spreads | None = None
) -> list[dict[str, Any]]:
    """ORDER BY, the functions that make rows and columns, DISTINCT and LIMIT of one output batch. `rows`: as
    the text makes them, each an `Out` where it has an order or the key of a group."""
    if plan.order_by:
        rows = sorted(rows, key=lambda row: row.order)
    out: list[Row] = [row.row for row in rows] if rows and rows[0].__class__ is Out else rows
    if spreads is not None:
        out = spreads.apply(out)
    if plan.distinct:
        out = _distinct(out)
    count, offset = limit()
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


def row_limit(plan: Plan, functions: FunctionSet) -> RowLimit:
    """LIMIT and OFFSET: of a variable, its value at each output."""

    def present() -> tuple[int | None, int]:
        limit = constant_value(plan.limit, functions)
        offset = constant_value(plan.offset, functions) or 0
        return (None if limit is None or limit < 0 else limit), max(0, offset)

    if any(variables_in(bound) for bound in (plan.limit, plan.offset)):
        return present
    fixed = present()
    return lambda: fixed

"""The last stage of an output: arrays become rows, structs become columns, columns that did not change go.

unnest        {"$unnest": [1, {"a": 2}], "k": 7}   ->  {"k": 7, "unnest": 1}  {"k": 7, "a": 2}
extract       {"$extract": {"a": 2}, "k": 7}       ->  {"k": 7, "a": 2}
changed_cols  only the columns that differ from the row emitted before; a row without any is not emitted

NULL and an empty array make no row; extract of NULL adds no column. A key replaces a column of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sql.aggregates.plain_values import decode, encode
from sql.emission import Row
from sql.plan.clauses import SpreadPlan
from sql.rows import as_dict
from sql.types import Saved, key_of


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

    def snapshot(self) -> Saved:
        """The values emitted last, by function and column."""
        return [{name: encode(value) for name, value in known.items()} for known in self.known]

    def restore(self, state: Saved) -> None:
        """Put a snapshot back."""
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

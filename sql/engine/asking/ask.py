"""One join with a table of a store: the key of an event, and the events that an answer makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.algebra.event import Event
from sql.codegen.functions import FunctionSet
from sql.engine.asking.asked_table import AskedTable, Rows
from sql.errors import DataError
from sql.plan.asks import AskPlan, Request

KEYS = (str, int, float, bool)
"""The types of keys that stores accept."""


class Ask:
    """The compiled form of an `AskPlan`."""

    def __init__(self, plan: AskPlan, table: AskedTable, functions: FunctionSet) -> None:
        self.table = table
        self._plan = plan
        self._values = [functions.value(value) for value in plan.values]
        self._passes: Callable[..., Any] | None = None if plan.rest is None else functions.true(plan.rest)

    def request(self, row: dict[str, Any], now_ms: int) -> Request | None:
        """The request for an event; None where its key is NULL or NaN, which equals nothing.
        DataError for a key that is a list or an object."""
        event = Event(row, now_ms, 0)
        key = tuple([value(event) for value in self._values])
        if any(value is None or value != value for value in key):
            return None
        if not all(value.__class__ in KEYS for value in key):
            raise DataError(f"table '{self.table.name}' cannot be asked for a list or an object")
        return Request(self.table.name, self._plan.columns, key)

    def joined(self, row: dict[str, Any], found: Rows, now_ms: int) -> list[dict[str, Any]]:
        """The event, once with each row found that meets ON; without any the event with NULL, or none. For a
        subquery the event with the list of them."""
        column = self._plan.column
        if self._plan.gathers:
            return [{**row, column: list(found)}]
        rows = [{**row, column: item} for item in found]
        if self._passes is not None:
            rows = [item for item in rows if self._passes(Event(item, now_ms, 0))]
        return rows or ([{**row, column: None}] if self._plan.keeps else [])

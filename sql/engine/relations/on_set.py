"""`on Stream set variable = …`: later statements of the same event see the new values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql import syntax as ast
from sql.algebra.event import Event
from sql.binder.triggers import SET, TriggerBinder, host_plan
from sql.catalog.streams import Catalog, Variable
from sql.emission import Emission
from sql.engine.relations.statements import Triggered
from sql.errors import DataError, did_you_mean
from sql.plan.options import RuleOptions
from sql.rows import as_dict


class OnSet(Triggered):
    """Assigns variables, in order: each assignment sees those before it."""

    def __init__(self, name: str, catalog: Catalog, options: RuleOptions, statement: ast.OnSet, text: str,
                 priority: int, now_ms: int) -> None:  # fmt: skip
        binder = TriggerBinder(statement.source, None, catalog, options, text, priority)
        setters: list[tuple[str, Any, Any]] = []
        for item in statement.assignments:
            _check(binder, catalog, item)
            index = None if item.index is None else binder.binder.bind(item.index, SET)
            setters.append((item.name, binder.binder.bind(item.value, SET), index))
            variable = catalog.variables.get(item.name)
            if variable is not None and index is None:
                binder.binder.expect(setters[-1][1], variable.type, f"variable '{item.name}'", item.span)
        binder.problems.raise_if_any(text)
        assert binder.source is not None
        parts = tuple(binder.select.subqueries)
        streams = dict.fromkeys([binder.source.stream, *(name for part in parts for name in part.plan.reads)])
        hosted = host_plan(text, tuple(streams), options, priority=priority)
        super().__init__(name, hosted, catalog, binder.source, parts, now_ms)
        self.setters: list[tuple[str, Callable[..., Any], Callable[..., Any] | None]] = [
            (name, self.functions.value(value), None if index is None else self.functions.value(index))
            for name, value, index in setters
        ]

    def act(self, rows: list[Any], now_ms: int) -> list[Emission]:
        out = []
        for row in rows:
            event = Event((row, None, None), now_ms, 0)
            for name, value, index in self.setters:
                variable = self.catalog.variables[name]
                found = _plain(value(event))
                self.catalog.assign(name, found if index is None else _with(variable, index(event), found))
            values = {name: self.catalog.variables[name].value for name, _, _ in self.setters}
            out += self.shown([values], (), now_ms)
        return out


def _plain(value: Any) -> Any:
    """A whole event as a plain object."""
    return value if value is None or value.__class__ in (str, int, float, bool, list, dict) else dict(as_dict(value))


def _with(variable: Variable, index: Any, value: Any) -> list[Any]:
    """An array with one element replaced."""
    items = variable.value
    if not isinstance(items, list) or index.__class__ is not int or not 0 <= index < len(items):
        raise DataError(f"variable '{variable.name}' has no element {index!r}")
    return [*items[:index], value, *items[index + 1 :]]


def _check(binder: TriggerBinder, catalog: Catalog, item: ast.Assignment) -> None:
    variable = catalog.variables.get(item.name)
    if variable is None:
        binder.problems.error("B207", f"unknown variable '{item.name}'", item.span,
                              did_you_mean(item.name, catalog.variables))  # fmt: skip
    elif variable.constant:
        binder.problems.error("B208", f"'{item.name}' is a constant", item.span)

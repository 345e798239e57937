"""The assignments of `set`: to columns of an event or a row, to variables, to elements of arrays."""

from __future__ import annotations

from collections.abc import Mapping

from sql import syntax as ast
from sql.binder.binding import Binding
from sql.binder.catalog_names import unknown_column
from sql.binder.place import Place
from sql.errors import DataError, did_you_mean
from sql.functions.definition import Function, Parameter
from sql.plan.bound import Apply, Bound, Slot
from sql.record import Record
from sql.types import Type, describe


def _with_element(items: object, index: object, value: object) -> list[object]:
    if not isinstance(items, list):
        raise DataError(f"only an array has elements, not {describe(items)}")
    if not isinstance(index, int) or not 0 <= index < len(items):
        at = "NULL" if index is None else index
        raise DataError(f"an array of {len(items)} elements has none at {at}")
    return [*items[:index], value, *items[index + 1 :]]


WITH_ELEMENT = Function(
    "with_element",
    _with_element,
    "internal",
    "An array with one element replaced.",
    (Parameter("array", Type.ARRAY), Parameter("index", Type.INTEGER), Parameter("value")),
    Type.ARRAY,
    nulls="pass",
)


class Target(Record):
    """The event or row that `set` changes: its name, its columns if they are declared, and the names by which
    the statement may call it."""

    name: str
    columns: Mapping[str, Type] | None
    called: tuple[str, ...]


def assigned_column(
    binder: Binding, item: ast.Assignment, place: Place, target: Target, before: Bound | None = None
) -> Bound:
    """The new value of a column. `before`: the array that an earlier assignment to its elements gives, where
    expressions do not see that."""
    if item.owner is not None and item.owner not in target.called:
        message = f"this statement sets columns of '{target.name}', not of '{item.owner}'"
        binder.problems.error("B202", message, item.span, f"write {target.called[0]}.{item.name}")
    wanted = None if target.columns is None else target.columns.get(item.name)
    if target.columns is not None and wanted is None:
        unknown_column(binder.problems, item.name, target.name, target.columns, item.span)
        return binder.bind(item.value, place)
    if item.index is not None and before is None:
        before = binder.bind(ast.Column(item.name, span=item.span), place)
    return _value(binder, item, place, before, wanted, f"column '{item.name}'")


def assigned_variable(binder: Binding, item: ast.Assignment, place: Place) -> Bound:
    """The new value of a variable."""
    variables, name = binder.site.catalog.variables, item.name
    if item.owner is not None:
        message = f"a variable is set as a whole, not '{item.owner}.{name}'"
        binder.problems.error("B207", message, item.span, f"set {item.owner} to a new object")
        return binder.bind(item.value, place)
    variable = variables.get(name)
    if variable is None:
        binder.problems.error("B207", f"unknown variable '{name}'", item.span, did_you_mean(name, variables))
    elif variable.constant:
        binder.problems.error("B208", f"variable '{name}' is constant", item.span)
    kind = None if variable is None else variable.type
    old = Slot("variable", name, type=kind or Type.ANY, span=item.span)
    return _value(binder, item, place, old, kind, f"variable '{name}'")


def _value(
    binder: Binding, item: ast.Assignment, place: Place, old: Bound | None, wanted: Type | None, what: str
) -> Bound:
    """The value, or with an index the array with this element; reported where the target cannot take it."""
    value = binder.bind(item.value, place)
    if item.index is not None:
        assert old is not None
        index = binder.bind(item.index, place)
        binder.expect(index, Type.INTEGER, "the place of an element is a whole number", item.index.span)
        value = Apply(WITH_ELEMENT, (old, index, value), type=Type.ARRAY, span=item.span)
    if wanted is not None:
        binder.expect(value, wanted, f"{what} is {wanted.value}", item.span)
    return value

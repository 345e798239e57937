"""The assignments of `set`: to columns of an event or a row, to variables, to elements of arrays."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.binding import Binding
from sql.binder.catalog_names import unknown_column
from sql.binder.place import Place
from sql.binder.scope import variable_of_a_context
from sql.catalog.streams import Stream
from sql.errors import did_you_mean
from sql.functions.internal import WITH_ELEMENT
from sql.plan.bound import Apply, Bound, Op, Slot
from sql.record import Record
from sql.types import Type


class Target(Record):
    """The event or row that `set` changes: its stream, and the names by which the statement may call it."""

    stream: Stream
    called: tuple[str, ...]


def assigned_column(
    binder: Binding, item: ast.Assignment, place: Place, target: Target, before: Bound | None = None
) -> Bound:
    """The new value of a column. `before`: the array that an earlier assignment to its elements gives, where
    expressions do not see that."""
    stream, columns = target.stream, target.stream.columns
    if item.owner is not None and item.owner not in target.called:
        message = f"this statement sets columns of '{stream.name}', not of '{item.owner}'"
        binder.problems.error("B202", message, item.span, f"write {target.called[0]}.{item.name}")
    wanted = None if columns is None else columns.get(item.name)
    if columns is not None and wanted is None:
        unknown_column(binder.problems, item.name, stream.name, columns, item.span)
        return binder.bind(item.value, place)
    if item.index is not None and before is None:
        before = binder.bind(ast.Column(item.name, span=item.span), place)
    kinds = wanted or Type.ANY, stream.element(item.name)
    return _value(binder, item, place, before, kinds, f"column '{item.name}'")


def assigned_variable(binder: Binding, item: ast.Assignment, place: Place) -> Bound:
    """The new value of a variable."""
    variables, name = binder.site.catalog.variables, item.name
    if item.owner is not None:
        message = f"a variable is set as a whole, not '{item.owner}.{name}'"
        binder.problems.error("B207", message, item.span, f"set {item.owner} to a new object")
        return binder.bind(item.value, place)
    variable = variables.get(name)
    if variable is None:
        hint = variable_of_a_context(binder.site, name) or did_you_mean(name, variables)
        binder.problems.error("B207", f"unknown variable '{name}'", item.span, hint)
    elif variable.constant:
        binder.problems.error("B208", f"variable '{name}' is constant", item.span)
    kinds = (Type.ANY, Type.ANY) if variable is None else (variable.type, variable.element)
    old = Slot("variable", name, type=kinds[0], span=item.span)
    return _value(binder, item, place, old, kinds, f"variable '{name}'")


def _value(
    binder: Binding,
    item: ast.Assignment,
    place: Place,
    old: Bound | None,
    kinds: tuple[Type, Type],
    what: str,
) -> Bound:
    """The value, or with an index the array with this element; reported where the target cannot take it.
    `kinds`: the type of the target, and that of its elements."""
    wanted, element = kinds
    value = binder.bind(item.value, place)
    written = [(value, item.value)] if item.index is not None else _elements(item.value, value)
    for part, node in written:
        binder.expect(part, element, f"an element of {what} is {element.value}", node.span)
    if item.index is not None:
        assert old is not None
        index = binder.bind(item.index, place)
        binder.expect(index, Type.INTEGER, "the place of an element is a whole number", item.index.span)
        value = Apply(WITH_ELEMENT, (old, index, value), type=Type.ARRAY, span=item.span)
    binder.expect(value, wanted, f"{what} is {wanted.value}", item.span)
    return value


def _elements(node: ast.Expr, value: Bound) -> list[tuple[Bound, ast.Expr]]:
    """The elements of an array that is written out."""
    if not isinstance(node, ast.ArrayLiteral) or not isinstance(value, Op):
        return []
    return list(zip(value.args, node.items, strict=True))

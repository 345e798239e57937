"""Binding `a.b`, `a[i]`, `a[i:j]` and `a.f(…)`: fields, elements and slices of arrays, keys of objects,
rows of tables, methods of lists."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.binding import Binding
from sql.binder.expressions import table_reads
from sql.binder.expressions.partition_properties import bind_property, property_path
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN
from sql.plan.bound import Bound, Const, Enumerate, Op, Read, TableRead
from sql.types import Type


def bind_index(binder: Binding, node: ast.Index, place: Place) -> Bound:
    """An element of an array, the value of a key, an event of a repeat, or a row of a table."""
    problems, column = binder.problems, node.base
    if isinstance(column, ast.Column) and column.table is None and table_reads.is_table(binder, column.name):
        return table_reads.row(binder, column.name, (node.index, *node.more), place, node.span)
    for extra in node.more:
        problems.error("B304", "an element has one index", extra.span)
    base = binder.bind(node.base, place)
    index = binder.bind(node.index, place)
    if isinstance(base, Read) and base.column is None and base.type is Type.OBJECT:
        hint = "an index reads the events of a repeat"
        problems.error("B806", "this is one event, not a list of them", node.base.span, hint)
    elif base.type is Type.OBJECT:
        binder.expect(index, Type.STRING, "the key of an object is text", node.index.span)
    else:
        binder.expect(base, Type.ARRAY, "an index reads an array", node.base.span)
    if base.type is Type.ARRAY:
        binder.expect(index, Type.INTEGER, "the index of an array is a whole number", node.index.span)
    return Op("index", (base, index), span=node.span)


def bind_slice(binder: Binding, node: ast.Slice, place: Place) -> Bound:
    """A part of an array."""
    base = binder.bind(node.base, place)
    binder.expect(base, Type.ARRAY, "a slice is cut out of an array", node.base.span)
    bounds: list[Bound] = []
    for part in (node.low, node.high):
        bounds.append(Const(None) if part is None else binder.bind(part, place))
        if part is not None:
            binder.expect(bounds[-1], Type.INTEGER, "a bound of a slice is a whole number", part.span)
    return Op("slice", (base, *bounds), type=Type.ARRAY, span=node.span)


def bind_field(binder: Binding, node: ast.Field, place: Place) -> Bound:
    """A field of a struct, a column of a table's row, or a property of the context."""
    context = binder.site.context
    path = None if context is None else property_path(node)
    if context is not None and path is not None:
        return bind_property(binder.site, context, path, node.span)
    base = binder.bind(node.base, place)
    if isinstance(base, TableRead) and base.column is None:
        return table_reads.column(binder, base, node.name, node.span)
    return binder.scope.field(base, node.name, node.span)


def bind_method(binder: Binding, node: ast.Method, place: Place) -> Bound:
    """`selectFrom(x => …)` and the other methods of lists."""
    if (
        isinstance(node.base, ast.Column)
        and node.name == "keys"
        and table_reads.is_table(binder, node.base.name)
    ):
        return table_reads.keys(binder, node.base.name, node.span)
    if node.name in table_reads.LIST_METHODS and not node.args:
        return table_reads.method(binder, node, binder.bind(node.base, place))
    if node.name.lower() != "selectfrom" or len(node.args) != 1 or not isinstance(node.args[0], ast.Lambda):
        hint = "lists have selectFrom(x => …), countOf(), firstOf() and lastOf()"
        binder.problems.error("B305", f"unknown method '{node.name}'", node.span, hint)
        return UNKNOWN
    body = node.args[0]
    base = binder.bind(node.base, place)
    binder.parameters.append(body.parameters[0])
    bound = binder.bind(body.body, place)
    binder.parameters.pop()
    return Enumerate(base, "selectfrom", bound, type=Type.ARRAY, span=node.span)

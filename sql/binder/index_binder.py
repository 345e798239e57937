"""Binding `a[i]` and `a[i:j]`: elements and slices of arrays, keys of objects, rows of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sql import syntax as ast
from sql.binder.relations import table_reads
from sql.plan.bound import Bound, Const, Op, Read
from sql.types import Type

if TYPE_CHECKING:
    from sql.binder.expression_binder import ExpressionBinder, Place


def bind_index(binder: ExpressionBinder, node: ast.Index, place: Place) -> Bound:
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


def bind_slice(binder: ExpressionBinder, node: ast.Slice, place: Place) -> Bound:
    """A part of an array."""
    base = binder.bind(node.base, place)
    binder.expect(base, Type.ARRAY, "a slice is cut out of an array", node.base.span)
    bounds: list[Bound] = []
    for part in (node.low, node.high):
        bounds.append(Const(None) if part is None else binder.bind(part, place))
        if part is not None:
            binder.expect(bounds[-1], Type.INTEGER, "a bound of a slice is a whole number", part.span)
    return Op("slice", (base, *bounds), type=Type.ARRAY, span=node.span)

"""Binding `a.b`, `a[i]`, `a[i:j]` and `a.f(…)`: fields, elements and slices of arrays, keys of objects,
rows of tables, methods of lists."""

from __future__ import annotations

import re

from sql import syntax as ast
from sql.aggregates.list_methods import LIST_METHODS, ListMethod
from sql.binder.binding import Binding, LambdaParameter
from sql.binder.expressions import event_fields, table_reads
from sql.binder.expressions.methods import FUNCTIONS, HINTS, as_function
from sql.binder.expressions.partition_properties import bind_property, property_path
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN
from sql.errors import did_you_mean
from sql.functions import registry as functions
from sql.functions.definition import Function
from sql.plan.bound import Apply, Bound, Const, Enumerate, LambdaRead, Op, Read, TableRead
from sql.plan.declared import TableDeclaration
from sql.record import replace
from sql.types import Type

ELEMENTS_END = 2**31 - 1
"""The end of a slice that names none: no array is longer."""


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
    for part, otherwise in ((node.low, 0), (node.high, ELEMENTS_END)):
        bounds.append(Const(otherwise) if part is None else binder.bind(part, place))
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
    event_fields.check_field(binder, base, node.name, node.span)
    return binder.scope.field(base, node.name, node.span)


def bind_method(binder: Binding, node: ast.Method, place: Place) -> Bound:
    """`T.keys()`, or a method of a list."""
    if (
        isinstance(node.base, ast.Column)
        and node.name == "keys"
        and table_reads.is_table(binder, node.base.name)
    ):
        return table_reads.keys(binder, node.base.name, node.span)
    function = as_function(node)
    if function is not None:
        return _strict(binder.bind(function, place))
    method = LIST_METHODS.get(node.name)
    if method is None:
        column = _column_called(binder, node)
        return _unknown_method(binder, node) if column is None else binder.bind(column, place)
    is_subquery = isinstance(node.base, ast.Subquery) and not node.base.exists
    base = binder.bind(replace(node.base, listed=True) if is_subquery else node.base, place)
    binder.expect(base, Type.ARRAY, f"{node.name}() is a method of lists", node.base.span)
    return _bound_method(binder, node, method, base, place)


def _column_called(binder: Binding, node: ast.Method) -> ast.Index | None:
    """EPL's `e.labels('zone')` for the value of a key in a column; None where `e` has no column called so."""
    base = node.base
    if len(node.args) != 1 or not isinstance(base, ast.Column) or base.table is not None:
        return None
    written = re.match(r"\s*\.\s*(\w+)", binder.site.text[base.span.end : node.span.end])
    name = written[1] if written is not None and written[1].lower() == node.name else node.name
    known = (source.columns for source in binder.scope.sources if source.alias == base.name)
    if not any(columns is not None and name in columns for columns in known):
        return None
    return ast.Index(ast.Column(name, base.name, span=base.span), node.args[0], span=node.span)


def _strict(bound: Bound) -> Bound:
    """A function as a method: that of NULL is NULL, also where the function has a value for it."""
    if isinstance(bound, Apply) and bound.function.nulls == "pass":
        return replace(bound, function=replace(bound.function, nulls="propagate"))
    return bound


def _unknown_method(binder: Binding, node: ast.Method) -> Bound:
    hint = HINTS.get(node.name)
    if hint is None and functions.lookup(node.name) is not None:
        hint = f"a function has this name: write {node.name}(x, …)"
    hint = hint or did_you_mean(node.name, [*LIST_METHODS, *FUNCTIONS])
    hint = hint or f"lists have {', '.join(sorted(LIST_METHODS))}"
    binder.problems.error("B305", f"unknown method '{node.name}'", node.span, hint)
    return UNKNOWN


def _bound_method(binder: Binding, node: ast.Method, method: ListMethod, base: Bound, place: Place) -> Bound:
    """A method of a list with its argument: none, a lambda over each element, or a number."""
    if method.event is not None and 0 < len(node.args) <= len(method.event.parameters):
        return _of_events(binder, node, method.event, base, place)
    argument = node.args[0] if len(node.args) == 1 else None
    if not node.args and method.ordered and not _is_sorted(binder, node.base, base):
        hint = "the least and the greatest of a sorted column need none"
        binder.problems.error("B304", f"{node.name}() takes a lambda, as in x => x.v", node.span, hint)
        return UNKNOWN
    if not node.args and method.plain is not None:
        return Apply(method.plain, (base,), type=method.plain.result_type([base.type]), span=node.span)
    if isinstance(argument, ast.Lambda) and len(argument.parameters) <= 3 and method.each is not None:
        return _over_elements(binder, node, method, base, argument, place)
    second = method.number or method.other
    if argument is not None and not isinstance(argument, ast.Lambda) and second is not None:
        wanted, what = (Type.INTEGER, "a whole number") if method.number else (Type.ARRAY, "a list")
        value = binder.bind(argument, place)
        binder.expect(value, wanted, f"{node.name}() takes {what}", argument.span)
        return Apply(second, (base, value), type=second.result_type([base.type]), span=node.span)
    binder.problems.error("B304", f"{node.name}() takes {_taken(method)}", node.span)
    return UNKNOWN


def _over_elements(
    binder: Binding, node: ast.Method, method: ListMethod, base: Bound, given: ast.Lambda, place: Place
) -> Bound:
    """A method with a lambda over each element, and perhaps its index and the number of elements."""
    element, *numbers = given.parameters
    outer = len(binder.parameters)
    binder.parameters.append(LambdaParameter(element, event_fields.elements_of(binder, base)))
    binder.parameters += [LambdaParameter(name, None) for name in numbers]
    body = binder.bind(given.body, place)
    del binder.parameters[outer:]
    if method.condition:
        binder.expect(body, Type.BOOLEAN, f"{node.name}() takes a condition", given.body.span)
    return Enumerate(base, node.name, body, len(given.parameters), type=method.returns, span=node.span)


def _is_sorted(binder: Binding, node: ast.Expr, base: Bound) -> bool:
    """True for `sorted(…)` and for a column of a table that is declared so."""
    if isinstance(base, TableRead):
        table, column = base.table, base.column
    elif isinstance(base, Read):
        table, column = binder.scope.sources[base.source].stream, base.column
    else:
        return isinstance(node, ast.Call) and node.name == "sorted"
    relation = binder.site.catalog.relations.get(table)
    declaration = None if relation is None else relation.declaration
    if not isinstance(declaration, TableDeclaration) or column not in declaration.aggregates:
        return False
    return declaration.aggregates[column].definition.name == "sorted"


def _of_events(binder: Binding, node: ast.Method, function: Function, base: Bound, place: Place) -> Bound:
    """`last(*)`, `last(column)`, `last(column, 1)` of a list of events."""
    what, *numbers = node.args
    if isinstance(what, ast.Column) and what.table is None:
        value = LambdaRead(what.name, span=what.span)
        base = Enumerate(base, "selectfrom", value, type=Type.ARRAY, span=node.span)
    elif not isinstance(what, ast.Star) or what.table is not None:
        hint = "write .selectFrom(x => …) before it"
        binder.problems.error("B304", f"{node.name}() takes * or a column", what.span, hint)
    bound = [binder.bind(number, place) for number in numbers]
    for number in bound:
        binder.expect(number, Type.INTEGER, f"{node.name}() takes a number of events", number.span)
    return Apply(function, (base, *bound), type=function.result_type([base.type]), span=node.span)


def _taken(method: ListMethod) -> str:
    """The arguments of a method, in words."""
    each = "a condition, as in x => x.v > 1" if method.condition else "a lambda, as in x => x.v"
    forms = {
        "nothing": method.plain,
        each: method.each,
        "a whole number": method.number,
        "a list": method.other,
    }
    return " or ".join(word for word, form in forms.items() if form is not None)

"""Binding calls of aggregates."""

from __future__ import annotations

from typing import Any

from sql import syntax as ast
from sql.aggregates import base as aggregates
from sql.binder import stars
from sql.binder.binding import Binding
from sql.binder.calls.call_arguments import argument_place, check_arity, check_constant, remember
from sql.binder.constants import constant
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN
from sql.errors import Span
from sql.functions.definition import Parameter
from sql.plan.bound import AggregateCall, Bound, Op, Read, Slot
from sql.record import replace
from sql.types import Type


def bind_aggregate(binder: Binding, node: ast.Call, definition: aggregates.Aggregate, place: Place) -> Bound:
    if not place.aggregates:
        hint = (
            "compute it in one rule, and read its results in another" if place.name.endswith("()") else None
        )
        if place.name == "WHERE":
            hint = "use HAVING to filter by an aggregate; WHERE sees one event at a time"
            if not binder.kind.epl:
                hint += ", and is never true in eKuiper"
        binder.problems.error(
            "B330", f"aggregate {node.name}() is not allowed in {place.name}", node.span, hint
        )
        return UNKNOWN
    if definition.covers_more and binder.kind.mode == "sample":
        message = f"{node.name}() covers events that have left, a window of GROUP BY the events in it"
        hint = "write max(), count() and their like; acc_max(), acc_count() and their like cover all events"
        binder.problems.error("B330", message, node.span, hint)
        return UNKNOWN
    inner = argument_place(node, place)
    last = node.args[-1] if node.filter is None and definition.takes_filter(len(node.args)) else None
    if last is not None and not isinstance(last, ast.Star):
        node = replace(node, args=node.args[:-1], filter=last)
    if not node.args and definition.of_events and definition.whole_row and binder.kind.epl:
        node = replace(node, args=(ast.Star(span=node.span),))  # first() is first(*)
    star = len(node.args) == 1 and isinstance(node.args[0], ast.Star)
    counts_rows = all(parameter.optional for parameter in definition.parameters)
    if star and not (definition.whole_row or counts_rows):
        binder.problems.error("B331", f"{node.name}(*) has no meaning; name a column", node.span)
        return UNKNOWN
    least = sum(not parameter.optional and not parameter.variadic for parameter in definition.parameters)
    if not star and not check_arity(binder, node, 0 if counts_rows else least, definition.most_arguments):
        return UNKNOWN
    stars = [arg for arg in node.args if isinstance(arg, ast.Star)]
    if stars and not star and (len(stars) > 1 or not definition.whole_row):
        message = f"{node.name}() takes a column, not a whole row among its arguments"
        binder.problems.error("B331", message, stars[-1].span)
        return UNKNOWN
    values, constants = _split_arguments(binder, node, definition, inner)
    _check_aggregate_types(binder, node, definition, values)
    shows = _shown_events(binder, node, values) if definition.needs_event else None
    call = AggregateCall(
        definition,
        values,
        constants,
        node.distinct,
        binder.condition(node.filter, replace(inner, name="FILTER")),
        None if node.group_by is None else tuple(binder.bind(part, inner) for part in node.group_by),
        shows,
        _joined_source(binder, definition, values),
        span=node.span,
    )
    result = definition.result_type([value.type for value in values])
    return Slot("aggregate", remember(binder.aggregates, call), type=result, span=node.span)


def _shown_events(binder: Binding, node: ast.Call, values: tuple[Bound, ...]) -> int | tuple[str, ...] | None:
    """Read what an aggregate whose result is events shows: `AggregateCall.shows`."""
    scope = binder.scope
    own = range(scope.own)
    tags = stars.tags_of(scope)
    if tags is not None or not binder.kind.epl:
        for place in own:
            scope.read_all(place, node.span)
        return tags
    read = {part.source for value in values for part in value.walk() if isinstance(part, Read)}
    chosen = own if len(own) == 1 else read.intersection(own)
    if len(chosen) == 1:
        (place,) = chosen
        scope.read_all(place, node.span)
        return place if len(own) > 1 else None
    message = f"{node.name}() shows events of one source; its keys read columns of {len(chosen) or 'none'}"
    binder.problems.error("B331", message, node.span, "write keys of the source whose events you want")
    return None


def _joined_source(
    binder: Binding, definition: aggregates.Aggregate, values: tuple[Bound, ...]
) -> int | None:
    """The source of a join in EPL whose events, rather than joined rows, the aggregate takes."""
    scope = binder.scope
    if not definition.of_events or not binder.kind.epl or scope.own == 1 or stars.tags_of(scope) is not None:
        return None
    read = {part.source for value in values for part in value.walk() if isinstance(part, Read)}
    chosen = read.intersection(range(scope.own))
    return chosen.pop() if len(chosen) == 1 else None


def _split_arguments(
    binder: Binding, node: ast.Call, definition: aggregates.Aggregate, place: Place
) -> tuple[tuple[Bound, ...], tuple[Any, ...]]:
    """Arguments evaluated per event, and trailing ones that are constants."""
    first_constant = len(definition.parameters) - definition.constants
    values: list[Bound] = []
    constants: list[Any] = []
    for index, arg in enumerate(node.args):
        if isinstance(arg, ast.Star):
            if definition.whole_row:
                values.append(stars.row_value(binder, arg, place))
            continue
        criterion = arg if definition.ordered and isinstance(arg, ast.Ordering) else None
        bound = binder.bind(arg if criterion is None else criterion.operand, place)
        if definition.constants and index >= first_constant:
            constants.append(_constant_of(binder, node.name, definition.parameters[index], bound, arg.span))
        else:
            is_descending = criterion is not None and criterion.descending
            values.append(Op("descending", (bound,), span=arg.span) if is_descending else bound)
    return tuple(values), tuple(constants)


def _constant_of(binder: Binding, name: str, parameter: Parameter, bound: Bound, span: Span) -> Any:
    """The value of an aggregate's parameter that is a constant."""
    found = constant(binder.site.catalog, bound)
    if found is None or (found.value is None and parameter.type is not Type.ANY):
        binder.problems.error("B332", f"{name}() needs a constant for '{parameter.name}'", span)
        return None
    binder.expect(
        found, parameter.type, f"{name}() takes {parameter.type.value} for '{parameter.name}'", span
    )
    check_constant(binder, parameter, found, span)
    return found.value


def _check_aggregate_types(
    binder: Binding, node: ast.Call, definition: aggregates.Aggregate, values: tuple[Bound, ...]
) -> None:
    for index, value in enumerate(values):
        if not definition.parameters or isinstance(node.args[min(index, len(node.args) - 1)], ast.Star):
            continue
        parameter = definition.parameters[min(index, len(definition.parameters) - 1)]
        what = f"{node.name}() takes {parameter.type.value} for '{parameter.name}'"
        span = value.span if value.span.end else node.span
        binder.expect(value, parameter.type, what, span)
        check_constant(binder, parameter, value, span)

"""Binding calls that read earlier events: prev and its relatives, and analytic functions."""

from __future__ import annotations

from collections.abc import Sequence

from sql import syntax as ast
from sql.algebra.derived.analytic_catalog import ANALYTIC_FUNCTIONS
from sql.binder import kuiper, stars
from sql.binder.binding import Binding
from sql.binder.calls.call_arguments import argument_place, check_arity, count_of, remember
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN
from sql.plan.bound import AnalyticCall, Bound, Const, PrevCall, Slot
from sql.record import replace
from sql.types import Type

PREVS = {"prev": (1, 2), "prior": (1, 2), "prevtail": (1, 2), "prevcount": (1, 1), "prevwindow": (1, 1)}

ANALYTICS = {item.name: (item.least, item.most) for item in ANALYTIC_FUNCTIONS}
"""The least and the most arguments of analytic functions."""

ANALYTIC_RESULTS = {
    "acc_count": Type.INTEGER,
    "had_changed": Type.BOOLEAN,
    "change_to": Type.BOOLEAN,
    "consecutive_count": Type.INTEGER,
    "acc_sum": Type.FLOAT,
    "acc_avg": Type.FLOAT,
}


def bind_prev(binder: Binding, node: ast.Call, place: Place) -> Bound:
    least, most = PREVS[node.name]
    if not check_arity(binder, node, least, most):
        return UNKNOWN
    if not place.prevs or binder.site.on_demand:
        where = place.name if not place.prevs else "a question on demand"
        binder.problems.error("B322", f"{node.name}() is not allowed in {where}", node.span)
        return UNKNOWN
    inner = replace(place, prevs=False, aggregates=False)
    value: Bound | None
    last = node.args[-1]
    if isinstance(last, ast.Star):
        is_whole = stars.tags_of(binder.scope) is None and not (last.excluded or last.replaced)
        value = binder.scope.read_all(0, last.span) if is_whole else stars.row_value(binder, last, inner)
    else:
        value = binder.bind(node.args[-1], inner)
    default = 0 if node.name == "prevtail" else 1
    given = binder.bind(node.args[0], inner) if len(node.args) == 2 else Const(default)
    if len(node.args) == 2 and node.name != "prior":
        if isinstance(value, Const) and not isinstance(given, Const):
            given, value = value, given  # prev(x, 1)
        _check_number(binder, node, given)
    index = count_of(binder, given) if node.name == "prior" else given
    if index is None:
        binder.problems.error("B323", "prior() needs a constant number of events", node.args[0].span)
        return UNKNOWN
    call = PrevCall(node.name, 0, index, value, span=node.span)
    result = (
        Type.INTEGER if node.name == "prevcount" else Type.ARRAY if node.name == "prevwindow" else value.type
    )
    return Slot("prev", remember(binder.prevs, call), type=result, span=node.span)


def _check_number(binder: Binding, node: ast.Call, number: Bound) -> None:
    """Report a number of events that is not a whole number."""
    if not Type.INTEGER.accepts(number.type):
        message = f"{node.name}() takes a number of events, a whole number"
        binder.problems.error("B323", message, node.args[0].span, f"write {node.name}(1, x)")


def bind_analytic(binder: Binding, node: ast.Call, place: Place) -> Bound:
    least, most = ANALYTICS[node.name]
    if not check_arity(binder, node, least, most):
        return UNKNOWN
    if node.name.startswith("acc_") and len(node.args) == 2:
        message = f"{node.name}() takes 1 argument or 3, not 2"
        hint = f"{node.name}(x, begin, reset): conditions that open and close"
        binder.problems.error("B310", message, node.span, hint)
        return UNKNOWN
    if not place.analytics:
        binder.problems.error(
            "B324", f"analytic function {node.name}() is not allowed in {place.name}", node.span
        )
        return UNKNOWN
    inner = replace(argument_place(node, place), prevs=False)
    over = node.over or ast.Over()
    for order in over.order_by:
        binder.problems.error(
            "B316", f"ORDER BY has no effect on {node.name}(): events come in their order", order.span
        )
    args = tuple(_analytic_arguments(binder, node, inner))
    if len(args) < least:
        return UNKNOWN
    if node.name in _MONITORED:
        _check_target(binder, node.name, args[_MONITORED[node.name] :])
    call = AnalyticCall(
        node.name,
        args,
        partition_by=tuple(binder.bind(part, inner) for part in over.partition_by),
        when=binder.condition(over.when, replace(inner, name=f"WHEN of {node.name}()")),
        span=node.span,
    )
    value = args[node.name in ("changed_col", "had_changed", "consecutive_start")] if args else None
    result = ANALYTIC_RESULTS.get(node.name, value.type if value is not None else Type.ANY)
    return Slot("analytic", remember(binder.analytics, call), type=result, span=node.span)


_MONITORED = {"change_to": 0, "change_capture": 1}
"""The place of the value that is compared with a target, which stands behind it."""


def _check_target(binder: Binding, name: str, values: Sequence[Bound]) -> None:
    """Report a target that the value can never be."""
    if len(values) > 1:
        value, target = values[0], values[1]
        wanted = Type.NUMBER if value.type.is_numeric else value.type
        binder.expect(target, wanted, f"{name}() compares with {value.type.value}", target.span)


def _analytic_arguments(binder: Binding, node: ast.Call, place: Place) -> list[Bound]:
    out: list[Bound] = []
    for index, arg in enumerate(node.args):
        if not isinstance(arg, ast.Star):
            bound = binder.bind(arg, place)
            wanted = _analytic_type(node.name, index)
            binder.expect(
                bound, wanted, f"argument {index + 1} of {node.name}() is a {wanted.value}", arg.span
            )
            out.append(bound)
            if node.name == "lag" and index == 1:
                kuiper.check_rows_back(binder, bound, arg.span)
        elif node.name == "acc_count" and not index:
            out.append(Const(1, type=Type.INTEGER, span=arg.span))  # every row counts
        elif node.name == "had_changed" and index:
            out += stars.every_column(binder, arg)
        elif node.name == "changed_col" and index:
            out.append(stars.row_value(binder, arg, place))
        else:
            binder.problems.error("B331", f"{node.name}(*) has no meaning; name a column", arg.span)
            out.append(UNKNOWN)
    return out


_TYPES: dict[str, tuple[Type, ...]] = {
    "lag": (Type.ANY, Type.INTEGER, Type.ANY, Type.BOOLEAN),
    "change_to": (Type.ANY, Type.ANY, Type.BOOLEAN),
    "change_capture": (Type.ANY, Type.ANY, Type.ANY, Type.BOOLEAN),
    "consecutive_count": (Type.BOOLEAN,),
    "consecutive_start": (Type.BOOLEAN, Type.ANY),
}


def _analytic_type(name: str, index: int) -> Type:
    """The requirement on an argument of an analytic function."""
    if name in _TYPES:
        return _TYPES[name][index]
    if name in ("changed_col", "had_changed"):
        return Type.ANY if index else Type.BOOLEAN
    if name.startswith("acc") and name != "acc_count" and not index:
        return Type.NUMBER
    return Type.BOOLEAN if name.startswith("acc") and index else Type.ANY

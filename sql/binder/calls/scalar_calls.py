"""Binding calls of scalar functions."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder import stars
from sql.binder.binding import Binding
from sql.binder.calls.call_arguments import check_arity, check_constant
from sql.binder.constants import constant
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN
from sql.errors import Span
from sql.functions import registry as functions
from sql.functions.definition import Function, Parameter
from sql.plan.bound import Apply, Bound, Const
from sql.record import replace
from sql.types import Type, type_named

SCALARS = frozenset({Type.BOOLEAN, Type.INTEGER, Type.FLOAT, Type.NUMBER})
"""Types whose values a function of text takes by their text."""


def bind_scalar(binder: Binding, node: ast.Call, function: Function, place: Place) -> Bound:
    """The bound form of a call of a scalar function."""
    kind = node.args[1] if node.name == "cast" and len(node.args) == 2 else None
    if isinstance(kind, ast.Column | ast.Field):  # of `java.lang.Integer` the last name is the type
        node = replace(node, args=(node.args[0], ast.Constant(kind.name, span=kind.span)))
    least, most = function.arity
    if node.distinct or node.filter is not None or node.group_by is not None:
        binder.problems.error(
            "B311", f"{node.name}() is no aggregate: DISTINCT and FILTER have no effect", node.span
        )
    if not check_arity(binder, node, least, most):
        return UNKNOWN
    if function.in_pairs and len(node.args) % 2:
        names = " and ".join(parameter.name for parameter in function.parameters)
        binder.problems.error(
            "B310", f"{node.name}() takes pairs of {names}, not {len(node.args)} arguments", node.span
        )
        return UNKNOWN
    args = tuple(
        _argument(binder, node.name, function.parameter(index), arg, place)
        for index, arg in enumerate(node.args)
    )
    for index, (bound, arg) in enumerate(zip(args, node.args, strict=True)):
        parameter = function.parameter(index)
        if not (parameter.as_text and not isinstance(bound, Const) and bound.type in SCALARS):
            what = f"{node.name}() takes {parameter.type.value} for '{parameter.name}'"
            binder.expect(bound, parameter.type, what, arg.span)
        check_constant(binder, parameter, bound, arg.span)
    if node.name == "cast" and isinstance(args[1], Const) and isinstance(args[1].value, str):
        return cast(binder, args[0], args[1].value, node.span)
    return Apply(function, args, type=function.result_type([arg.type for arg in args]), span=node.span)


def _argument(binder: Binding, name: str, parameter: Parameter, arg: ast.Expr, place: Place) -> Bound:
    """An argument, with its value in place of an expression where the parameter is a constant; `*` is the
    event."""
    bound = stars.row_value(binder, arg, place) if isinstance(arg, ast.Star) else binder.bind(arg, place)
    found = constant(binder.site.catalog, bound) if parameter.constant else bound
    if found is None:
        binder.problems.error("B312", f"{name}() needs a constant for '{parameter.name}'", arg.span)
    return found or bound


def cast(binder: Binding, operand: Bound, type_name: str, span: Span) -> Bound:
    """CAST(x AS type) is the function cast(x, "type")."""
    function = functions.lookup("cast")
    assert function is not None
    name = Const(type_name, type=Type.STRING, span=span)
    return Apply(function, (operand, name), type=type_named(type_name) or Type.ANY, span=span)

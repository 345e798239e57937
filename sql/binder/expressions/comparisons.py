"""Binding `=`, `<` and their kin, BETWEEN and IN: what may be compared, and dates as instants.

A datetime is epoch milliseconds or a text in a valid format. Compared with anything, each side that may be a
text is read as an instant, as eKuiper does: the order of texts is not that of dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from functools import reduce

from sql import syntax as ast
from sql.binder.binding import Binding
from sql.binder.calls.scalar_calls import cast
from sql.binder.place import Place
from sql.errors import DataError, Span
from sql.functions.instants import instant_ms
from sql.plan.bound import Bound, Const, Op
from sql.types import Type, order_key

SIGNS = frozenset({"=", "!=", "<", "<=", ">", ">=", "is"})


def bind_comparison(binder: Binding, node: ast.Binary, args: Sequence[Bound]) -> Bound:
    """`a < b` of two bound sides."""
    left, right = args
    _check_comparable(binder, f"'{node.op}'", left, right, node.span)
    return _test(node.op, instants(binder, args), node.span)


def _check_comparable(binder: Binding, what: str, left: Bound, right: Bound, span: Span) -> None:
    if not (left.type.accepts(right.type) or right.type.accepts(left.type)):
        message = f"{what} compares {left.type.value} with {right.type.value}"
        hint = 'use cast(x, "…") to convert one side'
        if Type.ARRAY in (left.type, right.type):
            hint = "x in (list) finds x in a list; list.anyOf(y => y < x) and allOf compare each element"
        elif not binder.kind.epl:
            hint += "; eKuiper fails at each event"
        binder.problems.error("B302", message, span, hint)


def bind_equality(binder: Binding, subject: Bound, value: Bound, span: Span) -> Bound:
    """`CASE subject WHEN value`."""
    _check_comparable(binder, "WHEN", subject, value, span)
    return _test("=", instants(binder, (subject, value)), span)


def bind_between(binder: Binding, node: ast.Between, place: Place) -> Bound:
    """`a BETWEEN b AND c`. EPL turns a reversed range round; its ranges may leave out an end."""
    bound = [binder.bind(part, place) for part in (node.operand, node.low, node.high)]
    for end in bound[1:]:
        _expect(binder, end, bound[0].type, "BETWEEN", end.span)
    args = instants(binder, bound)
    if node.low_open or node.high_open:
        signs = (">" if node.low_open else ">=", "<" if node.high_open else "<=")
        parts = [_test(sign, (args[0], end), node.span) for sign, end in zip(signs, args[1:], strict=True)]
        return negatable(_test("and", parts, node.span), node.negated)
    either = binder.kind.epl and not node.in_range
    turned = "turned" if either and not all(isinstance(end, Const) for end in args[1:]) else None
    if either and turned is None:
        args = (args[0], *_in_order(args[1], args[2]))
    return negatable(Op("between", args, turned, type=Type.BOOLEAN, span=node.span), node.negated)


def bind_in(binder: Binding, node: ast.In, place: Place) -> Bound:
    """`a IN (b, …)` and `a IN array`. An array in the list stands for its elements."""
    operand = binder.bind(node.operand, place)
    if node.array is not None:
        array = binder.bind(node.array, place)
        binder.expect(array, Type.ARRAY, "IN takes a list or an array", node.array.span)
        return negatable(_among(operand, array, node.span), node.negated)
    bound = [binder.bind(item, place) for item in node.items]
    arrays = [] if operand.type in (Type.ARRAY, Type.ANY) else [b for b in bound if b.type is Type.ARRAY]
    items = [item for item in bound if item not in arrays]
    for item in items:
        _expect(binder, item, operand.type, "IN", item.span)
    tests = [_among(operand, array, node.span) for array in arrays]
    if items:
        tests.append(_test("in", instants(binder, [operand, *items]), node.span))
    return negatable(reduce(lambda a, b: _test("or", (a, b), node.span), tests), node.negated)


def _among(operand: Bound, array: Bound, span: Span) -> Op:
    return Op("in", (operand, array), "array", type=Type.BOOLEAN, span=span)


def negatable(op: Op, negated: bool) -> Bound:
    """The test, or its opposite."""
    return Op("not", (op,), type=Type.BOOLEAN, span=op.span) if negated else op


def instants(binder: Binding, args: Sequence[Bound]) -> tuple[Bound, ...]:
    """The sides of a comparison; beside a datetime, those that may be texts as epoch milliseconds."""
    if all(arg.type is not Type.DATETIME for arg in args):
        return tuple(args)
    return tuple(_instant(binder, arg) for arg in args)


def _instant(binder: Binding, arg: Bound) -> Bound:
    if arg.type not in (Type.DATETIME, Type.STRING, Type.ANY):
        return arg
    if isinstance(arg, Const) and isinstance(arg.value, str):
        try:
            instant_ms(arg.value, UTC)
        except DataError as error:
            binder.problems.error("B307", str(error), arg.span)
    return cast(binder, arg, "datetime", arg.span)


def _test(op: str, args: Sequence[Bound], span: Span) -> Op:
    return Op(op, tuple(args), type=Type.BOOLEAN, span=span)


def _expect(binder: Binding, bound: Bound, type_: Type, word: str, span: Span) -> None:
    """Numbers compare with numbers of either kind, everything else with its own type."""
    wanted = Type.NUMBER if type_.is_numeric else type_
    binder.expect(bound, wanted, f"{word} compares with {type_.value}", span)


def _in_order(low: Bound, high: Bound) -> tuple[Bound, Bound]:
    """Two constants as the ends of a range: EPL turns a reversed one round."""
    assert isinstance(low, Const) and isinstance(high, Const)
    return (high, low) if order_key(low.value) > order_key(high.value) else (low, high)

"""Binding operators: their operands' types, and the type of the result."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.binding import Binding
from sql.binder.calls.call_arguments import check_constant
from sql.binder.calls.scalar_calls import cast
from sql.binder.expressions import comparisons
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN
from sql.errors import did_you_mean
from sql.functions import registry as functions
from sql.plan.bound import Apply, Bound, Const, Op
from sql.types import Type, type_named, type_names, type_of


def bind_constant(binder: Binding, node: ast.Constant, place: Place) -> Bound:
    """A constant, with its type."""
    return Const(node.value, type=type_of(node.value), span=node.span)


def bind_unary(binder: Binding, node: ast.Unary, place: Place) -> Bound:
    """NOT, a sign."""
    operand = binder.bind(node.operand, place)
    if node.op == "not":
        binder.expect(operand, Type.BOOLEAN, "NOT takes a boolean", node.operand.span)
        return Op("not", (operand,), type=Type.BOOLEAN, span=node.span)
    binder.expect(operand, Type.NUMBER, f"'{node.op}' takes a number", node.operand.span)
    if node.op == "+":
        return operand
    if isinstance(operand, Const) and operand.value.__class__ in (int, float):
        return Const(-operand.value, type=operand.type, span=node.span)
    return Op("neg", (operand,), type=operand.type, span=node.span)


def bind_binary(binder: Binding, node: ast.Binary, place: Place) -> Bound:
    """AND and OR, comparisons, arithmetic, `||`."""
    args = (binder.bind(node.left, place), binder.bind(node.right, place))
    sides = zip(args, (node.left, node.right), strict=True)
    if node.op in ("and", "or"):
        for bound, side in sides:
            binder.expect(bound, Type.BOOLEAN, f"{node.op.upper()} takes booleans", side.span)
        return Op(node.op, args, type=Type.BOOLEAN, span=node.span)
    if node.op in comparisons.SIGNS:
        return comparisons.bind_comparison(binder, node, args)
    wanted, what = (Type.STRING, "texts") if node.op == "||" else (Type.NUMBER, "numbers")
    joins_texts = node.op == "+" and all(bound.type is Type.STRING for bound in args)
    hint = "write || to join texts" if joins_texts else None
    for bound, side in sides:
        binder.expect(bound, wanted, f"'{node.op}' takes {what}", side.span, hint)
    return Op(node.op, args, type=_arithmetic_type(node.op, args), span=node.span)


def bind_is_null(binder: Binding, node: ast.IsNull, place: Place) -> Bound:
    """`a IS [NOT] NULL`."""
    test = Op("isnull", (binder.bind(node.operand, place),), type=Type.BOOLEAN, span=node.span)
    return Op("not", (test,), type=Type.BOOLEAN, span=node.span) if node.negated else test


def bind_like(binder: Binding, node: ast.Like, place: Place) -> Bound:
    """LIKE, and REGEXP as a function: in EPL the pattern matches the whole text, elsewhere a part of it."""
    args = (binder.bind(node.operand, place), binder.bind(node.pattern, place))
    for bound, side in zip(args, (node.operand, node.pattern), strict=True):
        binder.expect(bound, Type.STRING, "LIKE takes texts", side.span)
    if node.regexp:
        matches = functions.lookup("regexp_fullmatch" if binder.kind.epl else "regexp_matches")
        assert matches is not None
        check_constant(binder, matches.parameters[1], args[1], node.pattern.span)
        test: Bound = Apply(matches, args, type=Type.BOOLEAN, span=node.span)
        return Op("not", (test,), type=Type.BOOLEAN, span=node.span) if node.negated else test
    return comparisons.negatable(
        Op("like", args, node.escape, type=Type.BOOLEAN, span=node.span), node.negated
    )


def bind_case(binder: Binding, node: ast.Case, place: Place) -> Bound:
    """CASE with a subject, or searched."""
    args: list[Bound] = []
    subject = None if node.operand is None else binder.bind(node.operand, place)
    for when in node.whens:
        test = binder.bind(when.condition, place)
        if subject is not None:
            test = comparisons.bind_equality(binder, subject, test, when.condition.span)
        else:
            binder.expect(test, Type.BOOLEAN, "a searched WHEN takes a condition", when.condition.span)
        args += [test, binder.bind(when.value, place)]
    args.append(Const(None, type=Type.NULL) if node.default is None else binder.bind(node.default, place))
    types = {value.type for value in (*args[1::2], args[-1])} - {Type.NULL}
    return Op("case", tuple(args), type=types.pop() if len(types) == 1 else Type.ANY, span=node.span)


def bind_cast(binder: Binding, node: ast.Cast, place: Place) -> Bound:
    """`CAST(a AS type)`."""
    if type_named(node.type_name) is None:
        hint = did_you_mean(node.type_name, type_names())
        binder.problems.error("B303", f"unknown type '{node.type_name}'", node.span, hint)
        return UNKNOWN
    return cast(binder, binder.bind(node.operand, place), node.type_name, node.span)


def bind_array(binder: Binding, node: ast.ArrayLiteral, place: Place) -> Bound:
    """`{a, b}`."""
    items = tuple(binder.bind(item, place) for item in node.items)
    return Op("array", items, type=Type.ARRAY, span=node.span)


def bind_quantified(binder: Binding, node: ast.Quantified, place: Place) -> Bound:
    """`a op ANY|ALL (select …)`."""
    operand = binder.bind(node.operand, place)
    values = binder.bind_subquery(node, binder.scope)
    return Op("quantified", (operand, values), (node.op, node.quantifier), type=Type.BOOLEAN, span=node.span)


def _arithmetic_type(op: str, args: tuple[Bound, ...]) -> Type:
    types = {arg.type for arg in args}
    if op == "||":
        return Type.STRING
    if op == "/":
        return Type.FLOAT
    if types == {Type.INTEGER}:
        return Type.INTEGER
    if Type.FLOAT in types and Type.ANY not in types:
        return Type.FLOAT
    return Type.NUMBER

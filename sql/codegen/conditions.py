"""Conditions as Python that hold exactly when an expression is TRUE,
or FALSE: one small writer for each kind, in one table.

Three-valued logic costs nothing here: NULL is neither.
"""

from __future__ import annotations

from typing import Protocol

from sql.codegen.operand_writer import OperandWriter
from sql.codegen.operators import contained
from sql.plan.bound import Const, Op
from sql.types import Type, equal

_COMPARE = ("<", "<=", ">", ">=")


def negation(writer: OperandWriter, node: Op, *, wanted: bool) -> str:
    return writer.truth(node.args[0], wanted=not wanted)


def connection(writer: OperandWriter, node: Op, *, wanted: bool) -> str:
    """AND or OR: of a conjunction that is FALSE, some part is."""
    word = " and " if (node.name == "and") is wanted else " or "
    return f"({word.join(writer.truth(arg, wanted=wanted) for arg in node.args)})"


def comparison(writer: OperandWriter, node: Op, *, wanted: bool) -> str:
    tests, (a, b), _ = writer.operands(node.args)
    # NaN is neither less than 1 nor at least 1, so `NOT x < 1` is not `x >= 1`.
    return conjunction(tests, f"{'' if wanted else 'not '}{a} {node.name} {b}")


def inequality(writer: OperandWriter, node: Op, *, wanted: bool) -> str:
    return equality(writer, node, wanted=not wanted)


def equality(writer: OperandWriter, node: Op, *, wanted: bool) -> str:
    left, right = node.args
    if isinstance(left, Const) and not isinstance(right, Const):
        left, right = right, left
    operator = "==" if wanted else "!="
    a, b = writer.value(left), writer.value(right)
    if a.sure is not None and a.sure == b.sure:
        tests, (x, y), _ = writer.operands((left, right))
        return conjunction(tests, f"{x} {operator} {y}")
    general = writer.names.bind(equal, "equal")
    is_constant = isinstance(left, Const)
    if isinstance(right, Const) and right.value.__class__ in (str, int, float) and not is_constant:
        # One test of the class decides NULL, type and value for values of the expected class.
        name, first = (a.text, a.text) if a.atom else writer.named(a.text)
        if right.value.__class__ is str:
            expected = f"{first}.__class__ is str"
        else:
            kind = writer.names.temporary()
            expected = f"({kind} := {first}.__class__) is float or {kind} is int"
        return f"({name} {operator} {b.text} if {expected} else {general}({name}, {b.text}) is {wanted})"
    return f"({general}({a.text}, {b.text}) is {wanted})"


def between(writer: OperandWriter, node: Op, *, wanted: bool) -> str:
    operand, low, high = node.args
    if isinstance(low, Const) and isinstance(high, Const) and None not in (low.value, high.value):
        tests, (x,), _ = writer.operands((operand,))
        text = f"{writer.text(low)} <= {x} <= {writer.text(high)}"
        return conjunction(tests, text if wanted else f"not {text}")
    return writer.truth(_expand_between(node), wanted=wanted)


def membership(writer: OperandWriter, node: Op, *, wanted: bool) -> str:
    operand, *items = node.args
    values = [item.value for item in items if isinstance(item, Const)]
    if len(values) == len(items) and values and all(value.__class__ is str for value in values):
        code = writer.value(operand)
        name, first = (code.text, code.text) if code.atom else writer.named(code.text)
        members = writer.names.bind(frozenset(values), "among")
        general = writer.call("contains", name, members).text
        word = "in" if wanted else "not in"
        return f"({name} {word} {members} if {first}.__class__ is str else {general} is {wanted})"
    return f"({contained(writer, node).text} is {wanted})"


def nullness(writer: OperandWriter, node: Op, *, wanted: bool) -> str:
    code = writer.value(node.args[0])
    # Python warns of a literal that is compared with None, `0 + 0` too.
    return f"{code.text} is {'' if wanted else 'not '}None" if code.nullable else str(not wanted)


def conjunction(tests: list[str], text: str) -> str:
    if not tests:
        return f"({text})"
    return f"({' and '.join(f'{test} is not None' for test in tests)} and {text})"


def _expand_between(node: Op) -> Op:
    operand, low, high = node.args
    straight = Op(
        "and", (Op(">=", (operand, low)), Op("<=", (operand, high))), type=Type.BOOLEAN, span=node.span
    )
    if node.extra != "turned":
        return straight
    turned = Op(
        "and", (Op(">=", (operand, high)), Op("<=", (operand, low))), type=Type.BOOLEAN, span=node.span
    )
    return Op("or", (straight, turned), type=Type.BOOLEAN, span=node.span)


class WriteCondition(Protocol):
    """Writes a condition that holds exactly when an operator's value is TRUE, or FALSE as `wanted`."""

    def __call__(self, writer: OperandWriter, node: Op, *, wanted: bool) -> str: ...


CONDITIONS: dict[str, WriteCondition] = {
    "not": negation,
    "and": connection,
    "or": connection,
    **dict.fromkeys(_COMPARE, comparison),
    "=": equality,
    "!=": inequality,
    "isnull": nullness,
    "between": between,
    "in": membership,
}
"""By the operator's name, what writes it as a condition; the value of any other is compared."""

"""The values of operators as Python: one small writer for each kind, in one table."""

from __future__ import annotations

from collections.abc import Callable

from sql.codegen.expression_code import BOOLEAN, NUMBER, TEXT, Code
from sql.codegen.operand_writer import OperandWriter
from sql.plan.bound import Const, Op
from sql.types import Descending


def arithmetic(writer: OperandWriter, node: Op) -> Code:
    tests, (a, b), codes = writer.operands(node.args)
    numbers = [code.sure == NUMBER for code in codes]
    # Text times number and text plus text do not raise in Python; a sign before the operand does, and before
    # a long text is made.
    if not numbers[0] and (node.name == "*" or (node.name == "+" and not numbers[1])):
        a = f"+{a}"
    if not numbers[1] and node.name == "*":
        b = f"+{b}"
    if not any(numbers) and node.name == "|":
        b += " | False"  # two dicts would be merged
    return writer.strict(tests, f"{a} {node.name} {b}", sure=NUMBER)


def division(writer: OperandWriter, node: Op) -> Code:
    tests, (a, b), codes = writer.operands(node.args)
    constant = node.args[1]
    if isinstance(constant, Const) and constant.value:
        return writer.strict(tests, f"{a} / {b}", sure=NUMBER)
    if not codes[1].nullable and not codes[1].atom:
        name = writer.names.temporary()
        return writer.strict(
            tests, f"{a} / {name} if ({name} := {b}) else {zero(writer)}", sure=NUMBER, nullable=True
        )
    return writer.strict(tests, f"({a} / {b} if {b} else {zero(writer)})", sure=NUMBER, nullable=True)


def zero(writer: OperandWriter) -> str:
    return f"{writer.names.bind(writer.warnings, 'warnings')}.zero()"


def modulo(writer: OperandWriter, node: Op) -> Code:
    tests, (a, b), _ = writer.operands(node.args)
    text = f"{writer.names.bind(writer.warnings, 'warnings')}.mod({a}, {b})"
    return writer.strict(tests, text, sure=NUMBER, nullable=True)


def concat(writer: OperandWriter, node: Op) -> Code:
    tests, (a, b), _ = writer.operands(node.args)
    return writer.strict(tests, writer.call("concat", a, b).text, sure=TEXT)


def negative(writer: OperandWriter, node: Op) -> Code:
    tests, (a,), _ = writer.operands(node.args)
    return writer.strict(tests, f"-{a}", sure=NUMBER)


def field(writer: OperandWriter, node: Op) -> Code:
    base, name = writer.names.temporary(), repr(node.extra)
    rare = writer.call("field", base, name).text
    return Code(
        f"({base}.get({name}) if ({base} := {writer.text(node.args[0])}).__class__ is dict else {rare})"
    )


def index(writer: OperandWriter, node: Op) -> Code:
    return writer.call("index", *(writer.text(arg) for arg in node.args))


def cut(writer: OperandWriter, node: Op) -> Code:
    return writer.call("cut", *(writer.text(arg) for arg in node.args))


def array(writer: OperandWriter, node: Op) -> Code:
    return Code(f"[{', '.join(writer.text(arg) for arg in node.args)}]", nullable=False)


def case(writer: OperandWriter, node: Op) -> Code:
    """args: condition, value, condition, value, …, default."""
    *branches, default = node.args
    codes = [writer.value(arg) for arg in (*branches[1::2], default)]
    text = codes[-1].text
    for condition, code in reversed(list(zip(branches[::2], codes[:-1], strict=True))):
        text = f"{code.text} if {writer.true(condition)} else {text}"
    sure = codes[0].sure if len({code.sure for code in codes}) == 1 else None
    return Code(f"({text})", any(code.nullable for code in codes), False, sure)


def descending(writer: OperandWriter, node: Op) -> Code:
    wrap = writer.names.bind(Descending, "Descending")
    return Code(f"{wrap}({writer.text(node.args[0])})", nullable=False)


def quantified(writer: OperandWriter, node: Op) -> Code:
    """`x op any|all (select …)`: the operand, the list of the subquery's values; extra: (op,
    quantifier)."""
    sign, quantifier = node.extra
    helper = "any_of" if quantifier == "any" else "all_of"
    return writer.call(helper, repr(sign), *(writer.text(arg) for arg in node.args), sure=BOOLEAN)


def condition(writer: OperandWriter, node: Op) -> Code:
    """TRUE, FALSE or NULL as a value."""
    true = writer.true(node)
    if node.name == "isnull":
        return Code(f"({true})", False, False, BOOLEAN)
    # Evaluated twice only if the first condition failed; the operations are pure.
    return Code(f"(True if {true} else False if {writer.false(node)} else None)", True, False, BOOLEAN)


def compared(writer: OperandWriter, node: Op) -> Code:
    tests, (a, b), _ = writer.operands(node.args)
    return writer.strict(tests, f"{a} {node.name} {b}", sure=BOOLEAN)


def inverted(writer: OperandWriter, node: Op) -> Code:
    return writer.call("invert", writer.text(node.args[0]), sure=BOOLEAN)


def same(writer: OperandWriter, node: Op) -> Code:
    return writer.call("is_same", *(writer.text(arg) for arg in node.args), nullable=False, sure=BOOLEAN)


def contained(writer: OperandWriter, node: Op) -> Code:
    operand, *items = (writer.text(arg) for arg in node.args)
    if node.extra == "array":
        return writer.call("in_array", operand, items[0], sure=BOOLEAN)
    return writer.call("contains", operand, f"({', '.join(items)},)", sure=BOOLEAN)


def like(writer: OperandWriter, node: Op) -> Code:
    arguments = [writer.text(arg) for arg in node.args]
    return writer.call("like", *arguments, repr(node.extra), sure=BOOLEAN)


OPERATORS: dict[str, Callable[[OperandWriter, Op], Code]] = {
    **dict.fromkeys(("+", "-", "*", "&", "|", "^"), arithmetic),
    "/": division, "%": modulo, "||": concat, "neg": negative, "field": field, "index": index, "slice": cut,
    "array": array, "case": case, "not": inverted, "is": same, "in": contained, "like": like,
    **dict.fromkeys(("and", "or", "=", "!=", "isnull", "between"), condition),
    **dict.fromkeys(("<", "<=", ">", ">="), compared),
    "descending": descending, "quantified": quantified,
}  # fmt: skip
"""By the operator's name, what writes its value."""

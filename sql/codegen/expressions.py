"""Write bound expressions as Python source.

One writer serves the engine (one small function per clause) and the fast path (one loop per rule): a `Reader`
writes the reads of columns and slots for the place of the code.

Three-valued logic costs nothing where NULL and FALSE are equivalent: `true(e)` and `false(e)` give Python
conditions that hold exactly when e is TRUE or FALSE, and only `value(e)` spells out the NULL. Declared types
are not trusted, because messages may differ. Where a wrong type would not raise by itself (`'a' * 2`, `'5' =
5`) the code checks it explicitly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sql.codegen import support
from sql.codegen.names import Names
from sql.plan.bound import Apply, Bound, Const, Enumerate, LambdaRead, Op, Read, Slot, TableRead
from sql.record import Record
from sql.types import Descending, Type, equal, key_of

NUMBER, TEXT, BOOLEAN = "number", "text", "boolean"


class Code(Record):
    """A Python expression. `sure`: the kind that its value has if not NULL; `atom`: cheap to repeat."""

    text: str
    nullable: bool = True
    atom: bool = False
    sure: str | None = None


class Reader(Protocol):
    """The text of reads of names, for the place of the code."""

    def read(self, source: int, column: str | None) -> Code: ...
    def slot(self, slot: Slot) -> Code: ...
    def relation(self, name: str) -> str: ...


_COMPARE = {"<": ("<", ">="), "<=": ("<=", ">"), ">": (">", "<="), ">=": (">=", "<")}
_SURE = {int: NUMBER, float: NUMBER, str: TEXT, bool: BOOLEAN}


class ExpressionWriter:
    """The writer of expressions for one place (`reader`), with one set of global names."""

    def __init__(self, reader: Reader, names: Names, warnings: support.Warnings, context: Any) -> None:
        self.reader = reader
        self.names = names
        self.warnings = warnings
        self.context = context
        self._lambda: list[str] = []

    # --- values ---------------------------------------------------------------------------------------------

    def value(self, node: Bound) -> Code:
        """The value of an expression; None is NULL."""
        if isinstance(node, Const):
            return Code(
                self.names.constant(node.value), node.value is None, True, _SURE.get(node.value.__class__)
            )
        if isinstance(node, Read):
            return self.reader.read(node.source, node.column)
        if isinstance(node, Slot):
            return self.reader.slot(node)
        if isinstance(node, Apply):
            return self._apply(node)
        if isinstance(node, LambdaRead):
            name = self._lambda[-1]
            return Code(name) if node.property is None else self._call("field", name, repr(node.property))
        if isinstance(node, Enumerate):
            return self._enumerate(node)
        if isinstance(node, TableRead):
            return self._table_read(node)
        assert isinstance(node, Op)
        method: Callable[[Op], Code] = getattr(self, _METHODS[node.name])
        return method(node)

    def text(self, node: Bound) -> str:
        """The source text of a value."""
        return self.value(node).text

    def _call(self, helper: str, *arguments: str, nullable: bool = True, sure: str | None = None) -> Code:
        name = self.names.bind(getattr(support, helper), helper)
        return Code(f"{name}({', '.join(arguments)})", nullable, False, sure)

    def _operands(self, nodes: tuple[Bound, ...]) -> tuple[list[str], list[str], list[Code]]:
        """For each operand the text that reads it; for those that may be NULL the text to test against None,
        in order.

        An operand evaluated inside its test is stored in a temporary there.
        """
        tests, uses, codes = [], [], [self.value(node) for node in nodes]
        for code in codes:
            if not code.nullable:
                uses.append(code.text)
            elif code.atom:
                tests.append(code.text)
                uses.append(code.text)
            else:
                name = self.names.temporary()
                tests.append(f"({name} := {code.text})")
                uses.append(name)
        return tests, uses, codes

    def _strict(self, tests: list[str], text: str, *, sure: str | None, nullable: bool = False) -> Code:
        """An operation that is NULL if an operand is."""
        if not tests:
            return Code(f"({text})", nullable, False, sure)
        nulls = " or ".join(f"{test} is None" for test in tests)
        return Code(f"(None if {nulls} else {text})", True, False, sure)

    def _arithmetic(self, node: Op) -> Code:
        tests, (a, b), codes = self._operands(node.args)
        text = f"{a} {node.name} {b}"
        numbers = [code.sure == NUMBER for code in codes]
        # Text times number and text plus text do not raise in Python; adding 0 makes them.
        if (node.name == "*" and not all(numbers)) or (node.name == "+" and not any(numbers)):
            text += " + 0"
        return self._strict(tests, text, sure=NUMBER)

    def _division(self, node: Op) -> Code:
        tests, (a, b), codes = self._operands(node.args)
        constant = node.args[1]
        if isinstance(constant, Const) and constant.value:
            return self._strict(tests, f"{a} / {b}", sure=NUMBER)
        if not codes[1].nullable and not codes[1].atom:
            name = self.names.temporary()
            return self._strict(
                tests, f"{a} / {name} if ({name} := {b}) else {self._zero()}", sure=NUMBER, nullable=True
            )
        return self._strict(tests, f"({a} / {b} if {b} else {self._zero()})", sure=NUMBER, nullable=True)

    def _zero(self) -> str:
        return f"{self.names.bind(self.warnings, 'warnings')}.zero()"

    def _modulo(self, node: Op) -> Code:
        tests, (a, b), _ = self._operands(node.args)
        text = f"{self.names.bind(self.warnings, 'warnings')}.mod({a}, {b})"
        return self._strict(tests, text, sure=NUMBER, nullable=True)

    def _concat(self, node: Op) -> Code:
        tests, (a, b), _ = self._operands(node.args)
        return self._strict(tests, self._call("concat", a, b).text, sure=TEXT)

    def _negative(self, node: Op) -> Code:
        tests, (a,), _ = self._operands(node.args)
        return self._strict(tests, f"-{a}", sure=NUMBER)

    def _field(self, node: Op) -> Code:
        base, name = self.names.temporary(), repr(node.extra)
        rare = self._call("field", base, name).text
        return Code(
            f"({base}.get({name}) if ({base} := {self.text(node.args[0])}).__class__ is dict else {rare})"
        )

    def _index(self, node: Op) -> Code:
        return self._call("index", *(self.text(arg) for arg in node.args))

    def _slice(self, node: Op) -> Code:
        return self._call("cut", *(self.text(arg) for arg in node.args))

    def _array(self, node: Op) -> Code:
        return Code(f"[{', '.join(self.text(arg) for arg in node.args)}]", nullable=False)

    def _case(self, node: Op) -> Code:
        """args: condition, value, condition, value, …, default."""
        *branches, default = node.args
        codes = [self.value(arg) for arg in (*branches[1::2], default)]
        text = codes[-1].text
        for condition, code in reversed(list(zip(branches[::2], codes[:-1], strict=True))):
            text = f"{code.text} if {self.true(condition)} else {text}"
        sure = codes[0].sure if len({code.sure for code in codes}) == 1 else None
        return Code(f"({text})", any(code.nullable for code in codes), False, sure)

    def _apply(self, node: Apply) -> Code:
        function = node.function
        sure = {Type.STRING: TEXT, Type.BOOLEAN: BOOLEAN}.get(
            node.type, NUMBER if node.type.is_numeric else None
        )
        lead = [self.names.bind(self.context, "context")] if function.context else []
        if function.nulls == "pass":
            text = ", ".join([*lead, *(self.text(arg) for arg in node.args)])
            return Code(f"{self._function(node)}({text})", True, False, sure)
        tests, uses, _ = self._operands(node.args)
        if function.inline is not None and all(arg.type is Type.STRING for arg in node.args):
            return self._strict(tests, function.inline.format(*uses), sure=sure)
        return self._strict(
            tests, f"{self._function(node)}({', '.join([*lead, *uses])})", sure=sure, nullable=True
        )

    def _function(self, node: Apply) -> str:
        return self.names.bind(node.function.implementation, f"f_{node.function.name}")

    def _descending(self, node: Op) -> Code:
        wrap = self.names.bind(Descending, "Descending")
        return Code(f"{wrap}({self.text(node.args[0])})", nullable=False)

    def _table_read(self, node: TableRead) -> Code:
        """A lookup of the table's row by key."""
        table = self.reader.relation(node.table)
        if node.keys is None:
            return Code(f"{table}.keys()", nullable=False)
        key_text = self.names.bind(key_of, "key_of")
        keys = [f"{key_text}({self.text(key)})" for key in node.keys]
        key = keys[0] if len(keys) == 1 else f"({', '.join(keys)}{',' if keys else ''})"
        if node.column is None:
            return Code(f"{table}.row_at({key})")
        return Code(f"{table}.value_at({key}, {node.column!r})")

    def _quantified(self, node: Op) -> Code:
        """`x op any|all (select …)`: the operand, the list of the subquery's values; extra: (op,
        quantifier)."""
        sign, quantifier = node.extra
        helper = "any_of" if quantifier == "any" else "all_of"
        return self._call(helper, repr(sign), *(self.text(arg) for arg in node.args), sure=BOOLEAN)

    def _enumerate(self, node: Enumerate) -> Code:
        base = self.text(node.base)
        name = self.names.temporary()
        self._lambda.append(name)
        body = "None" if node.body is None else self.text(node.body)
        self._lambda.pop()
        return self._call("selected", base, f"lambda {name}: {body}")

    # --- conditions -----------------------------------------------------------------------------------------

    def true(self, node: Bound) -> str:
        """A Python condition that holds exactly when the expression is TRUE."""
        return self._truth(node, wanted=True)

    def false(self, node: Bound) -> str:
        """A Python condition that holds exactly when the expression is FALSE."""
        return self._truth(node, wanted=False)

    def _truth(self, node: Bound, *, wanted: bool) -> str:
        if isinstance(node, Const):
            return str(node.value is wanted)
        if isinstance(node, Op):
            if node.name == "not":
                return self._truth(node.args[0], wanted=not wanted)
            if node.name in ("and", "or"):
                word = " and " if (node.name == "and") is wanted else " or "
                return f"({word.join(self._truth(arg, wanted=wanted) for arg in node.args)})"
            if node.name in _COMPARE:
                tests, (a, b), _ = self._operands(node.args)
                compared = f"{a} {_COMPARE[node.name][not wanted]} {b}"
                return _conjunction(tests, compared)
            if node.name in ("=", "!="):
                return self._equality(node, wanted=wanted is (node.name == "="))
            if node.name == "isnull":
                if isinstance(node.args[0], Const):
                    return str((node.args[0].value is None) is wanted)
                return f"{self.text(node.args[0])} is {'' if wanted else 'not '}None"
            if node.name == "between":
                return self._between(node, wanted=wanted)
            if node.name == "in":
                return self._membership(node, wanted=wanted)
        code = self.value(node)
        checked = code.text if code.sure == BOOLEAN else self._call("boolean", code.text).text
        return f"({checked} is {wanted})"

    def _equality(self, node: Op, *, wanted: bool) -> str:
        left, right = node.args
        if isinstance(left, Const) and not isinstance(right, Const):
            left, right = right, left
        operator = "==" if wanted else "!="
        a, b = self.value(left), self.value(right)
        if a.sure is not None and a.sure == b.sure:
            tests, (x, y), _ = self._operands((left, right))
            return _conjunction(tests, f"{x} {operator} {y}")
        general = f"{self.names.bind(equal, 'equal')}"
        if isinstance(right, Const) and right.value.__class__ in (str, int, float):
            # One test of the class decides NULL, type and value for values of the expected class.
            name, first = (a.text, a.text) if a.atom else self._named(a.text)
            if right.value.__class__ is str:
                expected = f"{first}.__class__ is str"
            else:
                kind = self.names.temporary()
                expected = f"({kind} := {first}.__class__) is float or {kind} is int"
            return f"({name} {operator} {b.text} if {expected} else {general}({name}, {b.text}) is {wanted})"
        return f"({general}({a.text}, {b.text}) is {wanted})"

    def _named(self, text: str) -> tuple[str, str]:
        """A temporary's name, and the text that evaluates and names it on first use."""
        name = self.names.temporary()
        return name, f"({name} := {text})"

    def _between(self, node: Op, *, wanted: bool) -> str:
        operand, low, high = node.args
        if isinstance(low, Const) and isinstance(high, Const) and None not in (low.value, high.value):
            tests, (x,), _ = self._operands((operand,))
            text = f"{self.text(low)} <= {x} <= {self.text(high)}"
            return _conjunction(tests, text if wanted else f"not {text}")
        return self._truth(_expand_between(node), wanted=wanted)

    def _membership(self, node: Op, *, wanted: bool) -> str:
        operand, *items = node.args
        values = [item.value for item in items if isinstance(item, Const)]
        if len(values) == len(items) and values and all(value.__class__ is str for value in values):
            code = self.value(operand)
            name, first = (code.text, code.text) if code.atom else self._named(code.text)
            members = self.names.bind(frozenset(values), "members")
            general = self._call("contains", name, members).text
            word = "in" if wanted else "not in"
            return f"({name} {word} {members} if {first}.__class__ is str else {general} is {wanted})"
        return f"({self._in(node).text} is {wanted})"

    # --- conditions as values -------------------------------------------------------------------------------

    def _condition(self, node: Op) -> Code:
        """TRUE, FALSE or NULL as a value."""
        true = self.true(node)
        if node.name == "isnull":
            return Code(f"({true})", False, False, BOOLEAN)
        # Evaluated twice only if the first condition failed; the operations are pure.
        return Code(f"(True if {true} else False if {self.false(node)} else None)", True, False, BOOLEAN)

    def _compared(self, node: Op) -> Code:
        tests, (a, b), _ = self._operands(node.args)
        return self._strict(tests, f"{a} {node.name} {b}", sure=BOOLEAN)

    def _not(self, node: Op) -> Code:
        return self._call("invert", self.text(node.args[0]), sure=BOOLEAN)

    def _is(self, node: Op) -> Code:
        return self._call("is_same", *(self.text(arg) for arg in node.args), nullable=False, sure=BOOLEAN)

    def _in(self, node: Op) -> Code:
        operand, *items = (self.text(arg) for arg in node.args)
        if node.extra == "array":
            return self._call("in_array", operand, items[0], sure=BOOLEAN)
        return self._call("contains", operand, f"({', '.join(items)},)", sure=BOOLEAN)

    def _like(self, node: Op) -> Code:
        arguments = [self.text(arg) for arg in node.args]
        return self._call("like", *arguments, repr(node.extra), sure=BOOLEAN)


def _conjunction(tests: list[str], text: str) -> str:
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


_METHODS = {
    "+": "_arithmetic", "-": "_arithmetic", "*": "_arithmetic", "&": "_arithmetic", "|": "_arithmetic",
    "^": "_arithmetic", "/": "_division", "%": "_modulo", "||": "_concat", "neg": "_negative", "field": "_field",
    "index": "_index", "slice": "_slice", "array": "_array", "case": "_case", "not": "_not", "is": "_is",
    "in": "_in", "like": "_like", "and": "_condition", "or": "_condition", "=": "_condition", "!=": "_condition",
    "<": "_compared", "<=": "_compared", ">": "_compared", ">=": "_compared", "isnull": "_condition",
    "between": "_condition", "descending": "_descending", "quantified": "_quantified",
}  # fmt: skip

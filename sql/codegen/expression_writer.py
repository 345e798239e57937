"""Write bound expressions as Python source.

One writer serves the engine (one small function per clause) and the fast path (one loop per rule): a `Reader`
writes the reads of columns and slots for the place of the code.

Operators are written by `sql.codegen.operators`, conditions by `sql.codegen.conditions`; their operands come
back to this writer. Declared types are not trusted, because messages may differ. Where a wrong type would not
raise by itself (`'a' * 2`, `'5' = 5`) the code checks it explicitly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sql.aggregates.list_methods import LIST_METHODS
from sql.codegen.conditions import CONDITIONS
from sql.codegen.expression_code import BOOLEAN, NUMBER, TEXT, Code
from sql.codegen.names import Names
from sql.codegen.operand_writer import OperandWriter
from sql.codegen.operators import OPERATORS
from sql.codegen.support import Warnings
from sql.plan.bound import Apply, Bound, Const, Enumerate, LambdaRead, Op, Read, Slot, TableRead
from sql.types import Type, key_of


class Reader(Protocol):
    """The text of reads of names, for the place of the code."""

    def read(self, source: int, column: str | None) -> Code: ...
    def slot(self, slot: Slot) -> Code: ...
    def relation(self, name: str) -> str: ...


_SURE = {int: NUMBER, float: NUMBER, str: TEXT, bool: BOOLEAN}


class ExpressionWriter(OperandWriter):
    """The writer of expressions for one place (`reader`), with one set of global names."""

    def __init__(self, reader: Reader, names: Names, warnings: Warnings, context: Any) -> None:
        super().__init__(names, warnings)
        self.reader = reader
        self.context = context
        self._lambda: list[str] = []

    # --- values ---------------------------------------------------------------------------------------------

    def value(self, node: Bound) -> Code:
        """The value of an expression; None is NULL."""
        return _VALUES[type(node)](self, node)

    # --- kinds of expressions -------------------------------------------------------------------------------

    def _constant(self, node: Const) -> Code:
        kind = _SURE.get(node.value.__class__)
        return Code(self.names.constant(node.value), node.value is None, True, kind)

    def _operator(self, node: Op) -> Code:
        return OPERATORS[node.name](self, node)

    def _lambda_read(self, node: LambdaRead) -> Code:
        name = self._lambda[-1 - node.depth]
        return Code(name) if node.property is None else self.call("field", name, repr(node.property))

    def _apply(self, node: Apply) -> Code:
        function = node.function
        sure = {Type.STRING: TEXT, Type.BOOLEAN: BOOLEAN}.get(
            node.type, NUMBER if node.type.is_numeric else None
        )
        lead = [self.names.bind(self.context, "context")] if function.context else []
        if function.nulls == "pass":
            text = ", ".join([*lead, *(self.text(arg) for arg in node.args)])
            return Code(f"{self._function(node)}({text})", True, False, sure)
        tests, uses, _ = self.operands(node.args)
        if function.inline is not None and all(arg.type is Type.STRING for arg in node.args):
            return self.strict(tests, function.inline.format(*uses), sure=sure)
        return self.strict(
            tests, f"{self._function(node)}({', '.join([*lead, *uses])})", sure=sure, nullable=True
        )

    def _function(self, node: Apply) -> str:
        return self.names.bind(node.function.implementation, f"f_{node.function.name}")

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

    def _enumerate(self, node: Enumerate) -> Code:
        method, each = LIST_METHODS[node.name], f"each_{node.name}"
        is_counted = node.parameters > 1
        call = (
            self.names.bind(method.counted, f"{each}_counted")
            if is_counted
            else self.names.bind(method.each, each)
        )
        tests, (items,), _ = self.operands((node.base,))
        names = [self.names.temporary() for _ in range(3 if is_counted else 1)]
        self._lambda += names[: node.parameters]
        body = self.text(node.body)
        del self._lambda[-node.parameters :]
        text = f"{call}({items}, lambda {', '.join(names)}: {body})"
        return self.strict(tests, text, sure=None, nullable=True)

    # --- conditions -----------------------------------------------------------------------------------------

    def truth(self, node: Bound, *, wanted: bool) -> str:
        """A Python condition that holds exactly when the expression is TRUE, or FALSE as `wanted`."""
        if isinstance(node, Const):
            return str(node.value is wanted)
        if isinstance(node, Op) and node.name in CONDITIONS:
            return CONDITIONS[node.name](self, node, wanted=wanted)
        code = self.value(node)
        checked = code.text if code.sure == BOOLEAN else self.call("boolean", code.text).text
        return f"({checked} is {wanted})"


_VALUES: dict[type[Bound], Callable[[ExpressionWriter, Any], Code]] = {
    Const: ExpressionWriter._constant,
    Read: lambda writer, node: writer.reader.read(node.source, node.column),
    Slot: lambda writer, node: writer.reader.slot(node),
    Op: ExpressionWriter._operator,
    Apply: ExpressionWriter._apply,
    LambdaRead: ExpressionWriter._lambda_read,
    Enumerate: ExpressionWriter._enumerate,
    TableRead: ExpressionWriter._table_read,
}
"""By the kind of an expression, what writes its value."""

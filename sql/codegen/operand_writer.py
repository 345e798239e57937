"""The side of an expression writer that writers of operators and conditions use: the text of operands.

Three-valued logic costs nothing where NULL and FALSE are equivalent: `true(e)` and `false(e)` give Python
conditions that hold exactly when e is TRUE or FALSE, and only `value(e)` spells out the NULL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from sql.codegen import support
from sql.codegen.expression_code import Code
from sql.codegen.names import Names
from sql.plan.bound import Bound


class OperandWriter(ABC):
    """Writes operands, with one set of global names."""

    def __init__(self, names: Names, warnings: support.Warnings) -> None:
        self.names = names
        self.warnings = warnings

    @abstractmethod
    def value(self, node: Bound) -> Code:
        """The value of an expression; None is NULL."""

    @abstractmethod
    def truth(self, node: Bound, *, wanted: bool) -> str:
        """A Python condition that holds exactly when the expression is TRUE, or FALSE as `wanted`."""

    def true(self, node: Bound) -> str:
        """A Python condition that holds exactly when the expression is TRUE."""
        return self.truth(node, wanted=True)

    def false(self, node: Bound) -> str:
        """A Python condition that holds exactly when the expression is FALSE."""
        return self.truth(node, wanted=False)

    def text(self, node: Bound) -> str:
        """The source text of a value."""
        return self.value(node).text

    def call(self, helper: str, *arguments: str, nullable: bool = True, sure: str | None = None) -> Code:
        """A call of a function of `sql.codegen.support`."""
        name = self.names.bind(getattr(support, helper), helper)
        return Code(f"{name}({', '.join(arguments)})", nullable, False, sure)

    def operands(self, nodes: tuple[Bound, ...]) -> tuple[list[str], list[str], list[Code]]:
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

    def strict(self, tests: list[str], text: str, *, sure: str | None, nullable: bool = False) -> Code:
        """An operation that is NULL if an operand is."""
        if not tests:
            return Code(f"({text})", nullable, False, sure)
        nulls = " or ".join(f"{test} is None" for test in tests)
        return Code(f"(None if {nulls} else {text})", True, False, sure)

    def named(self, text: str) -> tuple[str, str]:
        """A temporary's name, and the text that evaluates and names it on first use."""
        name = self.names.temporary()
        return name, f"({name} := {text})"

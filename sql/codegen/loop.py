"""Write the statements of a loop: expressions with the loads of their columns and their places in the SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sql.codegen.expression_code import NUMBER, Code
from sql.codegen.expression_writer import ExpressionWriter
from sql.codegen.names import Names
from sql.codegen.reader import RowReader
from sql.codegen.source import SourceWriter, Suite
from sql.codegen.support import Warnings
from sql.errors import NOWHERE, Span
from sql.functions.definition import Context
from sql.plan.bound import Bound, Const

WINDOW_SLOTS = {
    ("window", "start"): Code("w_start", False, True, NUMBER),
    ("window", "end"): Code("w_end", False, True, NUMBER),
    ("window", "trigger"): Code("w_trigger", False, True, NUMBER),
    ("event_time", None): Code("w_end", False, True, NUMBER),
}
"""The reads of a window's bounds by its rows."""


def batch_loop(finders: Mapping[Any, str], row: str = "e") -> str:
    """The head of a loop over a batch of events, each in the local `row`. `finders`: by name the text that
    looks up something for all of them, which each event finds in `found_<name>`."""
    if not finders:
        return f"for {row} in rows:"
    found = ", ".join(f"found_{name}" for name in finders)
    return f"for {row}, {found} in zip(rows, {', '.join(finders.values())}):"


class LoopWriter:
    """The writer of the statements of one loop: expressions with their loads and spans."""

    def __init__(self, source: SourceWriter, reader: RowReader, warnings: Warnings, context: Context) -> None:
        """`warnings`: what expressions count; `context`: what functions read beside their arguments."""
        self.source = source
        self.reader = reader
        self.expressions = ExpressionWriter(reader, reader.names, warnings, context)
        self.keys: dict[tuple[Bound, ...], str] = {}
        """The locals that hold the keys of nodes."""

    @property
    def names(self) -> Names:
        """The global names of the text."""
        return self.expressions.names

    def inner(self) -> LoopWriter:
        """The writer of a loop or a branch inside this one, with loads of its own."""
        reader, own = self.reader.inner(), self.expressions
        return LoopWriter(self.source, reader, own.warnings, own.context)

    def test(self, conditions: Sequence[Bound], before: Sequence[str] = ()) -> None:
        """Skip to the next row unless all conditions are TRUE; `before` are lines to run before that."""
        for condition in conditions:
            with self.source.block(f"if {self.untrue(condition)}:", condition.span):
                for line in before:
                    self.source.line(line)
                self.source.line("continue")

    def true(self, condition: Bound) -> str:
        """The text of a test that a condition is TRUE, with its columns loaded."""
        text = self.expressions.true(condition)
        self.reader.load(self.source)
        return text

    def untrue(self, condition: Bound) -> str:
        """The text of a test that a condition is FALSE or NULL, with its columns loaded."""
        return f"not {_unwrapped(self.true(condition))}"

    def skip_unless(self, condition: Bound | None, before: Sequence[str] = ()) -> None:
        """Skip to the next event unless the condition is TRUE."""
        self.test(() if condition is None else (condition,), before)

    def value(self, node: Bound) -> str:
        """The text of a value, with its columns loaded."""
        text = self.expressions.text(node)
        self.reader.load(self.source)
        return text

    def atom(self, node: Bound, name: str, span: Span | None = None) -> str:
        """The name of a value: the column's own local, else `name`, assigned here."""
        code = self.expressions.value(node)
        self.reader.load(self.source)
        if code.atom:
            return f"({code.text})" if isinstance(node, Const) else code.text  # `2.__class__` is no Python
        self.source.line(f"{name} = {code.text}", node.span if span is None else span)
        return name

    def key(self, nodes: Sequence[Bound], name: str) -> None:
        """Assign the group key of the nodes' values: of one node the key of its value, of several a tuple."""
        known = self.keys.setdefault(tuple(nodes), name)
        if known != name:
            self.line(f"{name} = {known}")
            return
        parts = []
        for i, node in enumerate(nodes):
            value = self.atom(node, f"{name}_{i}", nodes[0].span)
            parts.append(f"{value} if {value}.__class__ is str else key_of({value})")
        several = ", ".join(f"({part})" for part in parts)
        self.line(f"{name} = {parts[0] if len(parts) == 1 else f'({several})'}")

    def line(self, text: str, span: Span = NOWHERE) -> None:
        self.source.line(text, span)

    def block(self, header: str, span: Span = NOWHERE) -> Suite:
        return self.source.block(header, span)


def _unwrapped(text: str) -> str:
    """The condition with parentheses around it, for `not`."""
    return text if text.startswith("(") and _closes_at_end(text) else f"({text})"


def _closes_at_end(text: str) -> bool:
    depth = 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if not depth:
            return place == len(text) - 1
    return False

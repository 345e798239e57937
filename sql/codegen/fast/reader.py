"""How generated loops read: columns from locals that are loaded just before they are needed first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.catalog.streams import Catalog
from sql.codegen.expressions import NUMBER, Code, ExpressionWriter, Names
from sql.codegen.fast.source import SourceWriter, identifier
from sql.errors import NOWHERE, Span
from sql.plan.bound import Bound, Slot
from sql.rows import Shape, attribute_name


class Refused(Exception):
    """The plan is not of a shape the generator knows; the message says why."""

    def __init__(self, reason: str, span: Span | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


class LocalReader:
    """Reads columns of the event `e` through locals; `slots` names the code of what operators keep."""

    def __init__(self, names: Names, catalog: Catalog, shape: Shape, slots: dict[tuple[str, object], Code]) -> None:
        self.names = names
        self.catalog = catalog
        self.shape = shape
        self.slots = slots
        self.locals: dict[str, str] = {}
        self.loaded: set[str] = set()

    def read(self, source: int, column: str | None) -> Code:
        if column is None:
            return Code("e", False, True)
        name = self.locals.get(column)
        if name is None:
            name = f"c_{identifier(column)}"
            if name in self.locals.values():
                name = f"{name}_{len(self.locals)}"
            self.locals[column] = name
        return Code(name, True, True)

    def slot(self, slot: Slot) -> Code:
        if slot.kind == "arrived":
            variable = self.names.bind(self.catalog.variables[slot.key], f"v_{slot.key}")
            return Code(f"{variable}.arrived")
        if slot.kind == "variable":
            variable = self.names.bind(self.catalog.variables[slot.key], f"v_{identifier(slot.key)}")
            return Code(f"{variable}.value")
        found = self.slots.get((slot.kind, slot.key))
        if found is None:
            raise Refused(f"it reads {_SLOTS.get(slot.kind, slot.kind)} for each event", slot.span)
        return found

    def relation(self, name: str) -> Any:
        """Plans that read relations run on the operators."""
        raise AssertionError(f"generated code reads no relation ({name})")

    def load(self, writer: SourceWriter) -> None:
        """Write the loads of columns that have been asked for since the last call."""
        for column, name in self.locals.items():
            if column not in self.loaded:
                self.loaded.add(column)
                writer.line(f"{name} = {self._access(column)}")

    def _access(self, column: str) -> str:
        if self.shape == "dict":
            return f"e.get({column!r})"
        return f"e.{attribute_name(column)}"


_SLOTS = {
    "event_time": "the event's time", "window": "the window's bounds", "prev": "earlier events",
    "subquery": "a subquery", "analytic": "an analytic function",
}  # fmt: skip

WINDOW_SLOTS = {
    ("window", "start"): Code("w_start", False, True, NUMBER),
    ("window", "end"): Code("w_end", False, True, NUMBER),
    ("window", "trigger"): Code("w_trigger", False, True, NUMBER),
    ("event_time", None): Code("w_end", False, True, NUMBER),
}


class LoopWriter:
    """Writes the statements of one loop: expressions with their loads and spans."""

    def __init__(self, source: SourceWriter, reader: LocalReader, expressions: ExpressionWriter) -> None:
        self.source = source
        self.reader = reader
        self.expressions = expressions

    def skip_unless(self, condition: Bound | None) -> None:
        """Go on with the next event where the condition is not TRUE."""
        if condition is None:
            return
        text = self.expressions.true(condition)
        self.reader.load(self.source)
        with self.source.block(f"if not {_unwrapped(text)}:", condition.span):
            self.source.line("continue")

    def value(self, node: Bound) -> str:
        """The text of a value whose columns are loaded."""
        text = self.expressions.text(node)
        self.reader.load(self.source)
        return text

    def atom(self, node: Bound, name: str, span: Span | None = None) -> str:
        """A name for a value: the column's own local, else `name`, assigned here."""
        code = self.expressions.value(node)
        self.reader.load(self.source)
        if code.atom:
            return code.text
        self.source.line(f"{name} = {code.text}", node.span if span is None else span)
        return name

    def key(self, nodes: Sequence[Bound], name: str) -> None:
        """Assign the group key of the nodes' values: of one node its value's own, of several a tuple."""
        parts = []
        for i, node in enumerate(nodes):
            value = self.atom(node, f"{name}_{i}", nodes[0].span)
            parts.append(f"{value} if {value}.__class__ is str else key_of({value})")
        self.line(f"{name} = {parts[0] if len(parts) == 1 else self._tuple(parts)}")

    @staticmethod
    def _tuple(parts: Sequence[str]) -> str:
        return f"({', '.join(f'({part})' for part in parts)})"

    def line(self, text: str, span: Span = NOWHERE) -> None:
        self.source.line(text, span)


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

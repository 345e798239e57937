"""Declared expressions: their calls are replaced by their bodies, so that the binder gets none.

A parameter stands for its argument: `x.temp` reads a column of the event, or a field of the object, that is
the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import astuple

from sql.errors import Span, SqlError
from sql.record import replace
from sql.syntax.expressions import Call, Column, Expr, Field, Lambda, Star
from sql.syntax.node import Node
from sql.syntax.statements import CreateExpression

Expressions = Mapping[str, CreateExpression]

WRITTEN_OUT_MAX = 10_000
"""The most nodes of the expressions of one statement after the replacement: each may call others twice."""


def written_out(node: Node, known: Expressions, text: str, *, is_here: bool = False) -> Any:
    """A statement, or an expression, with the bodies of `known` expressions in the place of their calls.

    `is_here`: they are part of the same `text`, else an error in one is reported at its call. Raises
    SqlError.
    """
    return _Writing(known, text, is_here=is_here).out(node) if known else node


class _Writing:
    def __init__(self, known: Expressions, text: str, *, is_here: bool) -> None:
        self.known, self.text, self.is_here = known, text, is_here
        self.called = {name.lower(): found for name, found in known.items()}
        self.written = 0

    def out(self, node: Node) -> Node:
        """The node with all calls below it written out."""
        node = _with_children(node, self.out)
        if isinstance(node, Column) and node.table is None:
            found = self.known.get(node.name)
            return node if found is None or found.parameters else self._body(found, {}, node.span)
        if not isinstance(node, Call) or (found := self.called.get(node.name)) is None:
            return node
        if len(node.args) != len(found.parameters):
            count, plural = len(found.parameters), "" if len(found.parameters) == 1 else "s"
            message = f"{node.name}() takes {count} argument{plural}, not {len(node.args)}"
            raise SqlError.of("B310", message, node.span, text=self.text)
        return self._body(found, dict(zip(found.parameters, node.args, strict=True)), node.span)

    def _body(self, found: CreateExpression, given: Mapping[str, Expr], span: Span) -> Node:
        body = found.body if self.is_here else placed(found.body, span)
        self.written += sum(1 for _ in body.walk())
        if self.written > WRITTEN_OUT_MAX:
            message = f"expressions that call others make more than {WRITTEN_OUT_MAX} terms of this"
            raise SqlError.of("P006", message, span, text=self.text)
        return _substituted(body, given)


def _with_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """A copy of a node with changed children."""
    held = dict(zip(node.__struct_fields__, astuple(node), strict=True))
    changed = {name: _changed(value, change) for name, value in held.items()}
    different = {name: value for name, value in changed.items() if value is not held[name]}
    return replace(node, **different) if different else node


def _changed(value: object, change: Callable[[Node], Node]) -> Any:
    if isinstance(value, Node):
        return change(value)
    if value.__class__ is not tuple:
        return value
    items = tuple(_changed(item, change) for item in value)
    return items if any(new is not old for new, old in zip(items, value, strict=True)) else value


def placed(node: Node, span: Span) -> Any:
    """A copy of an expression with one span for all of it."""
    node = replace(_with_children(node, partial(placed, span=span)), span=span)
    return replace(node, name_span=span) if isinstance(node, Call) else node


def _substituted(node: Node, given: Mapping[str, Expr]) -> Node:
    """A copy of a body with arguments in the place of parameters."""
    if not given:
        return node
    if isinstance(node, Column):
        return _argument(node, given)
    if isinstance(node, Star) and node.table is not None:
        argument = given.get(node.table)
        if isinstance(argument, Column) and argument.table is None:
            return replace(node, table=argument.name)
    if isinstance(node, Lambda):
        given = {name: value for name, value in given.items() if name not in node.parameters}
    return _with_children(node, partial(_substituted, given=given))


def _argument(node: Column, given: Mapping[str, Expr]) -> Expr:
    """The expression in the place of a name of a body."""
    if node.table is None:
        return given.get(node.name, node)
    argument = given.get(node.table)
    if argument is None:
        return node
    if isinstance(argument, Star):
        return replace(node, table=argument.table)
    if isinstance(argument, Column) and argument.table is None:
        return replace(node, table=argument.name)
    return Field(argument, node.name, span=node.span)

"""The base of all nodes of the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import astuple

from sql.errors import NOWHERE, Span
from sql.record import Record


class Node(Record, kw_only=True):
    """Base of all nodes."""

    span: Span = NOWHERE

    def children(self) -> Iterator[Node]:
        """Direct child nodes, in order of appearance."""
        yield from _nodes(astuple(self))

    def walk(self) -> Iterator[Node]:
        """This node and all below it, depth first."""
        yield self
        for child in self.children():
            yield from child.walk()


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)

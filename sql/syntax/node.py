"""The base of all nodes of the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from sql.errors import NOWHERE, Span


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all nodes."""

    span: Span = field(default=NOWHERE, kw_only=True, compare=False)

    def children(self) -> Iterator[Node]:
        """Direct child nodes, in order of appearance."""
        for item in fields(self):
            yield from _nodes(getattr(self, item.name))

    def walk(self) -> Iterator[Node]:
        """This node and all below it, depth first."""
        yield self
        for child in self.children():
            yield from child.walk()


def _nodes(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)

"""The fields of the rows that a template reads, as far as its text alone determines them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from sinks.template.blocks import BLOCKS
from sinks.template.scan import Scanner, Token
from sql.record import Record

Kind = Literal["row", "rows", "unknown"]
"""The meaning of the dot or a variable: a row, the list of the rows, something inside them."""


class FieldRead(Record):
    """A field that is read. `of` is the kind of value it is read from: the list of the rows has no fields."""

    name: str
    of: Kind


def fields_read(text: str, *, single: bool) -> list[FieldRead]:
    """The fields of rows in the order of the text. `single`: the template gets one row, else the list of
    them.

    >>> [read.name for read in fields_read("{{range .}}{{.dev}} {{.place.hall}}{{end}}", single=False)]
    ['dev', 'place']
    >>> fields_read("{{.dev}}", single=False)
    [FieldRead(name='dev', of='rows')]
    """
    walk = _Walk("row" if single else "rows")
    return [
        read for piece in Scanner(text).pieces() if not isinstance(piece, str) for read in walk.action(piece)
    ]


@dataclass(slots=True)
class _Walk:
    """A walk over a template, with the meaning of the dot and the variables at its position."""

    root: Kind
    dots: list[Kind] = field(default_factory=list)
    """The dots around the present block, the outermost first."""
    variables: dict[str, Kind] = field(default_factory=dict)

    @property
    def dot(self) -> Kind:
        return self.dots[-1] if self.dots else self.root

    def action(self, tokens: list[Token]) -> Iterator[FieldRead]:
        """The fields that one action reads."""
        head = tokens[0].text if tokens[0].kind == "word" else ""
        if head == "end":
            self.dots = self.dots[:-1]
            return
        if head == "else" and self.dots:
            self.dots[-1] = self.dots[-2] if len(self.dots) > 1 else self.root
        yield from self._reads(tokens)
        if head in BLOCKS:
            self.dots.append(self._inside(head, tokens[1:]))

    def _reads(self, tokens: list[Token]) -> Iterator[FieldRead]:
        for before, token in zip([None, *tokens], tokens, strict=False):
            if token.kind == "path" and token.text != ".":
                is_of_value = before is not None and before.text == ")" and before.end == token.start
                yield FieldRead(token.text.split(".")[1], "unknown" if is_of_value else self.dot)
            elif token.kind == "variable" and "." in token.text:
                variable, name, *_ = token.text.split(".")
                yield FieldRead(name, self._variable(variable))

    def _variable(self, name: str) -> Kind:
        return self.root if name == "$" else self.variables.get(name, "unknown")

    def _inside(self, head: str, tokens: list[Token]) -> Kind:
        """The meaning of the dot inside a block; a variable that it declares has the same."""
        if head == "if":
            return self.dot
        value = tokens[-1]
        whole = (
            self.dot
            if value.text == "."
            else self._variable(value.text)
            if value.kind == "variable"
            else "unknown"
        )
        is_plain = len(tokens) == 1 or tokens[-2].is_sign(":=")
        inside: Kind = whole if is_plain and head == "with" else "unknown"
        if is_plain and head == "range" and whole == "rows":
            inside = "row"
        declared = [token.text for token in tokens[:-1] if token.kind == "variable"]
        if declared:
            self.variables[declared[-1]] = inside
        return inside

"""The side of the parser of expressions that its grammars use: whole expressions, constants, names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlglot import Token, TokenType
from sqlglot.dialects.dialect import Dialect

from sql.language.cursor import Cursor, node_of, span_of
from sql.language.expressions.literal_parser import LiteralGrammar
from sql.syntax import Call, Column, Constant, Expr

WITHOUT_PARENTHESES = frozenset({"current_timestamp"})
"""Functions that may be written as a plain name."""

NESTING_MAX: Final = 40
"""The deepest nesting of parentheses, calls, subqueries and prefix operators in a statement."""


class ExpressionCursor(Cursor):
    """Reads an expression as a whole, by the rules that a subclass adds."""

    _nesting = 0

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect=dialect)
        self.literals = LiteralGrammar(self)

    def _expression(self) -> Expr:
        """One expression, whole."""
        return node_of(self._parse_disjunction())

    @contextmanager
    def _nested(self) -> Iterator[None]:
        if self._nesting >= NESTING_MAX:
            self._refuse(
                "P006", f"nested deeper than {NESTING_MAX} levels", span_of(self._curr or self._prev)
            )
        self._nesting += 1
        try:
            yield
        finally:
            self._nesting -= 1

    def _plain_name(self, token: Token) -> Expr:
        name = token.text.lower()
        if name in WITHOUT_PARENTHESES and token.token_type is TokenType.VAR:
            return Call(name, span=span_of(token), name_span=span_of(token))
        return Column(token.text, span=span_of(token))

    def _constant_node(self, token: Token) -> Constant:
        return Constant(self.literals.value(token), span=self._since(token))

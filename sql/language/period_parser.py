"""Lengths of time: `2 min 30 sec`, `d minutes`, `(a + b) sec`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import Token, TokenType

from sql.errors import Span, did_you_mean
from sql.language.cursor import span_of
from sql.language.tokens import NAME_TOKENS, UNITS
from sql.syntax import Expr, PeriodLiteral, PeriodPart

if TYPE_CHECKING:
    from sql.language.expression_parser import ExpressionParser


class PeriodGrammar:
    """The parser of numbers with units."""

    def __init__(self, parser: ExpressionParser) -> None:
        self.parser = parser

    def number_or_period(self, token: Token) -> Expr:
        node = self.parser._constant_node(token)
        return self.period(node) if self.unit() else node

    def unit(self) -> str | None:
        return (
            UNITS.get(self.parser._curr.text.lower())
            if self.parser._curr.token_type is TokenType.VAR
            else None
        )

    def refuse_unknown_unit(self) -> None:
        """Refuse a word after a number at a place where a unit of time is possible: it was meant as one."""
        parser = self.parser
        if parser._prev.token_type is TokenType.NUMBER and parser._curr.token_type is TokenType.VAR:
            word = parser._curr.text
            known = did_you_mean(word.rstrip("s"), UNITS) or "write day, hour, min, sec or msec"
            parser._refuse("P001", f"'{word}' is no unit of time", span_of(parser._curr), known)

    def period(self, amount: Expr) -> PeriodLiteral:
        """`amount unit amount unit …`, with the first amount already consumed and a unit ahead."""
        parser = self.parser
        parts: list[PeriodPart] = []
        while True:
            unit = self.unit()
            if unit is None:
                self.refuse_unknown_unit()
                parser._unexpected("a unit of time")
            parser._advance()
            parts.append(PeriodPart(amount, unit, span=amount.span.to(span_of(parser._prev))))
            following = self._amount()
            if following is None:
                break
            amount = following
        span = Span(parts[0].span.start, parts[-1].span.end)
        return PeriodLiteral(tuple(parts), span=span)

    def _amount(self) -> Expr | None:
        """The next amount of a period, if a number or a name follows with a unit after it."""
        parser = self.parser
        if parser._curr.token_type is TokenType.NUMBER:
            return parser._constant_node(parser._take())
        if parser._curr.token_type in NAME_TOKENS and parser._next.text.lower() in UNITS:
            return parser._plain_name(parser._take())
        return None

    def expression_or_period(self) -> Expr:
        """An expression; a time period if a unit follows it: `d minutes`, `(a + b) sec`."""
        node = self.parser._expression()
        return self.period(node) if self.unit() and not isinstance(node, PeriodLiteral) else node

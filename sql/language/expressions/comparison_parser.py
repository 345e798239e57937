"""Tests of an operand: comparisons with subqueries and lists, BETWEEN, IN, IS and LIKE."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Final, Literal

from sqlglot import Token, TokenType

from sql.language.cursor import node_of, span_of
from sql.language.expressions.expression_cursor import ExpressionCursor
from sql.record import replace
from sql.syntax import Between, Binary, Expr, In, IsNull, Like, Quantified, Unary

_SIGNS = {
    TokenType.EQ: "=",
    TokenType.NEQ: "!=",
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
}


class ComparisonGrammar:
    """The parser of what is tested of an operand, which it is given."""

    def __init__(self, parser: ExpressionCursor) -> None:
        self.parser = parser

    def compared(self, this: object, kind: TokenType) -> Any:
        """`this op e`, `this op any|some|all (select …)` or `this op any|some|all (e, …)`."""
        parser = self.parser
        word = parser._word()
        if word not in ("any", "some", "all") or parser._next.token_type is not TokenType.L_PAREN:
            return parser.COMPARISON[kind](this=this, expression=parser._parse_term())
        selects = parser._after_next() is TokenType.SELECT
        parser._advance(2)
        if selects:
            return self._quantified(this, _SIGNS[kind], "all" if word == "all" else "any", this)
        return self._with_each(this, _SIGNS[kind], "and" if word == "all" else "or")

    def _quantified(self, operand: Any, op: str, quantifier: Literal["any", "all"], start: Any) -> Quantified:
        """The subquery of IN, ANY and ALL, with the opening parenthesis consumed."""
        parser = self.parser
        with parser._nested():
            select: Any = parser._parse_select()
        parser._expect(TokenType.R_PAREN, "')'")
        return Quantified(op, operand, quantifier, select, span=start.span.to(span_of(parser._prev)))

    def _with_each(self, operand: Any, op: str, join: Literal["and", "or"]) -> Expr:
        """The comparisons of an operand with each of a list, with the opening parenthesis consumed."""
        parser = self.parser
        with parser._nested():
            items = parser._listed(parser._expression)
        parser._expect(TokenType.R_PAREN, "',' or ')'")
        span = operand.span.to(span_of(parser._prev))
        tests = [Binary(op, operand, item, span=span) for item in items]
        return reduce(lambda known, test: Binary(join, known, test, span=span), tests)

    def between(self, this: Any) -> Any:
        parser = self.parser
        low: Any = parser._parse_term()
        parser._expect(TokenType.AND, "AND")
        high: Any = parser._parse_term()
        return Between(this, low, high, span=this.span.to(high.span))

    def contained(self, this: Any) -> Any:
        parser = self.parser
        if parser._curr.token_type is TokenType.L_BRACKET:
            return self._range(this, parser._take())
        if parser._curr.token_type is not TokenType.L_PAREN:
            array: Any = parser._parse_term()
            return In(this, array=array, span=this.span.to(array.span))
        selects = parser._next.token_type is TokenType.SELECT
        opening = parser._take()
        if selects:
            return self._quantified(this, "=", "any", this)
        with parser._nested():
            items = parser._listed(parser._expression)
        if len(items) == 1 and parser._match(TokenType.COLON):
            return self._range(this, opening, items[0])
        parser._expect(TokenType.R_PAREN, "',' or ')'")
        return In(this, items, span=this.span.to(parser._since(opening)))

    def _range(self, this: Any, opening: Token, low: Expr | None = None) -> Between:
        """`[low:high]`, EPL; a parenthesis in place of a bracket excludes that end."""
        parser = self.parser
        with parser._nested():
            if low is None:
                low = parser._expression()
                parser._expect(TokenType.COLON, "':' of a range")
            high = parser._expression()
        if parser._curr.token_type not in (TokenType.R_PAREN, TokenType.R_BRACKET):
            parser._unexpected("')' or ']' at the end of the range")
        is_open = opening.token_type is TokenType.L_PAREN, parser._take().token_type is TokenType.R_PAREN
        return Between(
            this, low, high, False, *is_open, in_range=True, span=this.span.to(span_of(parser._prev))
        )

    def same(self, this: Any) -> Any:
        parser = self.parser
        negated = parser._match(TokenType.NOT)
        if parser._match(TokenType.NULL):
            return IsNull(this, negated, span=this.span.to(span_of(parser._prev)))
        other: Any = parser._parse_term()
        same = Binary("is", this, other, span=this.span.to(other.span))
        return Unary("not", same, span=same.span) if negated else same

    def like(self, this: Expr, regexp: bool) -> Like:
        parser = self.parser
        pattern: Any = parser._parse_term()
        escape = None
        span = this.span.to(pattern.span)
        if not regexp and parser._curr.token_type is TokenType.ESCAPE:
            parser._advance()
            value, token = (
                parser.literals.written_out("the escape character, as a string"),
                parser._prev,
            )
            if not isinstance(value, str) or len(value) != 1:
                parser._refuse("P001", "ESCAPE takes a string of one character", span_of(token))
            escape, span = value, span.to(span_of(token))
        return Like(this, pattern, escape, regexp=regexp, span=span)


def negated(node: Any) -> Expr:
    """NOT of a range, a pattern or a list; of `in (select …)`: `!= all (select …)`."""
    if isinstance(node, Quantified):
        return replace(node, op="!=", quantifier="all")
    return node_of(replace(node, negated=True))


TESTS: Final[dict[TokenType, Callable[[ComparisonGrammar, Any], Any]]] = {
    TokenType.BETWEEN: ComparisonGrammar.between,
    TokenType.IN: ComparisonGrammar.contained,
    TokenType.IS: ComparisonGrammar.same,
    TokenType.LIKE: lambda tests, this: tests.like(this, regexp=False),
    TokenType.RLIKE: lambda tests, this: tests.like(this, regexp=True),
}
"""By the word of a test, its parser."""

NEGATABLE = frozenset({TokenType.BETWEEN, TokenType.IN, TokenType.LIKE, TokenType.RLIKE})
"""The tests that NOT may stand before."""

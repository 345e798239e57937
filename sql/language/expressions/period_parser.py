"""Lengths of time: `2 min 30 sec`, `d minutes`, `(a + b) sec`; crontabs: `(*, 8, *, *, *)`."""

from __future__ import annotations

import re

from sqlglot import Token, TokenType

from sql.errors import Span, did_you_mean
from sql.language.cursor import span_of
from sql.language.expressions.expression_cursor import ExpressionCursor
from sql.language.lexical import unquote
from sql.language.tokens import NAME_TOKENS, UNITS
from sql.record import replace
from sql.syntax import CronField, Expr, PeriodLiteral, PeriodPart

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_CRON_WORDS = {"last", "weekday", "lastweekday"}


CRON_FIELDS = (
    "minute, hour, day of month, month and day of week, each perhaps *; "
    "then second, time zone, millisecond and microsecond where they are needed"
)


class PeriodGrammar:
    """The parser of numbers with units, and of crontabs."""

    def __init__(self, parser: ExpressionCursor) -> None:
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

    def crontab(self, *, computed: bool = False) -> tuple[CronField, ...]:
        """The fields in parentheses, each as text; a time zone is the value of its string.
        `computed`: a field may be an expression."""
        parser = self.parser
        fields = parser._wrapped(self._computed_field if computed else self._cron_field)
        if not 5 <= len(fields) <= 9:
            message = f"a crontab has 5 to 9 fields, not {len(fields)}"
            parser._refuse("P001", message, span_of(parser._prev), CRON_FIELDS)
        return fields

    def _computed_field(self) -> CronField:
        """A field that may be an expression: `8 + 1`, `a.hour`, `f(x)`."""
        parser, index = self.parser, self.parser._index
        field = self._cron_field()
        words = {word.lower() for word in re.findall(r"[^\W\d]\w*", field.text)}
        if (
            parser._tokens[index].token_type is TokenType.STRING
            or field.text.isdecimal()
            or words & _CRON_WORDS
        ):
            return field
        if re.search(r"[:\[]|^\*", field.text):
            return field
        parser._retreat(index)
        return replace(field, value=parser._expression())

    def _cron_field(self) -> CronField:
        parser, start, depth = self.parser, self.parser._curr, 0
        while parser._curr and (depth or parser._curr.token_type not in (TokenType.COMMA, TokenType.R_PAREN)):
            depth += (parser._curr.token_type in _OPENING) - (parser._curr.token_type in _CLOSING)
            parser._advance()
        if parser._curr is start or not parser._curr:
            parser._unexpected("a field of a crontab")
        text = parser._text_since(start)
        return CronField(
            unquote(text) if start.token_type is TokenType.STRING else text, span=parser._since(start)
        )

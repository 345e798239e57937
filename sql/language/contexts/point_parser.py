"""The points at which the partitions of a context start and end."""

from __future__ import annotations

from sqlglot import Token, TokenType

from sql.language.cursor import span_of, word_of
from sql.language.expressions.expression_parser import ExpressionParser
from sql.language.patterns.pattern_parser import PatternGrammar
from sql.syntax import (
    CrontabPoint,
    EventPoint,
    Expr,
    NowPoint,
    PatternPoint,
    PeriodLiteral,
    PeriodPoint,
    Point,
)

_GOES_ON = frozenset(
    {"initiated", "terminated", "end", "granularity", "preallocate", "start", "from", "context"}
)
"""Words that continue the definition at a place where a name without AS is possible."""


class PointGrammar:
    """The parser of points: an event, a pattern, a length of time, a crontab, or @now."""

    def __init__(self, parser: ExpressionParser) -> None:
        self.parser = parser

    def at_now(self) -> bool:
        return self.parser._curr.token_type is TokenType.PARAMETER and word_of(self.parser._next) == "now"

    def now(self) -> NowPoint | None:
        parser = self.parser
        if not self.at_now():
            return None
        start = parser._take()
        parser._advance()
        return NowPoint(span=parser._since(start))

    def point(self) -> Point:
        parser = self.parser
        if parser._curr.token_type is TokenType.L_PAREN:
            return self._crontab_point()
        if parser._at_word("after"):
            return self._period_point()
        if parser._at_word("pattern") and parser._next.token_type in (
            TokenType.L_BRACKET,
            TokenType.PARAMETER,
        ):
            return self._pattern_point()
        return self.event()

    def _pattern_point(self) -> PatternPoint:
        parser, start = self.parser, self.parser._take()
        pattern = PatternGrammar(parser).clause()
        inclusive = parser._curr.token_type is TokenType.PARAMETER and word_of(parser._next) == "inclusive"
        if inclusive:
            parser._advance(2)
        return PatternPoint(pattern, inclusive, self.name(), span=parser._since(start))

    def event(self) -> EventPoint:
        parser, start = self.parser, self.parser._curr
        stream, condition = self.type_with_filter()
        if parser._curr.token_type is TokenType.PARAMETER:
            parser._refuse(
                "P020",
                "only a pattern is @inclusive: a starting event counts anyway",
                span_of(parser._curr),
            )
        return EventPoint(stream, condition, self.name(), span=parser._since(start))

    def name(self) -> str | None:
        """`as name`, or a bare name that does not continue the definition."""
        parser = self.parser
        if parser._match(TokenType.ALIAS):
            return parser._name("a name after AS").text
        quoted = parser._curr.token_type is TokenType.IDENTIFIER
        if quoted or (parser._curr.token_type is TokenType.VAR and parser._word() not in _GOES_ON):
            return parser._take().text
        return None

    def _crontab_point(self) -> CrontabPoint:
        parser, start = self.parser, self.parser._curr
        crontabs = [parser.periods.crontab()]
        while parser._curr.token_type is TokenType.COMMA and parser._next.token_type is TokenType.L_PAREN:
            parser._advance()
            crontabs.append(parser.periods.crontab())
        return CrontabPoint(tuple(crontabs), span=parser._since(start))

    def _period_point(self) -> PeriodPoint:
        parser, start = self.parser, self.parser._take()
        period = parser.periods.expression_or_period()
        if not isinstance(period, PeriodLiteral):
            parser._refuse(
                "P020", "AFTER takes a length of time with its unit", period.span, "for example after 5 sec"
            )
        return PeriodPoint(period, span=parser._since(start))

    def type_with_filter(self) -> tuple[str, Expr | None]:
        parser = self.parser
        stream = parser._name("a stream").text
        return stream, parser._stream_filter() if parser._match(TokenType.L_PAREN) else None

    def terminated_by(self) -> Point | None:
        parser = self.parser
        if not parser._at_word("terminated"):
            return None
        self.take_by()
        if self.at_now():
            parser._refuse("P020", "@now cannot end a partition", span_of(parser._curr))
        return self.point()

    def take_by(self) -> Token:
        """Consume the word of a clause and a BY behind it."""
        start = self.parser._take()
        self.parser._match_word("by")
        return start

"""`match_recognize ( … )`: patterns over neighbouring rows."""

from __future__ import annotations

from typing import Any

from sqlglot import TokenType

from sql.language.cursor import node_of, span_of
from sql.language.expressions.expression_parser import ExpressionParser
from sql.syntax import (
    Definition,
    Expr,
    Measure,
    PeriodLiteral,
    Recognize,
    RowChoice,
    RowPattern,
    RowPermutation,
    RowSequence,
    RowTimes,
    RowVariable,
)

SIGNS = ((TokenType.STAR, 0, None), (TokenType.PLUS, 1, None), (TokenType.PLACEHOLDER, 0, 1))
"""The signs behind an operand, with the least and the greatest number of times."""

SKIPS = ("past last row", "to next row", "to current row")


class RecognizeGrammar:
    """The parser of the clause, from the tokens of another parser."""

    def __init__(self, parser: ExpressionParser) -> None:
        self.parser = parser

    def clause(self) -> Recognize:
        """The whole clause, after the word itself."""
        parser, start = self.parser, self.parser._curr
        parser._expect(TokenType.L_PAREN, "'('")
        found: dict[str, Any] = {}
        with parser._nested():
            if parser._match_word("partition", "by"):
                found["partition_by"] = parser._listed(parser._expression)
            parser._expect_word("measures")
            found["measures"] = parser._listed(self._measure)
            found["all_matches"] = parser._match_word("all", "matches")
            if parser._match_word("after", "match", "skip"):
                found["skip"] = self._skip()
            parser._expect_word("pattern")
            parser._expect(TokenType.L_PAREN, "'(' and the pattern")
            found["pattern"] = self._choice()
            parser._expect(TokenType.R_PAREN, "a variable or ')'")
            if parser._match_word("interval"):
                found["interval"] = self._length()
                if parser._match(TokenType.OR):
                    parser._expect_word("terminated")
                    found["or_terminated"] = True
            if parser._match_word("define"):
                found["definitions"] = parser._listed(self._definition)
            parser._expect(TokenType.R_PAREN, "INTERVAL, DEFINE or ')'")
        return Recognize(**found, span=parser._since(start))

    def _length(self) -> Expr:
        """A length of time; OR behind it belongs to the clause."""
        node = node_of(self.parser._parse_term())
        return (
            node
            if isinstance(node, PeriodLiteral) or not self.parser.periods.unit()
            else self.parser.periods.period(node)
        )

    def _measure(self) -> Measure:
        parser, start = self.parser, self.parser._curr
        value = parser._expression()
        parser._expect(TokenType.ALIAS, "AS and the name of the measure")
        return Measure(value, parser._any_name("a name after AS").text, span=parser._since(start))

    def _skip(self) -> str:
        for skip in SKIPS:
            if self.parser._match_word(*skip.split()):
                return skip
        return self.parser._unexpected("PAST LAST ROW, TO NEXT ROW or TO CURRENT ROW")

    def _definition(self) -> Definition:
        parser, start = self.parser, self.parser._curr
        name = parser._name("a variable of the pattern").text
        parser._expect(TokenType.ALIAS, "AS and its condition")
        return Definition(name, parser._expression(), span=parser._since(start))

    # --- the pattern ----------------------------------------------------------------------------------------

    def _choice(self) -> RowPattern:
        parser, start = self.parser, self.parser._curr
        parts = [self._sequence()]
        while parser._match(TokenType.PIPE):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else RowChoice(tuple(parts), span=parser._since(start))

    def _sequence(self) -> RowPattern:
        parser, start = self.parser, self.parser._curr
        parts = [self._times()]
        while (
            parser._curr.token_type not in (TokenType.PIPE, TokenType.R_PAREN, TokenType.COMMA)
            and parser._curr
        ):
            parts.append(self._times())
        return parts[0] if len(parts) == 1 else RowSequence(tuple(parts), span=parser._since(start))

    def _times(self) -> RowPattern:
        """One operand with its quantifier, which may be a sign and counts: `A+{2}` is `A+ A+`."""
        parser, start = self.parser, self.parser._curr
        pattern = self._operand()
        reluctant = False
        for sign, low, high in SIGNS:
            if parser._match(sign):
                reluctant = bool(parser._match(TokenType.PLACEHOLDER))
                pattern = RowTimes(pattern, low, high, reluctant, span=parser._since(start))
                break
        if parser._match(TokenType.L_BRACE):
            low, high = self._counts()
            reluctant = bool(parser._match(TokenType.PLACEHOLDER)) or reluctant
            pattern = RowTimes(pattern, low, high, reluctant, span=parser._since(start))
        return pattern

    def _counts(self) -> tuple[int, int | None]:
        """`n}`, `n,m}`, `n,}`, `,m}`."""
        parser, opening = self.parser, self.parser._prev
        low = self._count() if parser._curr.token_type is TokenType.NUMBER else None
        ranged = parser._match(TokenType.COMMA)
        high = self._count() if ranged and parser._curr.token_type is TokenType.NUMBER else None
        parser._expect(TokenType.R_BRACE, "a number, ',' or '}'")
        if not ranged:
            high = low
        if (low is None and high is None) or high == 0 or (high is not None and (low or 0) > high):
            parser._refuse(
                "P017",
                "a quantifier counts from low to high, at least once: {2}, {1,3}, {2,} or {,3}",
                parser._since(opening),
            )
        return low or 0, high

    def _count(self) -> int:
        token = self.parser._take()
        if not token.text.isdecimal():
            self.parser._unexpected("a whole number", token)
        return int(token.text)

    def _operand(self) -> RowPattern:
        parser, start = self.parser, self.parser._curr
        if parser._match(TokenType.L_PAREN):
            with parser._nested():
                inner = self._choice()
            parser._expect(TokenType.R_PAREN, "')'")
            return inner
        if parser._at_word("match_recognize_permute"):
            parser._advance()
            return RowPermutation(parser._wrapped(self._choice), span=parser._since(start))
        name = parser._name("a variable, '(' or match_recognize_permute")
        return RowVariable(name.text, span=span_of(name))

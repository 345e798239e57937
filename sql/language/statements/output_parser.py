"""EPL's output clause: the times of output."""

from __future__ import annotations

from typing import Any, Literal

from sqlglot import TokenType

from sql.language.cursor import word_of
from sql.language.expressions.expression_parser import ExpressionParser
from sql.syntax import Assignment, Expr, OutputLimit, PeriodLiteral, Terminated

OutputMode = Literal["default", "first", "last", "all", "snapshot"]

MODES: dict[str, OutputMode] = {"first": "first", "last": "last", "all": "all", "snapshot": "snapshot"}


class OutputGrammar:
    """`output [after …] [first|last|all|snapshot] (every … | at (…) | when …) [and when terminated …]`."""

    def __init__(self, parser: ExpressionParser) -> None:
        self.parser = parser

    def output_limit(self) -> OutputLimit:
        parser, start = self.parser, self.parser._take()
        found: dict[str, Any] = {}
        if parser._match_word("after"):
            found["after"], found["after_events"] = self._period_or_count("AFTER")
        mode: OutputMode = "default"
        if (chosen := MODES.get(parser._word())) is not None:
            parser._advance()
            mode = chosen
        if parser._match_word("every"):
            found["every"], found["every_events"] = self._period_or_count("EVERY")
        elif parser._match_word("at"):
            found["at"] = parser.periods.crontab()
        elif parser._curr.token_type is TokenType.WHEN and word_of(parser._next) != "terminated":
            parser._advance()
            found["when"] = parser._expression()
            found["then_set"] = self._then_set()
        elif parser._curr.token_type is TokenType.WHEN:
            found["terminated"] = self._terminated()
        elif not found:
            parser._unexpected("AFTER, EVERY, AT or WHEN", meant=MODES)
        if "terminated" not in found and parser._match(TokenType.AND):
            found["terminated"] = self._terminated()
        return OutputLimit(mode, span=parser._since(start), **found)

    def _period_or_count(self, clause: str) -> tuple[Expr | None, Expr | None]:
        """A period, or a number of events."""
        parser = self.parser
        amount = parser.periods.expression_or_period()
        if isinstance(amount, PeriodLiteral):
            return amount, None
        if not parser._match_word("events") and not parser._match_word("event"):
            parser.periods.refuse_unknown_unit()
            parser._unexpected(f"a unit of time or EVENTS after {clause}")
        return None, amount

    def _terminated(self) -> Terminated:
        parser, start = self.parser, self.parser._curr
        parser._expect(TokenType.WHEN, "WHEN")
        parser._expect_word("terminated")
        condition = None
        if parser._curr.token_type is TokenType.AND and parser._next.token_type is not TokenType.WHEN:
            parser._advance()
            condition = parser._expression()
        return Terminated(condition, self._then_set(), span=parser._since(start))

    def _then_set(self) -> tuple[Assignment, ...]:
        parser = self.parser
        if not parser._match(TokenType.THEN):
            return ()
        return parser._assignments()

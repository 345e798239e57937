"""EPL's output clause: the times of output."""

from __future__ import annotations

from typing import Any, Literal

from sqlglot import TokenType

from sql.language.cursor import span_of, word_of
from sql.language.lexical import unquote
from sql.language.source_parser import SourceParser
from sql.syntax import Assignment, CronField, Expr, OutputLimit, PeriodLiteral, Terminated

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
OutputMode = Literal["default", "first", "last", "all", "snapshot"]

MODES: dict[str, OutputMode] = {"first": "first", "last": "last", "all": "all", "snapshot": "snapshot"}

_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)


class OutputParser(SourceParser):
    """`output [after …] [first|last|all|snapshot] (every … | at (…) | when …) [and when terminated …]`."""

    def _output_limit(self) -> OutputLimit:
        start = self._take()
        found: dict[str, Any] = {}
        if self._match_word("after"):
            found["after"], found["after_events"] = self._period_or_count("AFTER")
        mode: OutputMode = "default"
        if (chosen := MODES.get(self._word())) is not None:
            self._advance()
            mode = chosen
        if self._match_word("every"):
            found["every"], found["every_events"] = self._period_or_count("EVERY")
        elif self._match_word("at"):
            found["at"] = self._crontab()
        elif self._curr.token_type is TokenType.WHEN and word_of(self._next) != "terminated":
            self._advance()
            found["when"] = self._expression()
            found["then_set"] = self._then_set()
        elif self._curr.token_type is TokenType.WHEN:
            found["terminated"] = self._terminated()
        elif not found:
            self._unexpected("AFTER, EVERY, AT or WHEN")
        if "terminated" not in found and self._match(TokenType.AND):
            found["terminated"] = self._terminated()
        return OutputLimit(mode, span=self._since(start), **found)

    def _period_or_count(self, clause: str) -> tuple[Expr | None, Expr | None]:
        """A period, or a number of events."""
        amount = self.periods.expression_or_period()
        if isinstance(amount, PeriodLiteral):
            return amount, None
        if not self._match_word("events") and not self._match_word("event"):
            self.periods.refuse_unknown_unit()
            self._unexpected(f"a unit of time or EVENTS after {clause}")
        return None, amount

    def _terminated(self) -> Terminated:
        start = self._curr
        self._expect(TokenType.WHEN, "WHEN")
        self._expect_word("terminated")
        condition = None
        if self._curr.token_type is TokenType.AND and self._next.token_type is not TokenType.WHEN:
            self._advance()
            condition = self._expression()
        return Terminated(condition, self._then_set(), span=self._since(start))

    def _then_set(self) -> tuple[Assignment, ...]:
        if not self._match(TokenType.THEN):
            return ()
        self._expect_word("set")
        return self._listed(self._assignment)

    def _assignment(self) -> Assignment:
        name = self._name("a variable")
        self._expect(TokenType.EQ, "'='")
        return Assignment(name.text, self._expression(), span=self._since(name))

    def _crontab(self) -> tuple[CronField, ...]:
        """The fields in parentheses, each as text; a time zone is the value of its string."""
        fields = self._wrapped(self._cron_field)
        if not 5 <= len(fields) <= 9:
            self._refuse("P001", f"a crontab has 5 to 9 fields, not {len(fields)}", span_of(self._prev))
        return fields

    def _cron_field(self) -> CronField:
        start, depth = self._curr, 0
        while self._curr and (depth or self._curr.token_type not in (TokenType.COMMA, TokenType.R_PAREN)):
            depth += (self._curr.token_type in _OPENING) - (self._curr.token_type in _CLOSING)
            self._advance()
        if self._curr is start or not self._curr:
            self._unexpected("a field of a crontab")
        text = self._text_since(start)
        return CronField(
            unquote(text) if start.token_type is TokenType.STRING else text, span=self._since(start)
        )

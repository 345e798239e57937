"""Patterns of events: `pattern [ … ]` of EPL, and `PATTERN ( … ) WITHIN d` for rules in eKuiper's SQL.

Loosest first: `->`; `or`; `and`; `until`; `every`, `every-distinct`, `not` and `[n]`; a guard, which belongs
to the atom or parenthesis right before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import TokenType

from sql.errors import did_you_mean
from sql.language.cursor import span_of
from sql.language.expressions.expression_parser import ExpressionParser
from sql.language.patterns.timer_parser import TimerGrammar
from sql.record import replace
from sql.syntax import (
    Absent,
    AllOf,
    AnyOf,
    Constant,
    Every,
    Expr,
    FilterAtom,
    FollowedBy,
    IntervalAtom,
    PatternClause,
    PatternNode,
    PeriodLiteral,
    Repeat,
    While,
    Within,
)

ANNOTATIONS = {"suppressoverlappingmatches": "suppress", "discardpartialsonmatch": "discard"}
"""The annotations between `pattern` and its bracket, and the field of `PatternClause` that each sets."""


class PatternGrammar:
    """The parser of a pattern, from the tokens of another parser."""

    def __init__(self, parser: ExpressionParser) -> None:
        self.parser = parser
        self.timers = TimerGrammar(parser)

    # --- the whole ------------------------------------------------------------------------------------------

    def clause(self) -> PatternClause:
        """`[ … ]` with the annotations before it; the word `pattern` has been read."""
        parser, start = self.parser, self.parser._curr
        flags = {}
        while parser._match(TokenType.PARAMETER):
            name = parser._any_name("the name of an annotation")
            flag = ANNOTATIONS.get(name.text.lower())
            if flag is None:
                known = ("SuppressOverlappingMatches", "DiscardPartialsOnMatch")
                hint = did_you_mean(name.text, known) or f"patterns take @{' and @'.join(known)}"
                parser._refuse("P017", f"unknown annotation @{name.text} of a pattern", span_of(name), hint)
            flags[flag] = True
        parser._expect(TokenType.L_BRACKET, "'[' and the pattern")
        with parser._nested():
            root = self.followed_by()
        parser._expect(TokenType.R_BRACKET, "']'")
        return PatternClause(root, **flags, span=parser._since(start))

    def attempt(self) -> PatternClause:
        """`( … ) WITHIN d`; the word PATTERN has been read.

        Each event that fits the first step begins an attempt, which ends d after that event. A step `NOT x`
        between two steps lets no x come between them; as the last step it waits for the end of the d.
        """
        parser, start = self.parser, self.parser._curr
        parser._expect(TokenType.L_PAREN, "'(' and the steps of the pattern")
        with parser._nested():
            whole = self.followed_by()
        parser._expect(TokenType.R_PAREN, "'->' or ')'")
        if not parser._match_word("within"):
            parser._unexpected("WITHIN and how long an attempt may take")
        period = self.timers.length()
        return PatternClause(self._attempt(whole, period), span=parser._since(start))

    def _attempt(self, whole: PatternNode, period: Expr) -> PatternNode:
        """The steps as a pattern of EPL."""
        first, *rest = whole.steps if isinstance(whole, FollowedBy) else (whole,)
        maxima = whole.maxima if isinstance(whole, FollowedBy) else ()
        if isinstance(first, Absent):
            hint = "begin with the event after which something is absent"
            self.parser._refuse("P018", "a pattern cannot begin with NOT", first.span, hint)
        if not isinstance(first, Every):
            first = Every(first, span=first.span)
        if not rest:
            return first
        ends_absent = isinstance(rest[-1], Absent)
        middle = self._without_gaps(rest[:-1] if ends_absent else rest, list(maxima[1:]))
        if not ends_absent:
            assert middle is not None
            then: PatternNode = Within(middle, period, span=middle.span)
        else:
            clock = IntervalAtom(period, span=period.span)
            if middle is not None:
                quiet = FollowedBy((middle, rest[-1]), (None,), span=whole.span)
                then = AllOf((clock, Within(quiet, period, span=whole.span)), span=whole.span)
            else:
                then = AllOf((clock, rest[-1]), span=whole.span)
        return FollowedBy((first, then), (maxima[0],), span=whole.span)

    def _without_gaps(self, steps: list[PatternNode], maxima: list[Expr | None]) -> PatternNode | None:
        """Steps one after the other; a NOT is checked beside the step that follows it."""
        out: list[PatternNode] = []
        absent: list[PatternNode] = []
        for step in steps:
            if isinstance(step, Absent):
                absent.append(step)
                continue
            out.append(AllOf((*absent[::-1], step)[::-1], span=step.span) if absent else step)
            absent = []
        if absent:
            hint = "join them: NOT (a OR b)"
            self.parser._refuse("P018", "two NOTs at the end of a pattern", absent[0].span, hint)
        if not out:
            return None
        span = out[0].span.to(out[-1].span)
        arrows = (*maxima, *[None] * len(out))[: len(out) - 1]
        return out[0] if len(out) == 1 else FollowedBy(tuple(out), arrows, span=span)

    # --- operators, loosest first ---------------------------------------------------------------------------

    def followed_by(self) -> PatternNode:
        """`a -> b -[2]> c`."""
        parser, start = self.parser, self.parser._curr
        steps: list[PatternNode] = [self._any_of()]
        maxima: list[Expr | None] = []
        while True:
            if parser._match(TokenType.ARROW):
                maxima.append(None)
            elif parser._curr.token_type is TokenType.DASH and parser._next.token_type is TokenType.L_BRACKET:
                parser._advance(2)
                maxima.append(parser._expression())
                parser._expect(TokenType.R_BRACKET, "']'")
                parser._expect(TokenType.GT, "'>' of an arrow")
            else:
                break
            steps.append(self._any_of())
        if len(steps) == 1:
            return steps[0]
        return FollowedBy(tuple(steps), tuple(maxima), span=parser._since(start))

    def _any_of(self) -> PatternNode:
        return self._several(TokenType.OR, self._all_of, AnyOf)

    def _all_of(self) -> PatternNode:
        return self._several(TokenType.AND, self._until, AllOf)

    def _several(
        self, word: TokenType, part: Callable[[], PatternNode], kind: Callable[..., PatternNode]
    ) -> PatternNode:
        start = self.parser._curr
        parts = [part()]
        while self.parser._match(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else kind(tuple(parts), span=self.parser._since(start))

    def _until(self) -> PatternNode:
        """`[2:4] a until b`."""
        parser, start = self.parser, self.parser._curr
        bounds = self._range()
        operand = self._unary()
        until = self._unary() if parser._match_word("until") else None
        if bounds is None and until is None:
            return operand
        return Repeat(operand, **(bounds or {}), until=until, span=parser._since(start))

    def _unary(self) -> PatternNode:
        parser, start = self.parser, self.parser._curr
        if parser._match(TokenType.NOT):
            return Absent(self._ranged(), span=parser._since(start))
        if not parser._at_word("every") or parser._next.token_type is TokenType.EQ:
            return self._guarded()
        parser._advance()
        if parser._curr.token_type is TokenType.DASH and parser._next.token_type is TokenType.DISTINCT:
            parser._advance(2)
            keys, period = self._distinct_by()
            return Every(self._ranged(), keys, period, span=parser._since(start))
        return Every(self._ranged(), span=parser._since(start))

    def _ranged(self) -> PatternNode:
        """The operand of `every` and `not`: no other of the two without parentheses."""
        parser, start = self.parser, self.parser._curr
        bounds = self._range()
        if parser._at_word("every", "not") and parser._next.token_type is not TokenType.EQ:
            word = parser._word()
            parser._refuse(
                "P001",
                f"'{word}' behind 'every' or 'not' needs parentheses",
                span_of(parser._curr),
                f"write every ({word} a)",
            )
        operand = self._guarded()
        return operand if bounds is None else Repeat(operand, **bounds, span=parser._since(start))

    def _distinct_by(self) -> tuple[tuple[Expr, ...], Expr | None]:
        """`(key, … [, period])`."""
        opening = self.parser._curr
        items = self.parser._wrapped(self.timers.length)
        if not items:
            self.parser._refuse(
                "P001", "every-distinct needs a key", span_of(opening), "every-distinct(a.dev) a=E"
            )
        last = items[-1]
        timed = isinstance(last, PeriodLiteral) or (isinstance(last, Constant) and len(items) > 1)
        return (items[:-1], last) if timed else (items, None)

    def _range(self) -> dict[str, Any] | None:
        """`[n]`, `[low:high]`, `[low:]`, `[:high]` as the bounds of `Repeat`."""
        parser, start = self.parser, self.parser._curr
        if not parser._match(TokenType.L_BRACKET):
            return None
        low = None if parser._curr.token_type is TokenType.COLON else parser._expression()
        if not parser._match(TokenType.COLON):
            parser._expect(TokenType.R_BRACKET, "':' or ']'")
            return {"low": low, "high": low, "exact": True}
        high = None if parser._curr.token_type is TokenType.R_BRACKET else parser._expression()
        parser._expect(TokenType.R_BRACKET, "']'")
        if low is None and high is None:
            parser._refuse("P001", "[:] has no bound", parser._since(start), "leave it out")
        return {"low": low, "high": high}

    # --- guards ---------------------------------------------------------------------------------------------

    def _guarded(self) -> PatternNode:
        parser, start = self.parser, self.parser._curr
        operand = self._operand()
        if parser._match(TokenType.WHERE):
            return Within(operand, *self.timers.guard(), span=parser._since(start))
        if parser._at_word("while") and parser._next.token_type is TokenType.L_PAREN:
            parser._advance(2)
            condition = parser._expression()
            parser._expect(TokenType.R_PAREN, "')'")
            return While(operand, condition, span=parser._since(start))
        return operand

    # --- atoms ----------------------------------------------------------------------------------------------

    def _operand(self) -> PatternNode:
        parser, start = self.parser, self.parser._curr
        if parser._match(TokenType.L_PAREN):
            with parser._nested():
                inner = self.followed_by()
            parser._expect(TokenType.R_PAREN, "')'")
            return replace(inner, span=parser._since(start))
        if parser._at_word("timer") and parser._next.token_type is TokenType.COLON:
            return self.timers.observer()
        return self._filter()

    def _filter(self) -> FilterAtom:
        """`[tag=] Stream [(filters)] [AS tag] [@consume[(level)]]`."""
        parser, start = self.parser, self.parser._curr
        tag = None
        if parser._next.token_type is TokenType.EQ:
            tag = parser._name("a tag").text
            parser._advance()
        stream = parser._name("a stream, 'timer:', 'every', 'not' or '('").text
        condition = parser._stream_filter() if parser._match(TokenType.L_PAREN) else None
        if tag is None and parser._match(TokenType.ALIAS):
            tag = parser._name("a tag after AS").text
        return FilterAtom(stream, tag, condition, self._consume(), span=parser._since(start))

    def _consume(self) -> int:
        parser = self.parser
        if not parser._match(TokenType.PARAMETER):
            return 0
        name = parser._any_name("consume")
        if name.text.lower() != "consume":
            hint = did_you_mean(name.text, ["consume"]) or "a stream in a pattern takes @consume"
            parser._refuse(
                "P017", f"unknown annotation @{name.text} of a stream in a pattern", span_of(name), hint
            )
        if not parser._match(TokenType.L_PAREN):
            return 1
        level = parser.literals.written_out("a level, a whole number")
        if level.__class__ is not int:
            parser._refuse("P017", "the level of @consume is a whole number", span_of(parser._prev))
        parser._expect(TokenType.R_PAREN, "')'")
        return level

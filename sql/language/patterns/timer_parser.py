"""Timers of patterns: observers, which are true when time has come, guards, and lengths of time."""

from __future__ import annotations

from sqlglot import Token, TokenType

from sql.errors import did_you_mean
from sql.language.cursor import span_of
from sql.language.expressions.expression_parser import ExpressionParser
from sql.record import replace
from sql.syntax import Binary, CrontabAtom, Expr, IntervalAtom, PeriodLiteral, PeriodPart, ScheduleAtom

OBSERVERS = ("interval", "at", "schedule")
GUARDS = ("within", "withinmax")


class TimerGrammar:
    """The parser of what a pattern says of time."""

    def __init__(self, parser: ExpressionParser) -> None:
        self.parser = parser

    def guard(self) -> tuple[Expr, ...]:
        """`timer:within(d)` or `timer:withinmax(d, n)`: the length of time, perhaps the number of matches."""
        name = self._timer(GUARDS)
        count = 2 if name.text.lower() == "withinmax" else 1
        return self._only(self.parser._wrapped(self.length), name, count)

    def _timer(self, known: tuple[str, ...]) -> Token:
        """`timer:name`, one of the names known here; the token of the name."""
        parser, start = self.parser, self.parser._curr
        parser._expect_word("timer")
        parser._expect(TokenType.COLON, "':'")
        name = parser._any_name(f"{' or '.join(known)}")
        word = name.text.lower()
        if word not in known:
            other = GUARDS if known is OBSERVERS else OBSERVERS
            what = "an observer" if known is OBSERVERS else "a guard"
            hint = did_you_mean(word, known) or f"there are {', '.join(f'timer:{item}' for item in known)}"
            if word in other:
                hint = (
                    "a guard stands behind WHERE"
                    if known is OBSERVERS
                    else "an observer stands by itself, not behind WHERE"
                )
            parser._refuse("P019", f"timer:{name.text} is not {what}", parser._since(start), hint)
        return name

    def _only(self, items: tuple[Expr, ...], name: Token, count: int) -> tuple[Expr, ...]:
        if len(items) != count:
            wanted = "a length of time" if count == 1 else "a length of time and a number of matches"
            self.parser._refuse("P019", f"timer:{name.text} takes {wanted}", span_of(name))
        return items

    def observer(self) -> CrontabAtom | ScheduleAtom | IntervalAtom:
        parser, start = self.parser, self.parser._curr
        name = self._timer(OBSERVERS)
        word = name.text.lower()
        if word == "at":
            return CrontabAtom(parser.periods.crontab(computed=True), span=parser._since(start))
        if word == "schedule":
            return self._schedule(start)
        (period,) = self._only(parser._wrapped(self.length), name, 1)
        return IntervalAtom(period, span=parser._since(start))

    def _schedule(self, start: Token) -> ScheduleAtom:
        """`(iso: …)` or `(date: …, period: …, repetitions: …)`, in any order."""
        parser = self.parser
        found: dict[str, Expr] = {}

        def parameter() -> None:
            name = parser._any_name("iso, date, period or repetitions")
            word = name.text.lower()
            if word not in ("iso", "date", "period", "repetitions"):
                parser._unexpected("iso, date, period or repetitions", name)
            if word in found:
                parser._refuse("P009", f"'{word}' stands twice", span_of(name))
            parser._expect(TokenType.COLON, "':'")
            found[word] = self.length()

        parser._wrapped(parameter)
        if not ("iso" in found or "date" in found or "period" in found) or (
            "iso" in found and len(found) > 1
        ):
            hint = (
                "timer:schedule(iso: 'R/PT10S') or "
                "timer:schedule(date: '2026-01-01T00:00:00Z', period: 1 day)"
            )
            parser._refuse(
                "P019", "timer:schedule takes iso alone, or a date or period", parser._since(start), hint
            )
        return ScheduleAtom(**found, span=parser._since(start))

    def length(self) -> Expr:
        """A length of time, or another parameter: in `a.n + 1 sec` the unit belongs to the sum."""
        node = self.parser.periods.expression_or_period()
        self.parser.periods.refuse_unknown_unit()
        return _sum_with_unit(node)


def _sum_with_unit(node: Expr) -> Expr:
    """`a.n + (1 sec)`, as it was read, as `(a.n + 1) sec`."""
    if not isinstance(node, Binary):
        return node
    right = _sum_with_unit(node.right)
    if not isinstance(right, PeriodLiteral) or len(right.parts) != 1:
        return node
    part = right.parts[0]
    amount = replace(node, right=part.amount, span=node.left.span.to(part.amount.span))
    return PeriodLiteral((PeriodPart(amount, part.unit, span=node.span),), span=node.span)

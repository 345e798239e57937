"""`create context`: kinds of contexts, and the points at which their partitions start and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import Token, TokenType

from sql.language.cursor import span_of
from sql.language.definition_parser import DefinitionParser
from sql.language.pattern_parser import PatternGrammar
from sql.language.tokens import UNITS
from sql.syntax import (
    Call,
    Categories,
    Category,
    Column,
    ContextKind,
    ContextPart,
    CreateContext,
    CrontabPoint,
    EventPoint,
    Expr,
    Field,
    Hashed,
    HashedType,
    Keyed,
    KeyedType,
    NonOverlapping,
    NowPoint,
    Overlapping,
    PatternPoint,
    PeriodLiteral,
    PeriodPoint,
    Point,
)

Item = TypeVar("Item")

_GOES_ON = frozenset(
    {"initiated", "terminated", "end", "granularity", "preallocate", "start", "from", "context"}
)
"""Words that continue the definition at a place where a name without AS is possible."""

_RESERVED = frozenset(UNITS) | {
    *(
        "all",
        "and",
        "any",
        "as",
        "between",
        "by",
        "case",
        "context",
        "create",
        "else",
        "end",
        "exists",
        "from",
        "group",
    ),
    *(
        "having",
        "in",
        "insert",
        "into",
        "is",
        "like",
        "not",
        "null",
        "on",
        "or",
        "order",
        "output",
        "pattern",
        "select",
    ),
    *("set", "some", "then", "update", "when", "where"),
}
"""Words of the language that cannot name a context or a label."""


class ContextParser(DefinitionParser):
    """The parser of contexts, nested ones too."""

    def _create_context(self, start: Token) -> CreateContext:
        name = self._context_name("the name of the context")
        self._match(TokenType.ALIAS)
        if not self._at_word("context"):
            kind = self._context_kind()
            part = ContextPart(name.text, kind, span=kind.span)
            return CreateContext(name.text, (part,), span=self._since(start))
        parts = self._listed(self._nested_context)
        if len(parts) < 2:
            self._refuse(
                "P020",
                "a nested context is made of two contexts at least",
                parts[0].span,
                "write the one context without a name of its own",
            )
        return CreateContext(name.text, parts, True, span=self._since(start))

    def _nested_context(self) -> ContextPart:
        start = self._curr
        self._expect_word("context")
        name = self._context_name("the name of the nested context")
        self._match(TokenType.ALIAS)
        return ContextPart(name.text, self._context_kind(), span=self._since(start))

    def _context_name(self, expected: str) -> Token:
        if self._word() in _RESERVED:
            self._unexpected(f"{expected}, which is no word of the language")
        return self._name(expected)

    def _context_kind(self) -> ContextKind:
        kinds: dict[str, Callable[[], ContextKind]] = {
            "partition": self._keyed,
            "coalesce": self._hashed,
            "group": self._categories,
            "start": self._non_overlapping,
            "initiated": self._overlapping,
        }
        kind = kinds.get(self._word())
        if kind is None:
            self._unexpected("PARTITION BY, COALESCE BY, GROUP BY, START or INITIATED BY")
        return kind()

    def _take_by(self) -> Token:
        """Consume the word of a clause and a BY behind it."""
        start = self._take()
        self._match_word("by")
        return start

    # --- segmented ------------------------------------------------------------------------------------------

    def _keyed(self) -> Keyed:
        start = self._take_by()
        types = self._listed_but_contexts(self._keyed_type)
        initiated: tuple[EventPoint, ...] = ()
        if self._at_word("initiated"):
            self._take_by()
            initiated = self._listed_but_contexts(self._event_point)
        return Keyed(types, initiated, self._terminated_by(), span=self._since(start))

    def _listed_but_contexts(self, parse: Callable[[], Item]) -> tuple[Item, ...]:
        """Items separated by commas, up to a comma that leads to the next nested context."""
        items = [parse()]
        while self._curr.token_type is TokenType.COMMA and self._next_word() != "context":
            self._advance()
            items.append(parse())
        return tuple(items)

    def _keyed_type(self) -> KeyedType:
        start = self._curr
        keys = [self._key()]
        while self._match(TokenType.AND) or self._match(TokenType.COMMA):
            keys.append(self._key())
        stream, condition = self._from_type()
        return KeyedType(tuple(keys), stream, condition, self._point_name(), span=self._since(start))

    def _key(self) -> Expr:
        start = self._curr
        key: Expr = self._parse_type()
        if not isinstance(key, Column | Field):
            self._refuse("P020", "a key is a property of the event", key.span if key else span_of(start))
        return key

    def _from_type(self) -> tuple[str, Expr | None]:
        self._expect(TokenType.FROM, "FROM")
        return self._type_with_filter()

    def _type_with_filter(self) -> tuple[str, Expr | None]:
        stream = self._name("a stream").text
        return stream, self._stream_filter() if self._match(TokenType.L_PAREN) else None

    def _hashed(self) -> Hashed:
        start = self._take_by()
        types = self._listed_but_contexts(self._hashed_type)
        self._expect_word("granularity")
        at = self._curr
        granularity = self._literal("the number of partitions")
        if not isinstance(granularity, int) or granularity < 1:
            self._refuse("P020", "the granularity is a whole number of at least 1", span_of(at))
        preallocate = self._match_word("preallocate")
        return Hashed(types, granularity, preallocate, span=self._since(start))

    def _hashed_type(self) -> HashedType:
        start = self._curr
        if self._next.token_type is not TokenType.L_PAREN:
            self._unexpected("consistent_hash_crc32(…), hash_code(…) or a function that gives a whole number")
        call = self._call()
        if not isinstance(call, Call):
            self._refuse("P020", "a function of the event's properties stands here", call.span)
        stream, condition = self._from_type()
        return HashedType(call, stream, condition, span=self._since(start))

    def _categories(self) -> Categories:
        start = self._curr
        found = [self._category()]
        while self._match(TokenType.COMMA):
            found.append(self._category())
        stream, condition = self._from_type()
        return Categories(tuple(found), stream, condition, span=self._since(start))

    def _category(self) -> Category:
        start = self._curr
        self._expect_word("group")
        self._match_word("by")
        condition = self._expression()
        self._expect(TokenType.ALIAS, "AS and the label")
        label = self._context_name("the label of the category")
        return Category(condition, label.text, span=self._since(start))

    # --- in time --------------------------------------------------------------------------------------------

    def _non_overlapping(self) -> NonOverlapping:
        start = self._take()
        begin = self._now_point() or self._point()
        end = None
        if self._match(TokenType.END):
            if self._at_now():
                self._refuse("P020", "@now cannot end a partition", span_of(self._curr))
            end = self._point()
        return NonOverlapping(begin, end, span=self._since(start))

    def _overlapping(self) -> Overlapping:
        start = self._take_by()
        distinct = None
        if self._at_word("distinct") or self._curr.token_type is TokenType.DISTINCT:
            self._advance()
            distinct = self._wrapped(self._expression)
        at = self._curr
        now = self._now_point() is not None
        if now and not self._match(TokenType.AND):
            self._refuse(
                "P020",
                "@now alone initiates one partition only",
                span_of(at),
                "write START @now, or @now and a condition",
            )
        return Overlapping(self._point(), self._terminated_by(), distinct, now, span=self._since(start))

    def _terminated_by(self) -> Point | None:
        if not self._at_word("terminated"):
            return None
        self._take_by()
        if self._at_now():
            self._refuse("P020", "@now cannot end a partition", span_of(self._curr))
        return self._point()

    # --- points ---------------------------------------------------------------------------------------------

    def _at_now(self) -> bool:
        return self._curr.token_type is TokenType.PARAMETER and self._next_word() == "now"

    def _now_point(self) -> NowPoint | None:
        if not self._at_now():
            return None
        start = self._take()
        self._advance()
        return NowPoint(span=self._since(start))

    def _point(self) -> Point:
        if self._curr.token_type is TokenType.L_PAREN:
            return self._crontab_point()
        if self._at_word("after"):
            return self._period_point()
        if self._at_word("pattern") and self._next.token_type in (TokenType.L_BRACKET, TokenType.PARAMETER):
            return self._pattern_point()
        return self._event_point()

    def _pattern_point(self) -> PatternPoint:
        start = self._take()
        pattern = PatternGrammar(self).clause()
        inclusive = self._curr.token_type is TokenType.PARAMETER and self._next_word() == "inclusive"
        if inclusive:
            self._advance(2)
        return PatternPoint(pattern, inclusive, self._point_name(), span=self._since(start))

    def _event_point(self) -> EventPoint:
        start = self._curr
        stream, condition = self._type_with_filter()
        if self._curr.token_type is TokenType.PARAMETER:
            self._refuse(
                "P020", "only a pattern is @inclusive: a starting event counts anyway", span_of(self._curr)
            )
        return EventPoint(stream, condition, self._point_name(), span=self._since(start))

    def _point_name(self) -> str | None:
        """`as name`, or a bare name that does not continue the definition."""
        if self._match(TokenType.ALIAS):
            return self._name("a name after AS").text
        quoted = self._curr.token_type is TokenType.IDENTIFIER
        if quoted or (self._curr.token_type is TokenType.VAR and self._word() not in _GOES_ON):
            return self._take().text
        return None

    def _crontab_point(self) -> CrontabPoint:
        start = self._curr
        crontabs = [self._crontab()]
        while self._curr.token_type is TokenType.COMMA and self._next.token_type is TokenType.L_PAREN:
            self._advance()
            crontabs.append(self._crontab())
        return CrontabPoint(tuple(crontabs), span=self._since(start))

    def _period_point(self) -> PeriodPoint:
        start = self._take()
        period = self._expression_or_period()
        if not isinstance(period, PeriodLiteral):
            self._refuse(
                "P020", "AFTER takes a length of time with its unit", period.span, "for example after 5 sec"
            )
        return PeriodPoint(period, span=self._since(start))

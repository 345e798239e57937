"""`create context`: kinds of contexts, and the points at which their partitions start and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import Token, TokenType

from sql.language.contexts.point_parser import PointGrammar
from sql.language.cursor import span_of, word_of
from sql.language.expressions.expression_parser import ExpressionParser
from sql.language.tokens import UNITS
from sql.syntax import (
    Call,
    Categories,
    Category,
    Column,
    ContextKind,
    ContextPart,
    CreateContext,
    EventPoint,
    Expr,
    Field,
    Hashed,
    HashedType,
    Keyed,
    KeyedType,
    NonOverlapping,
    Overlapping,
)

Item = TypeVar("Item")

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


class ContextGrammar:
    """The parser of contexts, nested ones too."""

    def __init__(self, parser: ExpressionParser) -> None:
        self.parser = parser
        self.points = PointGrammar(parser)

    def create(self, start: Token) -> CreateContext:
        """The definition, behind `create context`."""
        parser = self.parser
        name = self._context_name("the name of the context")
        parser._match(TokenType.ALIAS)
        if not parser._at_word("context"):
            kind = self._context_kind()
            part = ContextPart(name.text, kind, span=kind.span)
            return CreateContext(name.text, (part,), span=parser._since(start))
        parts = parser._listed(self._nested_context)
        if parser._at_word("context"):
            parser._unexpected("',' between nested contexts")
        if len(parts) < 2:
            parser._refuse(
                "P020",
                "a nested context is made of two contexts at least",
                parts[0].span,
                "write the one context without a name of its own",
            )
        return CreateContext(name.text, parts, True, span=parser._since(start))

    def _nested_context(self) -> ContextPart:
        parser, start = self.parser, self.parser._curr
        parser._expect_word("context")
        name = self._context_name("the name of the nested context")
        parser._match(TokenType.ALIAS)
        return ContextPart(name.text, self._context_kind(), span=parser._since(start))

    def _context_name(self, expected: str) -> Token:
        parser = self.parser
        if parser._word() in _RESERVED:
            parser._unexpected(f"{expected}, which is no word of the language")
        return parser._name(expected)

    def _context_kind(self) -> ContextKind:
        kinds: dict[str, Callable[[], ContextKind]] = {
            "partition": self._keyed,
            "coalesce": self._hashed,
            "group": self._categories,
            "start": self._non_overlapping,
            "initiated": self._overlapping,
        }
        kind = kinds.get(self.parser._word())
        if kind is None:
            wanted = "PARTITION BY, COALESCE BY, GROUP BY, START or INITIATED BY"
            self.parser._unexpected(wanted, meant=kinds)
        return kind()

    # --- segmented ------------------------------------------------------------------------------------------

    def _keyed(self) -> Keyed:
        start = self.points.take_by()
        types = self._listed_but_contexts(self._keyed_type)
        initiated: tuple[EventPoint, ...] = ()
        if self.parser._at_word("initiated"):
            self.points.take_by()
            initiated = self._listed_but_contexts(self.points.event)
        return Keyed(types, initiated, self.points.terminated_by(), span=self.parser._since(start))

    def _listed_but_contexts(self, parse: Callable[[], Item]) -> tuple[Item, ...]:
        """Items separated by commas, up to a comma that leads to the next nested context."""
        parser = self.parser
        items = [parse()]
        while parser._curr.token_type is TokenType.COMMA and word_of(parser._next) != "context":
            parser._advance()
            items.append(parse())
        return tuple(items)

    def _keyed_type(self) -> KeyedType:
        parser, start = self.parser, self.parser._curr
        keys = [self._key()]
        while parser._match(TokenType.AND) or parser._match(TokenType.COMMA):
            keys.append(self._key())
        stream, condition = self._from_type()
        return KeyedType(tuple(keys), stream, condition, self.points.name(), span=parser._since(start))

    def _key(self) -> Expr:
        parser, start = self.parser, self.parser._curr
        key: Expr = parser._parse_type()
        if not isinstance(key, Column | Field):
            parser._refuse("P020", "a key is a property of the event", key.span if key else span_of(start))
        return key

    def _from_type(self) -> tuple[str, Expr | None]:
        self.parser._expect(TokenType.FROM, "FROM")
        return self.points.type_with_filter()

    def _hashed(self) -> Hashed:
        parser = self.parser
        start = self.points.take_by()
        types = self._listed_but_contexts(self._hashed_type)
        parser._expect_word("granularity")
        at = parser._curr
        granularity = parser.literals.written_out("the number of partitions")
        if not isinstance(granularity, int) or granularity < 1:
            parser._refuse("P020", "the granularity is a whole number of at least 1", span_of(at))
        preallocate = parser._match_word("preallocate")
        return Hashed(types, granularity, preallocate, span=parser._since(start))

    def _hashed_type(self) -> HashedType:
        parser, start = self.parser, self.parser._curr
        if parser._next.token_type is not TokenType.L_PAREN:
            parser._unexpected(
                "consistent_hash_crc32(…), hash_code(…) or a function that gives a whole number"
            )
        call = parser.calls.call()
        if not isinstance(call, Call):
            parser._refuse("P020", "a function of the event's properties stands here", call.span)
        stream, condition = self._from_type()
        return HashedType(call, stream, condition, span=parser._since(start))

    def _categories(self) -> Categories:
        parser, start = self.parser, self.parser._curr
        found = [self._category()]
        while parser._match(TokenType.COMMA):
            found.append(self._category())
        stream, condition = self._from_type()
        return Categories(tuple(found), stream, condition, span=parser._since(start))

    def _category(self) -> Category:
        parser, start = self.parser, self.parser._curr
        parser._expect_word("group")
        parser._match_word("by")
        condition = parser._expression()
        parser._expect(TokenType.ALIAS, "AS and the label")
        label = self._context_name("the label of the category")
        return Category(condition, label.text, span=parser._since(start))

    # --- in time --------------------------------------------------------------------------------------------

    def _non_overlapping(self) -> NonOverlapping:
        parser, start = self.parser, self.parser._take()
        begin = self.points.now() or self.points.point()
        end = None
        if parser._match(TokenType.END):
            if self.points.at_now():
                parser._refuse("P020", "@now cannot end a partition", span_of(parser._curr))
            end = self.points.point()
        return NonOverlapping(begin, end, span=parser._since(start))

    def _overlapping(self) -> Overlapping:
        parser = self.parser
        start = self.points.take_by()
        distinct = None
        if parser._at_word("distinct") or parser._curr.token_type is TokenType.DISTINCT:
            parser._advance()
            distinct = parser._wrapped(parser._expression)
        at = parser._curr
        now = self.points.now() is not None
        if now and not parser._match(TokenType.AND):
            parser._refuse(
                "P020",
                "@now alone initiates one partition only",
                span_of(at),
                "write START @now, or @now and a condition",
            )
        begin, end = self.points.point(), self.points.terminated_by()
        return Overlapping(begin, end, distinct, now, span=parser._since(start))

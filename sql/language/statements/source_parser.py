"""FROM: streams with filters and windows, joins, and the sources of stream queries."""

from __future__ import annotations

from typing import Literal

from sqlglot import Token, TokenType

from sql.language.cursor import span_of
from sql.language.expressions.expression_parser import ExpressionParser
from sql.language.patterns.pattern_parser import PatternGrammar
from sql.language.patterns.recognize_parser import RecognizeGrammar
from sql.language.tokens import NAME_TOKENS, UNITS
from sql.record import replace
from sql.syntax import Binary, Expr, Join, LotSource, Source, StreamSource, WindowCall
from sql.syntax.window_words import LOT_WINDOWS, LotArgument

_PATTERN_OPENINGS = (TokenType.L_BRACKET, TokenType.PARAMETER, TokenType.L_PAREN)

MISPLACED = {
    "every": "after WITHIN it is a period: within d every p retain n",
    "partition": "it stands behind the stream: in m partition by m.k within d",
    "within": "it stands once, before RETAIN: within d retain n",
}
"""Clauses of a source of a stream query that stand too late, with their places."""

NOT_ALIASES = frozenset(
    {
        *(
            "cross",
            "delete",
            "full",
            "group",
            "having",
            "inner",
            "insert",
            "into",
            "invisible",
            "join",
            "left",
        ),
        *(
            "limit",
            "match_recognize",
            "merge",
            "offset",
            "on",
            "order",
            "outer",
            "output",
            "partition",
            "retain",
        ),
        *("right", "set", "unidirectional", "update", "using", "within"),
    }
)
"""Words that continue the statement at a place where an alias without AS is possible."""

_JOINS: dict[str, Literal["inner", "left", "right", "full", "cross"]] = {
    "inner": "inner",
    "left": "left",
    "right": "right",
    "full": "full",
    "cross": "cross",
}


class SourceParser(ExpressionParser):
    """The parser of the FROM clause of the three languages."""

    def _alias(self) -> str | None:
        """`AS name`, or a bare name that is no word of a clause."""
        if self._match(TokenType.ALIAS):
            return self._name("a name after AS").text
        if self._curr.token_type is TokenType.IDENTIFIER:
            return self._take().text
        if self._curr.token_type in NAME_TOKENS and self._word() not in NOT_ALIASES:
            return self._take().text
        return None

    # --- streams --------------------------------------------------------------------------------------------

    def _sources(self) -> tuple[Source, tuple[Join, ...]]:
        """All of FROM, after the word itself."""
        first = self._stream_source()
        joins: list[Join] = []
        while True:
            start = self._curr
            if self._match(TokenType.COMMA):
                source = self._stream_source()
                joins.append(Join("cross", source, span=source.span))
                continue
            kind = self._join_kind()
            if kind is None:
                break
            joins.append(self._join(kind, start))
        if self._match_word("match_recognize"):
            first = replace(first, recognize=RecognizeGrammar(self).clause())
        return first, tuple(joins)

    def _join_kind(self) -> Literal["inner", "left", "right", "full", "cross"] | None:
        """Consume `[kind] [OUTER] JOIN`; plain JOIN is inner."""
        if self._match_word("join"):
            return "inner"
        kind = _JOINS.get(self._word())
        if kind is None:
            return None
        self._advance()
        if kind in ("left", "right", "full"):
            self._match_word("outer")
        self._expect_word("join")
        return kind

    def _join(self, kind: Literal["inner", "left", "right", "full", "cross"], start: Token) -> Join:
        source = self._stream_source()
        condition = self._expression() if self._match_word("on") else None
        span = self._since(start)
        if kind == "cross" and condition is not None:
            self._refuse("P012", "CROSS JOIN takes no ON", condition.span, "use INNER JOIN")
        if kind != "cross" and condition is None and not source.unidirectional:
            message = f"{kind.upper()} JOIN needs ON"
            hint = (
                "add ON with a condition, or use CROSS JOIN for all pairs, "
                "as eKuiper does where ON is missing"
            )
            self._refuse("P012", message, span, hint)
        return Join(kind, source, condition, span=span)

    def _stream_source(self) -> StreamSource:
        start = self._curr
        if self._at_word("pattern") and self._next.token_type in _PATTERN_OPENINGS:
            self._advance()
            return self._pattern_source(start)
        if self._next.token_type is TokenType.COLON:
            self._unsupported(f"{start.text}:", start)
        if start.token_type is TokenType.L_PAREN:
            self._unsupported("a subquery in FROM", start)
        name = self._name("a stream").text
        if self._curr.token_type is TokenType.SLASH:
            hint = (
                "topics stand in DATASOURCE of a stream; "
                "eKuiper takes such names, here they need backticks: `a/b`"
            )
            self._refuse("P001", "the name of a stream holds no '/'", span_of(self._curr), hint)
        condition = self._stream_filter() if self._match(TokenType.L_PAREN) else None
        if self._curr.token_type is TokenType.L_BRACKET:
            hint = "a rule with SELECT unnest(list) inserts a row for each item into a stream"
            self._unsupported("a list of events in FROM, E[list],", self._curr, hint)
        return self._windowed(start, name, condition)

    def _relation(self) -> StreamSource:
        start = self._curr
        name = self._name("a named window or table").text
        return StreamSource(name, self._alias() or name, span=self._since(start))

    def _pattern_source(self, start: Token) -> StreamSource:
        """`pattern [ … ]` of EPL or `PATTERN ( … ) WITHIN d`, after the word itself."""
        grammar = PatternGrammar(self)
        steps = self._curr.token_type is TokenType.L_PAREN
        pattern = grammar.attempt() if steps else grammar.clause()
        return replace(self._windowed(start, "", None), pattern=pattern)

    def _windowed(self, start: Token, name: str, condition: Expr | None) -> StreamSource:
        """The suffixes of a stream or a pattern: windows, how they are combined, and an alias."""
        windows: list[WindowCall] = []
        while self._curr.token_type in (TokenType.HASH, TokenType.DOT):
            windows.append(self._window_call())
        retain = self._retain()
        alias = self._alias()
        unidirectional = self._match_word("unidirectional")
        retain = retain or self._retain()
        unidirectional = unidirectional or self._match_word("unidirectional")
        return StreamSource(
            name, alias or name, condition, tuple(windows), retain, unidirectional, span=self._since(start)
        )

    def _window_argument(self) -> Expr:
        node = self.calls.argument()
        self.periods.refuse_unknown_unit()
        return node

    def _window_call(self) -> WindowCall:
        """`#name(…)`, `#ns:name(…)`, `.ns:name(…)`; the parentheses may be left out."""
        start = self._take()
        name = self._any_name("the name of a window")
        namespace = None
        if start.token_type is TokenType.DOT and self._curr.token_type is not TokenType.COLON:
            hint = f"write #{name.text} or .win:{name.text}"
            self._refuse("P001", "a window after '.' needs its namespace", span_of(name), hint)
        if self._match(TokenType.COLON):
            namespace, name = name.text.lower(), self._any_name("the name of a window")
        with self._nested():
            has_arguments = self._curr.token_type is TokenType.L_PAREN and not self._at_columns()
            args = self._wrapped(self._window_argument) if has_arguments else ()
        return WindowCall(name.text.lower(), args, namespace, span=self._since(start))

    def _at_columns(self) -> bool:
        """True if a list of columns with their types follows: `create window W#keepall (id string, n
        int)`."""
        index = self._index + 2
        if self._next.token_type not in NAME_TOKENS or index >= self._tokens_size:
            return False
        word = self._tokens[index]
        return word.token_type is TokenType.VAR and word.text.lower() not in {*UNITS, "asc", "desc"}

    def _retain(self) -> Literal["union", "intersection"] | None:
        if not (self._next.token_type is TokenType.DASH and self._match_word("retain")):
            return None
        self._advance()
        if self._match_word("union"):
            return "union"
        if not self._match_word("intersection"):
            self._unexpected("UNION or INTERSECTION", meant=("union", "intersection"))
        return "intersection"

    # --- stream queries -------------------------------------------------------------------------------------

    def _lot_sources(self) -> tuple[LotSource, tuple[Join, ...]]:
        """`item in stream …`, and further sources by `from` or `join … on a equals b`."""
        first = self._lot_source()
        joins: list[Join] = []
        while True:
            start = self._curr
            if self._match(TokenType.FROM):
                source = self._lot_source()
                joins.append(Join("cross", source, span=self._since(start)))
            elif self._match_word("join"):
                source = self._lot_source()
                self._expect_word("on")
                left = self._expression()
                self._expect_word("equals")
                right = self._expression()
                condition = Binary("=", left, right, span=left.span.to(right.span))
                joins.append(Join("inner", source, condition, span=self._since(start)))
            else:
                return first, tuple(joins)

    def _lot_source(self) -> LotSource:
        start = self._curr
        item = self._name("the name of the item").text
        self._expect(TokenType.IN, "IN")
        if self._curr.token_type is TokenType.L_PAREN:
            hint = "name the inner query with INSERT INTO, and read that stream"
            self._unsupported("a stream query in FROM", self._curr, hint)
        stream, condition = self._template()
        partition_by = self._listed(self._expression) if self._match_word("partition", "by") else ()
        windows: list[tuple[str, Expr | None]] = []
        every = None
        for words, argument in LOT_WINDOWS.items():
            if self._match_word(*words.split()):
                windows.append((words, self._lot_argument(argument)))
                every = self._every() if len(windows) == 1 else every
        if (word := self._word()) in MISPLACED:
            message = f"{word.upper()} stands in the wrong place"
            self._refuse("P009", message, span_of(self._curr), MISPLACED[word])
        unique = self._listed(self._expression) if self._match_word("with", "unique") else ()
        return LotSource(
            stream, item, partition_by, tuple(windows), every, unique, condition, span=self._since(start)
        )

    def _template(self) -> tuple[str, Expr | None]:
        """`stream`, or the events that meet a condition: `[all] stream(…)`."""
        if self._word() == "all" and self._next.token_type in NAME_TOKENS:
            behind = self._index + 2
            if behind < self._tokens_size and self._tokens[behind].token_type is TokenType.L_PAREN:
                self._advance()
        stream = self._name("a stream").text
        if not self._match(TokenType.L_PAREN):
            return stream, None
        if self._curr.token_type is TokenType.STAR:
            hint = f"name the columns, as in all {stream}(price > 10)"
            self._unsupported("a template that names no columns", self._curr, hint)
        return stream, self._stream_filter()

    def _lot_argument(self, argument: LotArgument) -> Expr | None:
        if argument == "none":
            return None
        return self.periods.expression_or_period() if argument == "period" else self._expression()

    def _every(self) -> Expr | None:
        return self.periods.expression_or_period() if self._match_word("every") else None

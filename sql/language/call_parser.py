"""Function calls: arguments of three languages, and the clauses that may follow a call."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import Token, TokenType

from sql.language.cursor import span_of
from sql.language.expression_parser import ExpressionParser
from sql.language.tokens import NAME_TOKENS
from sql.record import replace
from sql.syntax import (
    ArrayLiteral,
    Call,
    Cast,
    Expr,
    Lambda,
    Method,
    Ordering,
    Over,
    SelectItem,
    Star,
    Subquery,
)

WITHOUT_PARENTHESES = frozenset({"current_timestamp"})
"""Functions that may be written as a plain name."""


class CallParser(ExpressionParser):
    """The parser of calls: every call becomes a `Call` exactly as written, without knowledge of functions."""

    PRIMARY_PARSERS: ClassVar[Any] = {
        **ExpressionParser.PRIMARY_PARSERS,
        TokenType.L_BRACE: lambda self, token: self._array_literal(token),
    }

    def _array_literal(self, opening: Token) -> ArrayLiteral:
        """`{a, b}`, with the brace consumed."""
        with self._nested():
            items = () if self._curr.token_type is TokenType.R_BRACE else self._listed(self._expression)
        self._expect(TokenType.R_BRACE, "',' or '}'")
        return ArrayLiteral(items, span=self._since(opening))

    def _plain_name(self, token: Token) -> Expr:
        name = token.text.lower()
        if name in WITHOUT_PARENTHESES and token.token_type is TokenType.VAR:
            return Call(name, span=span_of(token), name_span=span_of(token))
        return super()._plain_name(token)

    def _call(self) -> Expr:
        """`name(args) [FILTER (WHERE …)] [OVER (…)]`; also `EXISTS (SELECT …)` and `CAST(x AS type)`."""
        name = self._take()
        self._advance()
        with self._nested():
            if name.token_type is TokenType.EXISTS and self._curr.token_type is TokenType.SELECT:
                select = self._parse_select()
                self._expect(TokenType.R_PAREN, "')'")
                return Subquery(select, exists=True, span=self._since(name))
            args: list[Expr] = []
            if name.text.lower() == "cast" and self._curr.token_type is not TokenType.R_PAREN:
                args = [self._argument()]
                if self._match(TokenType.ALIAS):
                    type_name = self._any_name("a type").text.lower()
                    self._expect(TokenType.R_PAREN, "')'")
                    return Cast(args[0], type_name, span=self._since(name))
            call = self._arguments(name, args)
        return self._after_call(name, call)

    def _arguments(self, name: Token, args: list[Expr]) -> Call:
        """All arguments up to the closing parenthesis, after the `args` already parsed."""
        condition: Expr | None = None
        group_by: tuple[Expr, ...] | None = None
        distinct = not args and self._match(TokenType.DISTINCT)
        more = (
            self._match(TokenType.COMMA)
            if args
            else distinct or self._curr.token_type is not TokenType.R_PAREN
        )
        while more:
            if self._next.token_type is TokenType.COLON and self._at_word("filter"):
                self._advance(2)
                condition = self._expression()
            elif self._next.token_type is TokenType.COLON and self._at_word("group_by"):
                self._advance(2)
                group_by = self._dimensions()
            else:
                args.append(self._argument())
            more = self._match(TokenType.COMMA)
        self._expect(TokenType.R_PAREN, "',' or ')'")
        return Call(
            name.text.lower(),
            tuple(args),
            distinct,
            condition,
            group_by,
            span=self._since(name),
            name_span=span_of(name),
        )

    def _dimensions(self) -> tuple[Expr, ...]:
        if self._curr.token_type is TokenType.L_PAREN:
            return self._wrapped(self._expression)
        return (self._expression(),)

    def _argument(self) -> Expr:
        """An argument of a call or an EPL window: `*`, `s.*`, a lambda, a period, an expression, an
        ordering."""
        start = self._curr
        if start.token_type is TokenType.STAR or self._at_qualified_star():
            return self._star()
        parameters = self._lambda_parameters()
        if parameters is not None:
            return Lambda(parameters, self._expression(), span=self._since(start))
        node = self._expression_or_period()
        if self._at_word("asc", "desc"):
            descending = self._take().text.lower() == "desc"
            return Ordering(node, descending, span=self._since(start))
        return node

    def _star(self) -> Star:
        """`*` or `s.*`, with EXCEPT and REPLACE."""
        start = self._curr
        table = None
        if not self._match(TokenType.STAR):
            table = start.text
            self._advance(3)
        excluded: tuple[str, ...] = ()
        replaced: tuple[SelectItem, ...] = ()
        while self._next.token_type is TokenType.L_PAREN and self._at_word("except", "replace"):
            word = self._take()
            if word.text.lower() == "except" and not excluded:
                excluded = tuple(name.text for name in self._wrapped(lambda: self._name("a column")))
            elif word.text.lower() == "replace" and not replaced:
                replaced = self._wrapped(self._replacement)
            else:
                self._refuse("P009", f"{word.text.upper()} stands twice", span_of(word))
        return Star(table, excluded, replaced, span=self._since(start))

    def _replacement(self) -> SelectItem:
        start = self._curr
        node = self._expression()
        text = self._text_since(start)
        self._expect(TokenType.ALIAS, "AS and the column to replace")
        return SelectItem(node, self._name("a column").text, text=text, span=self._since(start))

    def _at_qualified_star(self) -> bool:
        return (
            self._next.token_type is TokenType.DOT
            and self._curr.token_type in NAME_TOKENS
            and self._after_next() is TokenType.STAR
        )

    def _lambda_parameters(self) -> tuple[str, ...] | None:
        """Consume `x =>` or `(x, i) =>` and return the names; None, with nothing consumed, if the next tokens
        are no lambda."""
        if self._next.token_type is TokenType.FARROW and self._curr.token_type in NAME_TOKENS:
            name = self._take().text
            self._advance()
            return (name,)
        if self._curr.token_type is not TokenType.L_PAREN or self._next.token_type not in NAME_TOKENS:
            return None
        index = self._index
        names: list[str] = []
        while (
            self._match(TokenType.L_PAREN if not names else TokenType.COMMA)
            and self._curr.token_type in NAME_TOKENS
        ):
            names.append(self._take().text)
        if self._match_pair(TokenType.R_PAREN, TokenType.FARROW):
            return tuple(names)
        self._retreat(index)
        return None

    def _method(self, base: Expr, name: Token) -> Expr:
        """`.name(args)` after `base`, with the opening parenthesis consumed."""
        with self._nested():
            args: tuple[Expr, ...] = ()
            if self._curr.token_type is not TokenType.R_PAREN:
                args = self._listed(self._argument)
        self._expect(TokenType.R_PAREN, "',' or ')'")
        return Method(base, name.text.lower(), args, span=base.span.to(span_of(self._prev)))

    # --- after the call -------------------------------------------------------------------------------------

    def _after_call(self, name: Token, call: Call) -> Call:
        condition, over = self._filter_and_over()
        if condition is not None:
            if call.filter is not None:
                self._refuse("P009", "this call has two filters", condition.span, "join them with AND")
            call = replace(call, filter=condition, span=self._since(name))
        if over is not None:
            call = replace(call, over=over, span=self._since(name))
        return call

    def _filter_and_over(self) -> tuple[Expr | None, Over | None]:
        """`FILTER (WHERE …)` and `OVER (…)`, each at most once, in either order."""
        condition: Expr | None = None
        over: Over | None = None
        while self._next.token_type is TokenType.L_PAREN and self._at_word("filter", "over"):
            word = self._take()
            twice = condition if word.text.lower() == "filter" else over
            if twice is not None:
                self._refuse("P009", f"{word.text.upper()} stands twice", span_of(word))
            if word.text.lower() == "filter":
                self._advance()
                self._expect(TokenType.WHERE, "WHERE")
                condition = self._expression()
                self._expect(TokenType.R_PAREN, "')'")
            else:
                over = self._over(word)
        return condition, over

    def _over(self, start: Token) -> Over:
        self._advance()
        partition_by: tuple[Expr, ...] = ()
        when: Expr | None = None
        order_by: tuple[Ordering, ...] = ()
        while not self._match(TokenType.R_PAREN):
            clause = self._curr
            if not partition_by and self._match_word("partition", "by"):
                partition_by = self._listed(self._expression)
            elif when is None and self._match(TokenType.WHEN):
                when = self._expression()
            elif not order_by and self._match_word("order", "by"):
                order_by = self._listed(self._ordering)
            else:
                self._unexpected("PARTITION BY, WHEN, ORDER BY (each once) or ')'", clause)
        return Over(partition_by, when, order_by, span=self._since(start))

    def _ordering(self) -> Ordering:
        """One item of ORDER BY: `expr [ASC|DESC] [NULLS FIRST|LAST]`."""
        start = self._curr
        node = self._expression()
        descending = self._match_word("desc")
        if not descending:
            self._match_word("asc")
        nulls_first: bool | None = None
        if self._match_word("nulls"):
            nulls_first = self._match_word("first")
            if not nulls_first:
                self._expect_word("last")
        return Ordering(node, descending, nulls_first, span=self._since(start))

"""Function calls: arguments of three languages, and the clauses that may follow a call."""

from __future__ import annotations

from typing import Any

from sqlglot import Token, TokenType

from sql.language.cursor import span_of
from sql.language.expressions.expression_cursor import ExpressionCursor
from sql.language.expressions.period_parser import PeriodGrammar
from sql.language.tokens import NAME_TOKENS
from sql.record import replace
from sql.syntax import (
    ArrayLiteral,
    Call,
    Cast,
    Column,
    Constant,
    Expr,
    Lambda,
    Method,
    Ordering,
    Over,
    SelectItem,
    Star,
    Subquery,
)


class CallGrammar:
    """The parser of calls: every call becomes a `Call` exactly as written, without knowledge of functions."""

    def __init__(self, parser: ExpressionCursor, periods: PeriodGrammar) -> None:
        self.parser = parser
        self.periods = periods

    def array_literal(self, opening: Token) -> ArrayLiteral:
        """`{a, b}`, with the brace consumed."""
        parser = self.parser
        with parser._nested():
            items = () if parser._curr.token_type is TokenType.R_BRACE else parser._listed(parser._expression)
        parser._expect(TokenType.R_BRACE, "',' or '}'")
        return ArrayLiteral(items, span=parser._since(opening))

    def at_new(self) -> bool:
        """True at `new {` and `new type[`; elsewhere `new` is a name."""
        parser = self.parser
        if not parser._at_word("new"):
            return False
        is_array = parser._next.token_type in NAME_TOKENS and parser._after_next() is TokenType.L_BRACKET
        return is_array or parser._next.token_type is TokenType.L_BRACE

    def made(self) -> Expr:
        """`new {a = 1, b}`, an object with the value of the column b; `new int[] {1, 2}`, an array."""
        parser = self.parser
        start = parser._take()
        if parser._match(TokenType.L_BRACE):
            with parser._nested():
                members = parser._listed(self._member)
            parser._expect(TokenType.R_BRACE, "',' or '}'")
            args = tuple(part for member in members for part in member)
            return Call("object_construct", args, span=parser._since(start), name_span=span_of(start))
        parser._any_name("a type")
        while parser._match(TokenType.L_BRACKET):
            parser._expect(TokenType.R_BRACKET, "']'")
        opening = parser._curr
        parser._expect(TokenType.L_BRACE, "'{'")
        return self.array_literal(opening)

    def _member(self) -> tuple[Expr, Expr]:
        """The key and the value of `name = value`, or of `name` alone."""
        parser = self.parser
        name = parser._name("a name")
        key = Constant(name.text, span=span_of(name))
        if parser._match(TokenType.EQ):
            return key, parser._expression()
        return key, Column(name.text, span=span_of(name))

    def call(self) -> Expr:
        """`name(args) [FILTER (WHERE …)] [OVER (…)]`; also `EXISTS (SELECT …)` and `CAST(x AS type)`."""
        parser = self.parser
        name = parser._take()
        parser._advance()
        with parser._nested():
            if name.token_type is TokenType.EXISTS and parser._curr.token_type is TokenType.SELECT:
                select: Any = parser._parse_select()
                parser._expect(TokenType.R_PAREN, "')'")
                return Subquery(select, exists=True, span=parser._since(name))
            args: list[Expr] = []
            if name.text.lower() == "cast" and parser._curr.token_type is not TokenType.R_PAREN:
                args = [self.argument()]
                if parser._match(TokenType.ALIAS):
                    type_name = parser._any_name("a type").text.lower()
                    while parser._match(TokenType.DOT):  # `java.lang.Integer`
                        type_name = parser._any_name("a type").text.lower()
                    parser._expect(TokenType.R_PAREN, "')'")
                    return Cast(args[0], type_name, span=parser._since(name))
            call = self.arguments(name, args)
        return self._after_call(name, call)

    def arguments(self, name: Token, args: list[Expr]) -> Call:
        """All arguments up to the closing parenthesis, after the `args` already parsed."""
        parser = self.parser
        condition: Expr | None = None
        group_by: tuple[Expr, ...] | None = None
        distinct = not args and parser._match(TokenType.DISTINCT)
        if parser._at_word("all") and parser._next.token_type in NAME_TOKENS:  # what holds without DISTINCT
            parser._advance()
        more = (
            parser._match(TokenType.COMMA)
            if args
            else distinct or parser._curr.token_type is not TokenType.R_PAREN
        )
        while more:
            if parser._next.token_type is TokenType.COLON and parser._at_word("filter"):
                parser._advance(2)
                condition = parser._expression()
            elif parser._next.token_type is TokenType.COLON and parser._at_word("group_by"):
                parser._advance(2)
                group_by = self._dimensions()
            else:
                args.append(self.argument())
            more = parser._match(TokenType.COMMA)
        parser._expect(TokenType.R_PAREN, "',' or ')'")
        return Call(
            name.text.lower(),
            tuple(args),
            distinct,
            condition,
            group_by,
            span=parser._since(name),
            name_span=span_of(name),
        )

    def _dimensions(self) -> tuple[Expr, ...]:
        parser = self.parser
        if parser._curr.token_type is TokenType.L_PAREN:
            return parser._wrapped(parser._expression)
        return (parser._expression(),)

    def argument(self) -> Expr:
        """An argument of a call or an EPL window: `*`, `s.*`, a lambda, a period, an expression, an
        ordering."""
        parser, start = self.parser, self.parser._curr
        if start.token_type is TokenType.STAR or self.at_qualified_star():
            return self.star()
        parameters = self.lambda_parameters()
        if parameters is not None:
            return Lambda(parameters, parser._expression(), span=parser._since(start))
        node = self.periods.expression_or_period()
        if parser._at_word("asc", "desc"):
            descending = parser._take().text.lower() == "desc"
            return Ordering(node, descending, span=parser._since(start))
        return node

    def star(self) -> Star:
        """`*` or `s.*`, with EXCEPT and REPLACE."""
        parser, start = self.parser, self.parser._curr
        table = None
        if not parser._match(TokenType.STAR):
            table = start.text
            parser._advance(3)
        excluded: tuple[str, ...] = ()
        replaced: tuple[SelectItem, ...] = ()
        while parser._next.token_type is TokenType.L_PAREN and parser._at_word("except", "replace"):
            word = parser._take()
            if word.text.lower() == "except" and not excluded:
                excluded = tuple(name.text for name in parser._wrapped(lambda: parser._name("a column")))
            elif word.text.lower() == "replace" and not replaced:
                replaced = parser._wrapped(self._replacement)
            else:
                parser._refuse("P009", f"{word.text.upper()} stands twice", span_of(word))
        return Star(table, excluded, replaced, span=parser._since(start))

    def _replacement(self) -> SelectItem:
        parser, start = self.parser, self.parser._curr
        node = parser._expression()
        text = parser._text_since(start)
        parser._expect(TokenType.ALIAS, "AS and the column to replace")
        return SelectItem(node, parser._name("a column").text, text=text, span=parser._since(start))

    def at_qualified_star(self) -> bool:
        parser = self.parser
        return (
            parser._next.token_type is TokenType.DOT
            and parser._curr.token_type in NAME_TOKENS
            and parser._after_next() is TokenType.STAR
        )

    def lambda_parameters(self) -> tuple[str, ...] | None:
        """Consume `x =>` or `(x, i) =>` and return the names; None, with nothing consumed, if the next tokens
        are no lambda."""
        parser = self.parser
        if parser._next.token_type is TokenType.FARROW and parser._curr.token_type in NAME_TOKENS:
            name = parser._take().text
            parser._advance()
            return (name,)
        if parser._curr.token_type is not TokenType.L_PAREN or parser._next.token_type not in NAME_TOKENS:
            return None
        index = parser._index
        names: list[str] = []
        while (
            parser._match(TokenType.L_PAREN if not names else TokenType.COMMA)
            and parser._curr.token_type in NAME_TOKENS
        ):
            names.append(parser._take().text)
        if parser._match_pair(TokenType.R_PAREN, TokenType.FARROW):
            return tuple(names)
        parser._retreat(index)
        return None

    def method(self, base: Expr, name: Token) -> Expr:
        """`.name(args)` after `base`, with the opening parenthesis consumed."""
        parser = self.parser
        with parser._nested():
            args: tuple[Expr, ...] = ()
            if parser._curr.token_type is not TokenType.R_PAREN:
                args = parser._listed(self.argument)
        parser._expect(TokenType.R_PAREN, "',' or ')'")
        return Method(base, name.text.lower(), args, span=base.span.to(span_of(parser._prev)))

    # --- after the call -------------------------------------------------------------------------------------

    def _after_call(self, name: Token, call: Call) -> Call:
        parser = self.parser
        condition, over = self.filter_and_over()
        if condition is not None:
            if call.filter is not None:
                parser._refuse("P009", "this call has two filters", condition.span, "join them with AND")
            call = replace(call, filter=condition, span=parser._since(name))
        if over is not None:
            call = replace(call, over=over, span=parser._since(name))
        return call

    def filter_and_over(self) -> tuple[Expr | None, Over | None]:
        """`FILTER (WHERE …)` and `OVER (…)`, each at most once, in either order."""
        parser = self.parser
        condition: Expr | None = None
        over: Over | None = None
        while parser._next.token_type is TokenType.L_PAREN and parser._at_word("filter", "over"):
            word = parser._take()
            twice = condition if word.text.lower() == "filter" else over
            if twice is not None:
                parser._refuse("P009", f"{word.text.upper()} stands twice", span_of(word))
            if word.text.lower() == "filter":
                parser._advance()
                parser._expect(TokenType.WHERE, "WHERE")
                condition = parser._expression()
                parser._expect(TokenType.R_PAREN, "')'")
            else:
                over = self._over(word)
        return condition, over

    def _over(self, start: Token) -> Over:
        parser = self.parser
        parser._advance()
        partition_by: tuple[Expr, ...] = ()
        when: Expr | None = None
        order_by: tuple[Ordering, ...] = ()
        while not parser._match(TokenType.R_PAREN):
            clause = parser._curr
            if not partition_by and parser._match_word("partition", "by"):
                partition_by = parser._listed(parser._expression)
            elif when is None and parser._match(TokenType.WHEN):
                when = parser._expression()
            elif not order_by and parser._match_word("order", "by"):
                order_by = parser._listed(self.ordering)
            else:
                parser._unexpected("PARTITION BY, WHEN, ORDER BY (each once) or ')'", clause)
        return Over(partition_by, when, order_by, span=parser._since(start))

    def ordering(self) -> Ordering:
        """One item of ORDER BY: `expr [ASC|DESC] [NULLS FIRST|LAST]`."""
        parser, start = self.parser, self.parser._curr
        node = parser._expression()
        descending = parser._match_word("desc")
        if not descending:
            parser._match_word("asc")
        nulls_first: bool | None = None
        if parser._match_word("nulls"):
            nulls_first = parser._match_word("first")
            if not nulls_first:
                parser._expect_word("last")
        return Ordering(node, descending, nulls_first, span=parser._since(start))

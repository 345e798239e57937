"""Expressions: operators and their precedence, CASE, names, access to fields and elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar

from sqlglot import Token, TokenType
from sqlglot.dialects.dialect import Dialect

from sql.language.cursor import span_of, word_of
from sql.language.expressions.call_parser import CallGrammar
from sql.language.expressions.comparison_parser import NEGATABLE, TESTS, ComparisonGrammar, negated
from sql.language.expressions.expression_cursor import ExpressionCursor
from sql.language.expressions.period_parser import PeriodGrammar
from sql.language.tokens import NAME_TOKENS, WORD_TOKENS
from sql.record import replace
from sql.syntax import (
    Assignment,
    Binary,
    Case,
    Column,
    Constant,
    Expr,
    Field,
    Index,
    Slice,
    Subquery,
    Unary,
    When,
)


def _operator(op: str) -> Callable[[Expr, Expr], Binary]:
    def build(this: Expr, expression: Expr) -> Binary:
        return Binary(op, this, expression, span=this.span.to(expression.span))

    return build


class ExpressionParser(ExpressionCursor):
    """The order of precedence, tightest first: `* / % &`, `+ - | ^ ||`, comparisons, NOT, AND, OR.

    Comparisons are `= != < <= > >= IN BETWEEN LIKE REGEXP IS`; operators of one rank bind left to right.
    """

    DISJUNCTION: ClassVar[Any] = {TokenType.OR: _operator("or")}
    CONJUNCTION: ClassVar[Any] = {TokenType.AND: _operator("and")}
    EQUALITY: ClassVar[Any] = {}
    COMPARISON: ClassVar[Any] = {
        TokenType.EQ: _operator("="),
        TokenType.NEQ: _operator("!="),
        TokenType.LT: _operator("<"),
        TokenType.LTE: _operator("<="),
        TokenType.GT: _operator(">"),
        TokenType.GTE: _operator(">="),
    }
    TERM: ClassVar[Any] = {
        TokenType.PLUS: _operator("+"),
        TokenType.DASH: _operator("-"),
        TokenType.PIPE: _operator("|"),
        TokenType.CARET: _operator("^"),
        TokenType.DPIPE: _operator("||"),
    }
    FACTOR: ClassVar[Any] = {
        TokenType.STAR: _operator("*"),
        TokenType.SLASH: _operator("/"),
        TokenType.MOD: _operator("%"),
        TokenType.AMP: _operator("&"),
    }
    UNARY_PARSERS: ClassVar[Any] = {
        TokenType.NOT: lambda self: self._prefixed("not", self._parse_equality),
        TokenType.DASH: lambda self: self._negative(),
        TokenType.PLUS: lambda self: self._prefixed("+", self._parse_unary),
    }
    PRIMARY_PARSERS: ClassVar[Any] = {
        TokenType.STRING: lambda self, token: self._constant_node(token),
        TokenType.NUMBER: lambda self, token: self.periods.number_or_period(token),
        TokenType.NULL: lambda self, token: self._constant_node(token),
        TokenType.TRUE: lambda self, token: self._constant_node(token),
        TokenType.FALSE: lambda self, token: self._constant_node(token),
        TokenType.L_PAREN: lambda self, token: self._parenthesised(token),
        TokenType.L_BRACE: lambda self, token: self.calls.array_literal(token),
        TokenType.CASE: lambda self, token: self._case(token),
        TokenType.DOT: lambda self, token: self._fraction(token),
    }

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect=dialect)
        self.periods = PeriodGrammar(self)
        self.tests = ComparisonGrammar(self)
        self.calls = CallGrammar(self, self.periods)

    # --- operators ------------------------------------------------------------------------------------------

    def _parse_conjunction(self) -> Any:
        this = self._parse_equality()
        # `and when terminated` continues an output clause, not the expression before it.
        while self._curr.token_type is TokenType.AND and self._next.token_type is not TokenType.WHEN:
            self._advance()
            this = self.CONJUNCTION[TokenType.AND](this=this, expression=self._parse_equality())
        return this

    def _parse_comparison(self, this: object = None) -> Any:
        this = this or self._parse_term()
        while True:
            kind = self._curr.token_type
            if kind in self.COMPARISON:
                self._advance()
                this = self.tests.compared(this, kind)
            elif kind in TESTS:
                self._advance()
                this = TESTS[kind](self.tests, this)
            elif kind is TokenType.NOT and self._next.token_type in NEGATABLE:
                self._advance(2)
                this = negated(TESTS[self._prev.token_type](self.tests, this))
            else:
                return this

    def _parse_unary(self) -> Any:
        if self._curr.token_type not in self.UNARY_PARSERS:
            return self._parse_type()
        with self._nested():
            return self.UNARY_PARSERS[self._take().token_type](self)

    def _prefixed(self, op: str, parse: Callable[[], Any]) -> Unary:
        start = self._prev
        return Unary(op, parse(), span=self._since(start))

    def _negative(self) -> Expr:
        """`-x`; a number with its sign is one constant."""
        number = self._curr.token_type is TokenType.NUMBER
        node = self._prefixed("-", self._parse_unary)
        if number and isinstance(node.operand, Constant) and isinstance(node.operand.value, (int, float)):
            return Constant(-node.operand.value, span=node.span)
        return node

    def _parse_at_time_zone(self, this: object) -> Any:
        return this

    # --- operands -------------------------------------------------------------------------------------------

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> Any:
        """One operand with its suffixes; sqlglot would try types and intervals here, which this language
        lacks."""
        token = self._curr
        if token.token_type in self.PRIMARY_PARSERS:
            self._advance()
            return self._parse_column_ops(self.PRIMARY_PARSERS[token.token_type](self, token))
        if token.token_type not in NAME_TOKENS or word_of(self._next) == "by":
            self._unexpected("an expression")
        if self._next.token_type is TokenType.L_PAREN:
            return self._parse_column_ops(self.calls.call())
        if self.calls.at_new():
            return self._parse_column_ops(self.calls.made())
        return self._parse_column_ops(self._parse_column())

    def _parse_column(self) -> Any:
        token = self._name("a name")
        dotted = self._curr.token_type is TokenType.DOT and self._next.token_type in WORD_TOKENS
        if dotted and self._after_next() is not TokenType.L_PAREN:
            self._advance(2)
            return Column(self._prev.text, token.text, span=self._since(token))
        return self._plain_name(token)

    def _parse_column_ops(self, this: Any) -> Any:
        """The suffixes of an operand: `.name`, `.method(…)`, `->name`, `[index]`, `[low:high]`."""
        while True:
            kind = self._curr.token_type
            if kind is TokenType.DOT or kind is TokenType.ARROW:
                self._advance()
                self._refuse_projection()
                name = self._any_name("a field name")
                called = kind is TokenType.DOT and self._match(TokenType.L_PAREN)
                this = (
                    self.calls.method(this, name)
                    if called
                    else Field(this, name.text, span=this.span.to(span_of(name)))
                )
            elif kind is TokenType.L_BRACKET:
                this = self._parse_bracket(this)
            elif kind is TokenType.PLACEHOLDER:  # EPL's dynamic property: NULL where an event lacks it
                self._advance()
            else:
                return this

    def _parse_bracket(self, this: Any = None) -> Any:
        opening = self._take()
        self._refuse_projection()
        with self._nested():
            low = None if self._curr.token_type is TokenType.COLON else self._expression()
            more = []
            while low is not None and self._match(TokenType.COMMA):
                more.append(self._expression())
            sliced = not more and self._match(TokenType.COLON)
            high = None if not sliced or self._curr.token_type is TokenType.R_BRACKET else self._expression()
        self._expect(TokenType.R_BRACKET, "']'" if sliced else "':' or ']'")
        span = this.span.to(self._since(opening))
        if sliced or low is None:
            return Slice(this, low, high, span=span)
        return Index(this, low, tuple(more), span=span)

    def _refuse_projection(self) -> None:
        """eKuiper's manual has `a[*]->b` and `a->*->b`; it evaluates neither."""
        if self._curr.token_type is TokenType.STAR:
            self._refuse(
                "P090",
                "a path takes one field or element, not all",
                span_of(self._curr),
                "eKuiper cannot evaluate it either; write json_path_query(a, '$[*].b'), of an object '$.*.b'",
            )

    def _fraction(self, dot: Token) -> Constant:
        """`.5`, which the tokenizer cuts in two."""
        number = self._curr
        if (
            number.token_type is not TokenType.NUMBER
            or number.start != dot.end + 1
            or not number.text.isdecimal()
        ):
            self._unexpected("an expression", dot)
        self._advance()
        return Constant(float(f".{number.text}"), span=self._since(dot))

    def _parenthesised(self, opening: Token) -> Expr:
        with self._nested():
            if self._curr.token_type is TokenType.SELECT:
                select: Any = self._parse_select()
                self._expect(TokenType.R_PAREN, "')'")
                return Subquery(select, span=self._since(opening))
            node = self._expression()
        self._expect(TokenType.R_PAREN, "')'")
        return replace(node, span=self._since(opening))

    def _stream_filter(self) -> Expr | None:
        """The conditions of `E(a, b)` after the parenthesis: commas mean AND."""
        if self._match(TokenType.R_PAREN):
            return None
        with self._nested():
            parts = self._listed(self._expression)
        self._expect(TokenType.R_PAREN, "',' or ')'")
        return reduce(lambda left, right: Binary("and", left, right, span=left.span.to(right.span)), parts)

    def _case(self, start: Token) -> Case:
        with self._nested():
            operand = None if self._curr.token_type is TokenType.WHEN else self._expression()
            whens = [self._when()]
            while self._curr.token_type is TokenType.WHEN:
                whens.append(self._when())
            default = self._expression() if self._match(TokenType.ELSE) else None
        self._expect(TokenType.END, "WHEN, ELSE or END")
        return Case(tuple(whens), operand, default, span=self._since(start))

    def _when(self) -> When:
        start = self._curr
        self._expect(TokenType.WHEN, "WHEN")
        condition = self._expression()
        self._expect(TokenType.THEN, "THEN")
        return When(condition, self._expression(), span=self._since(start))

    # --- assignments ----------------------------------------------------------------------------------------

    def _assignments(self) -> tuple[Assignment, ...]:
        self._expect_word("set")
        return self._listed(self._target)

    def _target(self) -> Assignment:
        """`name = e`, `alias.name = e`, `name[i] = e`."""
        start = name = self._name("a column or variable")
        owner = None
        if self._match(TokenType.DOT):
            owner, name = name.text, self._any_name("a column")
        index = None
        if self._match(TokenType.L_BRACKET):
            index = self._expression()
            self._expect(TokenType.R_BRACKET, "']'")
        self._expect(TokenType.EQ, "'='")
        return Assignment(name.text, self._expression(), index, owner, span=self._since(start))

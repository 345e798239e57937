"""Expressions: operators and their precedence, CASE, names, access to fields and elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final, Literal

from sqlglot import Token, TokenType

from sql.errors import Span, did_you_mean
from sql.language.cursor import Cursor, node_of, span_of
from sql.language.tokens import NAME_TOKENS, UNITS, WORD_TOKENS
from sql.record import replace
from sql.syntax import (
    Between,
    Binary,
    Case,
    Column,
    Constant,
    Expr,
    Field,
    In,
    Index,
    IsNull,
    Like,
    PeriodLiteral,
    PeriodPart,
    Quantified,
    Slice,
    Subquery,
    Unary,
    When,
)

NESTING_MAX: Final = 40
"""The deepest nesting of parentheses, calls, subqueries and prefix operators in a statement."""


def _operator(op: str) -> Callable[[Expr, Expr], Binary]:
    def build(this: Expr, expression: Expr) -> Binary:
        return Binary(op, this, expression, span=this.span.to(expression.span))

    return build


class ExpressionParser(Cursor):
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
    RANGE_PARSERS: ClassVar[Any] = {
        TokenType.BETWEEN: lambda self, this: self._parse_between(this),
        TokenType.IN: lambda self, this: self._parse_in(this),
        TokenType.IS: lambda self, this: self._parse_is(this),
        TokenType.LIKE: lambda self, this: self._like(this, regexp=False),
        TokenType.RLIKE: lambda self, this: self._like(this, regexp=True),
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
        TokenType.NUMBER: lambda self, token: self._number_or_period(token),
        TokenType.NULL: lambda self, token: self._constant_node(token),
        TokenType.TRUE: lambda self, token: self._constant_node(token),
        TokenType.FALSE: lambda self, token: self._constant_node(token),
        TokenType.L_PAREN: lambda self, token: self._parenthesised(token),
        TokenType.CASE: lambda self, token: self._case(token),
        TokenType.DOT: lambda self, token: self._fraction(token),
    }

    _nesting = 0

    def _expression(self) -> Expr:
        """One expression, whole."""
        return node_of(self._parse_disjunction())

    @contextmanager
    def _nested(self) -> Iterator[None]:
        if self._nesting >= NESTING_MAX:
            self._refuse(
                "P006", f"nested deeper than {NESTING_MAX} levels", span_of(self._curr or self._prev)
            )
        self._nesting += 1
        try:
            yield
        finally:
            self._nesting -= 1

    # --- operators ------------------------------------------------------------------------------------------

    def _parse_conjunction(self) -> Any:
        this = self._parse_equality()
        # `and when terminated` continues an output clause, not the expression before it.
        while self._curr.token_type is TokenType.AND and self._next.token_type is not TokenType.WHEN:
            self._advance()
            this = self.CONJUNCTION[TokenType.AND](this=this, expression=self._parse_equality())
        return this

    def _parse_comparison(self, this: Any = None) -> Any:
        this = this or self._parse_term()
        while True:
            kind = self._curr.token_type
            if kind in self.COMPARISON:
                self._advance()
                this = self._compared(this, kind)
            elif kind in self.RANGE_PARSERS:
                self._advance()
                this = self.RANGE_PARSERS[kind](self, this)
            elif kind is TokenType.NOT and self._next.token_type in _NEGATABLE:
                self._advance(2)
                this = _negated(self.RANGE_PARSERS[self._prev.token_type](self, this))
            else:
                return this

    def _compared(self, this: Any, kind: TokenType) -> Any:
        """`this op e`, or `this op any|some|all (select …)`."""
        word = self._word()
        opened = self._next.token_type is TokenType.L_PAREN and self._after_next() is TokenType.SELECT
        if word not in ("any", "some", "all") or not opened:
            return self.COMPARISON[kind](this=this, expression=self._parse_term())
        self._advance(2)
        return self._quantified(this, _SIGNS[kind], "all" if word == "all" else "any", this)

    def _quantified(self, operand: Any, op: str, quantifier: Literal["any", "all"], start: Any) -> Quantified:
        """The subquery of IN, ANY and ALL, with the opening parenthesis consumed."""
        with self._nested():
            select = self._parse_select()
        self._expect(TokenType.R_PAREN, "')'")
        return Quantified(op, operand, quantifier, select, span=start.span.to(span_of(self._prev)))

    def _parse_between(self, this: Any) -> Any:
        low: Any = self._parse_term()
        self._expect(TokenType.AND, "AND")
        high: Any = self._parse_term()
        return Between(this, low, high, span=this.span.to(high.span))

    def _parse_in(self, this: Any, alias: bool = False) -> Any:
        if self._curr.token_type is TokenType.L_BRACKET:
            return self._range(this, self._take())
        if self._curr.token_type is not TokenType.L_PAREN:
            array: Any = self._parse_term()
            return In(this, array=array, span=this.span.to(array.span))
        selects = self._next.token_type is TokenType.SELECT
        opening = self._take()
        if selects:
            return self._quantified(this, "=", "any", this)
        with self._nested():
            items = self._listed(self._expression)
        if len(items) == 1 and self._match(TokenType.COLON):
            return self._range(this, opening, items[0])
        self._expect(TokenType.R_PAREN, "',' or ')'")
        return In(this, items, span=this.span.to(self._since(opening)))

    def _range(self, this: Any, opening: Token, low: Expr | None = None) -> Between:
        """`[low:high]`, EPL; a parenthesis in place of a bracket excludes that end."""
        with self._nested():
            if low is None:
                low = self._expression()
                self._expect(TokenType.COLON, "':' of a range")
            high = self._expression()
        if self._curr.token_type not in (TokenType.R_PAREN, TokenType.R_BRACKET):
            self._unexpected("')' or ']' at the end of the range")
        is_open = opening.token_type is TokenType.L_PAREN, self._take().token_type is TokenType.R_PAREN
        return Between(
            this, low, high, False, *is_open, in_range=True, span=this.span.to(span_of(self._prev))
        )

    def _parse_is(self, this: Any) -> Any:
        negated = self._match(TokenType.NOT)
        if self._match(TokenType.NULL):
            return IsNull(this, negated, span=this.span.to(span_of(self._prev)))
        other: Any = self._parse_term()
        same = Binary("is", this, other, span=this.span.to(other.span))
        return Unary("not", same, span=same.span) if negated else same

    def _like(self, this: Expr, regexp: bool) -> Like:
        pattern: Any = self._parse_term()
        escape = None
        span = this.span.to(pattern.span)
        if not regexp and self._curr.token_type is TokenType.ESCAPE:
            self._advance()
            value, token = self._literal("the escape character, as a string"), self._prev
            if not isinstance(value, str) or len(value) != 1:
                self._refuse("P001", "ESCAPE takes a string of one character", span_of(token))
            escape, span = value, span.to(span_of(token))
        return Like(this, pattern, escape, regexp=regexp, span=span)

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

    def _parse_at_time_zone(self, this: Any) -> Any:
        return this

    # --- operands -------------------------------------------------------------------------------------------

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> Any:
        """One operand with its suffixes; sqlglot would try types and intervals here, which this language
        lacks."""
        token = self._curr
        if token.token_type in self.PRIMARY_PARSERS:
            self._advance()
            return self._parse_column_ops(self.PRIMARY_PARSERS[token.token_type](self, token))
        if token.token_type not in NAME_TOKENS or self._next_word() == "by":
            self._unexpected("an expression")
        if self._next.token_type is TokenType.L_PAREN:
            return self._parse_column_ops(self._call())
        return self._parse_column_ops(self._parse_column())

    def _parse_column(self) -> Any:
        token = self._name("a name")
        dotted = self._curr.token_type is TokenType.DOT and self._next.token_type in WORD_TOKENS
        if dotted and self._after_next() is not TokenType.L_PAREN:
            self._advance(2)
            return Column(self._prev.text, token.text, span=self._since(token))
        return self._plain_name(token)

    def _plain_name(self, token: Token) -> Expr:
        return Column(token.text, span=span_of(token))

    def _parse_column_ops(self, this: Any) -> Any:
        """The suffixes of an operand: `.name`, `.method(…)`, `->name`, `[index]`, `[low:high]`."""
        while True:
            kind = self._curr.token_type
            if kind is TokenType.DOT or kind is TokenType.ARROW:
                self._advance()
                name = self._any_name("a field name")
                called = kind is TokenType.DOT and self._match(TokenType.L_PAREN)
                this = (
                    self._method(this, name)
                    if called
                    else Field(this, name.text, span=this.span.to(span_of(name)))
                )
            elif kind is TokenType.L_BRACKET:
                this = self._parse_bracket(this)
            else:
                return this

    def _parse_bracket(self, this: Any = None) -> Any:
        opening = self._take()
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

    def _constant_node(self, token: Token) -> Constant:
        return Constant(self._constant(token), span=self._since(token))

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
                select = self._parse_select()
                self._expect(TokenType.R_PAREN, "')'")
                return Subquery(select, span=self._since(opening))
            node = self._expression()
        self._expect(TokenType.R_PAREN, "')'")
        return replace(node, span=self._since(opening))

    def _parse_select(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError  # implemented in sql.language.select_parser

    def _call(self) -> Expr:
        raise NotImplementedError  # implemented in sql.language.call_parser

    def _method(self, base: Expr, name: Token) -> Expr:
        raise NotImplementedError  # implemented in sql.language.call_parser

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

    # --- time periods ---------------------------------------------------------------------------------------

    def _number_or_period(self, token: Token) -> Expr:
        node = self._constant_node(token)
        return self._period(node) if self._unit() else node

    def _unit(self) -> str | None:
        return UNITS.get(self._curr.text.lower()) if self._curr.token_type is TokenType.VAR else None

    def _no_unit(self) -> None:
        """Refuse a word after a number at a place where a unit of time is possible: it was meant as one."""
        if self._prev.token_type is TokenType.NUMBER and self._curr.token_type is TokenType.VAR:
            word = self._curr.text
            known = did_you_mean(word.rstrip("s"), UNITS) or "write day, hour, min, sec or msec"
            self._refuse("P001", f"'{word}' is no unit of time", span_of(self._curr), known)

    def _period(self, amount: Expr) -> PeriodLiteral:
        """`amount unit amount unit …`, with the first amount already consumed and a unit ahead."""
        parts: list[PeriodPart] = []
        while True:
            unit = self._unit()
            if unit is None:
                self._no_unit()
                self._unexpected("a unit of time")
            self._advance()
            parts.append(PeriodPart(amount, unit, span=amount.span.to(span_of(self._prev))))
            following = self._amount()
            if following is None:
                break
            amount = following
        span = Span(parts[0].span.start, parts[-1].span.end)
        return PeriodLiteral(tuple(parts), span=span)

    def _amount(self) -> Expr | None:
        """The next amount of a period, if a number or a name follows with a unit after it."""
        if self._curr.token_type is TokenType.NUMBER:
            return self._constant_node(self._take())
        if self._curr.token_type in NAME_TOKENS and self._next.text.lower() in UNITS:
            return self._plain_name(self._take())
        return None

    def _expression_or_period(self) -> Expr:
        """An expression; a time period if a unit follows it: `d minutes`, `(a + b) sec`."""
        node = self._expression()
        return self._period(node) if self._unit() and not isinstance(node, PeriodLiteral) else node


_SIGNS = {
    TokenType.EQ: "=",
    TokenType.NEQ: "!=",
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
}


def _negated(node: Any) -> Expr:
    """NOT of a range, a pattern or a list; of `in (select …)`: `!= all (select …)`."""
    if isinstance(node, Quantified):
        return replace(node, op="!=", quantifier="all")
    return node_of(replace(node, negated=True))


_NEGATABLE = frozenset({TokenType.BETWEEN, TokenType.IN, TokenType.LIKE, TokenType.RLIKE})

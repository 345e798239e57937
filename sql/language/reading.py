"""Parse text to statements: tokens, statements between semicolons, all problems together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from sql.errors import Problem, Span, SqlError
from sql.language.cursor import span_of
from sql.language.dialect import StreamDialect, StreamParser
from sql.language.lexical import lexical_problems
from sql.record import replace
from sql.syntax import CreateExpression, Expr, Lambda, Node, Statement

DEPTH_MAX: Final = 200
"""The greatest depth of one statement's tree, so that every walk over it stays within Python's stack."""

Tree = TypeVar("Tree", bound=Node)

_DIALECT = StreamDialect()
_BRACKETS = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET}


def parse(text: str) -> list[Statement]:
    """The statements of `text`, in order; separated by semicolons.

    Raises `SqlError` with the problems of all statements: at most one of each, as what follows a syntax error
    can only be guessed. Problem codes begin with P; spans are offsets into `text`.
    """
    tokens = tokens_of(text)
    statements: list[Statement] = []
    problems: list[Problem] = []
    for group in _between_semicolons(tokens):
        try:
            statement = _tree(group, text, StreamParser._parse_statement)
        except SqlError as error:
            problems += error.problems
        else:
            statements.append(replace(statement, text=text[statement.span.start : statement.span.end]))
    if problems:
        raise SqlError(problems, text)
    if not statements:
        raise SqlError.of("P011", "there is no statement here", Span(0, len(text)), text=text)
    return statements


def parse_expression(text: str) -> Expr:
    """The single expression of `text`. Raises `SqlError`."""
    return _tree(tokens_of(text), text, StreamParser._expression)


def parse_declared(name: str, text: str) -> CreateExpression:
    """The declaration of `create expression name { text }`. Raises `SqlError`."""
    body = _tree(tokens_of(text), text, lambda parser: parser.calls.argument())
    span = Span(0, len(text))
    if isinstance(body, Lambda):
        return CreateExpression(name, body.body, body.parameters, span=span, text=text)
    return CreateExpression(name, body, span=span, text=text)


def tokens_of(text: str) -> list[Token]:
    """The words of a text. Raises `SqlError` if it cannot be cut into words."""
    problems = lexical_problems(text)
    if problems:
        raise SqlError(problems, text)
    try:
        return _DIALECT.tokenize(text)
    except SqlglotError as error:
        message = "this text cannot be cut into words"
        raise SqlError.of("P002", message, Span(0, len(text)), text=text) from error


def _between_semicolons(tokens: list[Token]) -> Iterator[list[Token]]:
    group: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            if group:
                yield group
            group = []
        else:
            group.append(token)
    if group:
        yield group


def _tree(tokens: list[Token], text: str, rule: Callable[[StreamParser], Tree]) -> Tree:
    _check_brackets(tokens, text)
    try:
        tree = StreamParser(dialect=_DIALECT).read(tokens, text, rule)
    except RecursionError:
        span = Span(tokens[0].start, tokens[-1].end + 1)
        raise SqlError.of("P006", "nested too deeply for the stack", span, text=text) from None
    if len(tokens) > DEPTH_MAX:  # a tree cannot be deeper than it has tokens
        _check_depth(tree, text)
    return tree


def _check_brackets(tokens: list[Token], text: str) -> None:
    """Refuse (P007) a bracket that is never closed, or closes nothing."""
    opened: list[Token] = []
    ranges: set[int] = set()
    for place, token in enumerate(tokens):
        if token.text not in "()[]{}":
            continue  # a test of text is faster than one of types, and most tokens are no brackets
        if token.token_type in _BRACKETS:
            opened.append(token)
            if place and tokens[place - 1].token_type is TokenType.IN:
                ranges.add(token.start)  # perhaps a range, `in (1:5]`, whose ends need not match
            continue
        if token.token_type not in _BRACKETS.values():
            continue
        opening = opened.pop() if opened else None
        if opening is None or (
            _BRACKETS[opening.token_type] is not token.token_type and opening.start not in ranges
        ):
            raise SqlError.of("P007", f"{token.text!r} closes nothing", span_of(token), text=text)
    if opened:
        last = opened[-1]
        message = f"{last.text!r} is never closed"
        raise SqlError.of("P007", message, span_of(last), "add the closing bracket", text=text)


def _check_depth(tree: Node, text: str) -> None:
    level: list[Node] = [tree]
    for _ in range(DEPTH_MAX):
        level = [child for node in level for child in node.children()]
        if not level:
            return
    message = f"an expression with more than {DEPTH_MAX} levels"
    hint = "use IN for a list of values, or split the rule"
    raise SqlError.of("P006", message, level[0].span, hint, text=text)


def parameters_of(text: str) -> list[str]:
    """The parameters of an on-demand query, in order, as named in expressions: `?` by place, `:name`."""
    tokens = tokens_of(text)
    found = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.token_type is TokenType.PLACEHOLDER:
            found.append(f"?{token.start}")
        elif token.token_type is TokenType.COLON and after is not None:
            found.append(f":{after.text}")
    return found

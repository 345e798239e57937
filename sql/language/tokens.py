"""The tokens of the language: a tokenizer with few keywords.

Only words that carry expression grammar are tokens of their own. Words of clauses (`group`, `output`,
`window`, `last`, …) stay plain words, recognised by their text at the places where the grammar expects them,
so they can name columns everywhere else.

Both quotes make strings, backticks quote names; `--`, `//` and `/* */` are comments.
"""

from __future__ import annotations

import re
from enum import IntEnum, auto

from msgspec import Struct

from sql.language.lexical import unquote


class TokenType(IntEnum):
    """The kinds of tokens. `SENTINEL`: there is none, before the first and behind the last."""

    SENTINEL = auto()
    NUMBER = auto()
    STRING = auto()
    IDENTIFIER = auto()
    """A quoted name."""
    VAR = auto()
    """A word that is no keyword."""

    AND = auto()
    ALIAS = auto()
    BETWEEN = auto()
    CASE = auto()
    DISTINCT = auto()
    ELSE = auto()
    END = auto()
    ESCAPE = auto()
    EXISTS = auto()
    FALSE = auto()
    FROM = auto()
    IN = auto()
    IS = auto()
    LIKE = auto()
    NOT = auto()
    NULL = auto()
    OR = auto()
    RLIKE = auto()
    SELECT = auto()
    THEN = auto()
    TRUE = auto()
    WHEN = auto()
    WHERE = auto()

    DPIPE = auto()
    GTE = auto()
    LTE = auto()
    NEQ = auto()
    ARROW = auto()
    FARROW = auto()

    L_PAREN = auto()
    R_PAREN = auto()
    L_BRACKET = auto()
    R_BRACKET = auto()
    L_BRACE = auto()
    R_BRACE = auto()
    AMP = auto()
    CARET = auto()
    COLON = auto()
    COMMA = auto()
    DOT = auto()
    DASH = auto()
    EQ = auto()
    GT = auto()
    LT = auto()
    MOD = auto()
    NOT_SIGN = auto()
    SLASH = auto()
    PLUS = auto()
    SEMICOLON = auto()
    STAR = auto()
    PLACEHOLDER = auto()
    PARAMETER = auto()
    HASH = auto()
    PIPE = auto()


class Token(Struct, eq=False, gc=False):
    """A token: its kind, its value, the places of its first and its last character. False if there is none."""

    token_type: TokenType
    text: str
    start: int
    end: int

    def __bool__(self) -> bool:
        return self.token_type is not TokenType.SENTINEL


NO_TOKEN = Token(TokenType.SENTINEL, "", 0, 0)

KEYWORDS = {
    "AND": TokenType.AND,
    "AS": TokenType.ALIAS,
    "BETWEEN": TokenType.BETWEEN,
    "CASE": TokenType.CASE,
    "DISTINCT": TokenType.DISTINCT,
    "ELSE": TokenType.ELSE,
    "END": TokenType.END,
    "ESCAPE": TokenType.ESCAPE,
    "EXISTS": TokenType.EXISTS,
    "FALSE": TokenType.FALSE,
    "FROM": TokenType.FROM,
    "IN": TokenType.IN,
    "IS": TokenType.IS,
    "LIKE": TokenType.LIKE,
    "NOT": TokenType.NOT,
    "NULL": TokenType.NULL,
    "OR": TokenType.OR,
    "REGEXP": TokenType.RLIKE,
    "SELECT": TokenType.SELECT,
    "THEN": TokenType.THEN,
    "TRUE": TokenType.TRUE,
    "WHEN": TokenType.WHEN,
    "WHERE": TokenType.WHERE,
}

SYMBOLS = {
    "||": TokenType.DPIPE,
    ">=": TokenType.GTE,
    "<=": TokenType.LTE,
    "<>": TokenType.NEQ,
    "!=": TokenType.NEQ,
    "->": TokenType.ARROW,
    "=>": TokenType.FARROW,
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    "[": TokenType.L_BRACKET,
    "]": TokenType.R_BRACKET,
    "{": TokenType.L_BRACE,
    "}": TokenType.R_BRACE,
    "&": TokenType.AMP,
    "^": TokenType.CARET,
    ":": TokenType.COLON,
    ",": TokenType.COMMA,
    ".": TokenType.DOT,
    "-": TokenType.DASH,
    "=": TokenType.EQ,
    ">": TokenType.GT,
    "<": TokenType.LT,
    "%": TokenType.MOD,
    "!": TokenType.NOT_SIGN,
    "/": TokenType.SLASH,
    "+": TokenType.PLUS,
    ";": TokenType.SEMICOLON,
    "*": TokenType.STAR,
    "?": TokenType.PLACEHOLDER,
    "@": TokenType.PARAMETER,
    "#": TokenType.HASH,
    "|": TokenType.PIPE,
}

NAME_TOKENS = frozenset(
    {TokenType.VAR, TokenType.IDENTIFIER, TokenType.END, TokenType.ESCAPE, TokenType.EXISTS, TokenType.RLIKE}
)
"""Tokens that may be a name at a place of an expression or an alias."""

WORD_TOKENS = NAME_TOKENS | frozenset(KEYWORDS.values())
"""Tokens that may be a name after `.`, `->` and `#`, which only a name can follow."""

UNITS = {
    unit: unit.rstrip("s")
    for name in ("year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
    for unit in (name, name + "s")
} | {"min": "minute", "sec": "second", "msec": "millisecond", "usec": "microsecond"}
"""Words of time periods, and the unit of each."""


_TOKEN = re.compile(
    r"""
      (?P<space> \s+ )
    | (?P<comment> (?:--|//)[^\n\r]* | /\*.*?\*/ )
    | (?P<word> [^\W\d]\w* )
    | (?P<number> [0-9]+ (?: \.[0-9]* )? (?: [eE](?:[+-](?=[0-9]))?[0-9]* )? )
    | (?P<string> '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+" )
    | (?P<name> `(?:[^`]|``)*` )
    | (?P<symbol> \|\| | [<>!]\s*= | <> | -> | => | [-+*/%&|^<>=(),.;:\[\]@#!{}?] )
    | (?P<rest> \w+ )
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens_in(text: str) -> list[Token]:
    """The tokens of a text without lexical problems."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        group = match.lastgroup
        if group not in ("space", "comment"):
            start, end = match.span()
            found.append(_token(group, match.group(), start, end - 1, found))
    return found


def has_comments(text: str) -> bool:
    """True if a text without lexical problems has a comment."""
    return any(match.lastgroup == "comment" for match in _TOKEN.finditer(text))


def _token(group: str | None, text: str, start: int, end: int, before: list[Token]) -> Token:
    if group == "word":
        is_annotation = bool(before) and before[-1].token_type is TokenType.PARAMETER
        kind = TokenType.VAR if is_annotation else KEYWORDS.get(text.upper(), TokenType.VAR)
        return Token(kind, text, start, end)
    if group == "symbol":
        sign = "".join(text.split())
        return Token(SYMBOLS[sign], sign, start, end)
    if group == "number":
        return Token(TokenType.NUMBER, text, start, end)
    if group == "string":
        return Token(TokenType.STRING, unquote(text), start, end)
    if group == "name":
        return Token(TokenType.IDENTIFIER, text[1:-1].replace("``", "`"), start, end)
    return Token(TokenType.VAR, text, start, end)

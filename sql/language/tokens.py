"""The tokens of the language: a tokenizer with few keywords.

Only words that carry expression grammar are tokens of their own. Words of clauses (`group`, `output`,
`window`, `last`, …) stay plain words, recognised by their text at the places where the grammar expects them,
so they can name columns everywhere else.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import Tokenizer, TokenType

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
    "> =": TokenType.GTE,
    "< =": TokenType.LTE,
    "! =": TokenType.NEQ,
    "->": TokenType.ARROW,
    "=>": TokenType.FARROW,
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


class StreamTokenizer(Tokenizer):
    """The tokenizer: both quotes make strings, backticks quote names; `--`, `//` and `/* */` are comments."""

    QUOTES: ClassVar = ["'", '"']
    STRING_ESCAPES: ClassVar = ["'", '"', "\\"]
    IDENTIFIERS: ClassVar = ["`"]
    COMMENTS: ClassVar = ["--", "//", ("/*", "*/")]
    NESTED_COMMENTS = False
    COMMANDS: ClassVar[set[TokenType]] = set()
    KEYWORDS: ClassVar = KEYWORDS | SYMBOLS

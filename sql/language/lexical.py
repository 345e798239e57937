"""Lexical errors: the check of a text before it is cut into tokens.

One pass of one regular expression finds strings and comments that never end and characters that belong to no
token, so that the tokenizer only gets text that it can cut.
"""

from __future__ import annotations

import re
from typing import Final

from sql.errors import Problem, Span

TEXT_CHARS_MAX: Final = 100_000
"""The longest text accepted by one call of `parse`, in characters."""

_REGION = re.compile(
    r"""
      (?P<good> (?:--|//)[^\n\r]*                  # comment to the end of the line
              | /\*.*?\*/                          # comment
              | '(?:[^'\\]|\\.|'')*+'              # strings, with a doubled or a backslashed quote inside
              | "(?:[^"\\]|\\.|"")*+"
              | `[^`]*` )                          # quoted name
    | (?P<comment> /\* )
    | (?P<string> ['"] )
    | (?P<name> ` )
    | (?P<bang> !(?!\s*=) )
    | (?P<stray> [^\w\s+\-*/%&|^<>=(),.;:\[\]@#!{}?] )
    """,
    re.VERBOSE | re.DOTALL,
)

_MESSAGES = {
    "comment": ("P004", "this comment never ends", "close it with */"),
    "string": (
        "P003",
        "this string never ends",
        "a backslash keeps the quote after it inside; write \\\\ for one",
    ),
    "name": ("P003", "this quoted name never ends", "close it with a backtick"),
    "bang": ("P002", "unexpected '!'", "eKuiper takes it for =; write =, != or NOT"),
}


def lexical_problems(text: str) -> list[Problem]:
    """Problems of characters: too many (P005), unknown ones (P002), strings (P003) and
    comments (P004) left open."""
    if len(text) > TEXT_CHARS_MAX:
        message = f"the text has {len(text)} characters, more than the {TEXT_CHARS_MAX} allowed"
        return [Problem("P005", message, Span(TEXT_CHARS_MAX, len(text)), "split it into several rules")]
    return [_problem(found) for found in _REGION.finditer(text) if found.lastgroup != "good"]


def _problem(found: re.Match[str]) -> Problem:
    span = Span(*found.span())
    if found.lastgroup in _MESSAGES:
        code, message, hint = _MESSAGES[found.lastgroup]
        return Problem(code, message, span, hint)
    return Problem("P002", f"unexpected character {found.group()!r}", span)


_ESCAPES = {
    "'": re.compile(r"''|\\([\\'\"])"),
    '"': re.compile(r'""|\\([\\\'"])'),
}


def unquote(literal: str) -> str:
    r"""The value of a string literal with its quotes.

    A doubled quote, `\'`, `\"` and `\\` stand for one character; any other backslash is itself, so that
    regular expressions need no doubling.

    >>> unquote("'it''s'"), unquote(r"'\d+'")
    ("it's", '\\d+')
    """
    quote, body = literal[0], literal[1:-1]
    if quote not in body and "\\" not in body:
        return body
    return _ESCAPES[quote].sub(lambda found: found.group(1) or quote, body)

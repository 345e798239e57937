"""Split the text of a template into its pieces: texts, and actions cut into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from sql.errors import Problem, Span, render
from sql.record import Record

TEMPLATE_CHARS_MAX = 64 * 1024

_ACTION = re.compile(r"\{\{(-(?=\s))?(.*?)((?<=\s)-)?\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
  | (?P<number>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)
  | (?P<variable>\$[^\W]*(?:\.[^\W\d]\w*)*)
  | (?P<path>(?:\.[^\W\d]\w*)+|\.)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign>:=|[()|,=])
    )""",
    re.VERBOSE,
)


class TemplateError(ValueError):
    """The template has an error. `problem.span` counts characters of the template."""

    def __init__(self, problem: Problem, text: str) -> None:
        super().__init__(render(problem, text, "template"))
        self.problem = problem


class Token(Record):
    """A word of an action, with its position in the template."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    def is_sign(self, *texts: str) -> bool:
        return self.kind == "sign" and self.text in texts


Piece = str | list[Token]
"""Text, or the tokens of an action."""


class Scanner:
    """The lexer of one template."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > TEMPLATE_CHARS_MAX:
            self.fail(f"template of {len(text)} characters; at most {TEMPLATE_CHARS_MAX} are allowed", 0, 0)

    def fail(self, message: str, start: int, end: int, hint: str | None = None) -> NoReturn:
        """Refuse the characters from start to end."""
        raise TemplateError(Problem("K101", message, Span(start, end), hint), self.text)

    def pieces(self) -> Iterator[Piece]:
        """Texts and actions in turn, with comments dropped and trim markers applied."""
        offset, trim = 0, False
        for match in _ACTION.finditer(self.text):
            piece = self.text[offset : match.start()]
            piece = piece.lstrip() if trim else piece
            self._no_open_action(piece, offset)
            yield piece.rstrip() if match[1] else piece
            offset, trim = match.end(), bool(match[3])
            body = match[2]
            if not (body.strip().startswith("/*") and body.strip().endswith("*/")):
                yield self._tokens(body, match.start(2), match)
        rest = self.text[offset:]
        self._no_open_action(rest, offset)
        yield rest.lstrip() if trim else rest

    def _no_open_action(self, piece: str, offset: int) -> None:
        if (at := piece.find("{{")) >= 0:
            self.fail("'{{' without '}}'", offset + at, offset + at + 2)

    def _tokens(self, body: str, start: int, match: re.Match[str]) -> list[Token]:
        tokens = []
        offset, stop = start, start + len(body.rstrip())
        while offset < stop:
            found = _TOKEN.match(self.text, offset, stop)
            if not found or not found.lastgroup:
                at = stop - len(self.text[offset:stop].lstrip())
                self.fail(f"unexpected {self.text[at:stop]!r} in an action", at, stop)
            kind = found.lastgroup
            tokens.append(Token(kind, found[kind], found.start(kind)))
            offset = found.end()
        if not tokens:
            self.fail("empty action", match.start(), match.end())
        return tokens

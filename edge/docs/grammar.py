"""The grammar of the manual: `grammar.ebnf` as data.

    select: "SELECT" item ("," item)* from?      a rule; words of the language stand in quotes
        | …                                      alternatives
    // ## SELECT                                 a section, and sentences about it

Names in capitals are what the tokenizer gives: NAME, NUMBER, STRING, UNIT, GROUP_WINDOW,
LOT_WINDOW, CRON_FIELD.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import resources
from typing import TypeAlias

Part: TypeAlias = "Word | Name | Several | Choice | Repeat"


@dataclass(frozen=True, slots=True)
class Word:
    """A word or sign of the language."""

    text: str


@dataclass(frozen=True, slots=True)
class Name:
    """A rule, or a kind of token where it is in capitals."""

    text: str


@dataclass(frozen=True, slots=True)
class Several:
    """Parts one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several parts."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part that may be left out (`?`), repeated (`+`), or both (`*`)."""

    part: Part
    sign: str


@dataclass(slots=True)
class GrammarSection:
    """A heading with its sentences and rules."""

    title: str
    about: list[str] = field(default_factory=list)
    rules: dict[str, Part] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    """The rules as they are written."""


_TOKEN = re.compile(r'"[^"]*"|\w+|[()|?*+]')
_RULE = re.compile(r"^(\w+):", re.MULTILINE)


def sections() -> list[GrammarSection]:
    """All of the grammar, in order."""
    text = resources.files("edge.docs").joinpath("grammar.ebnf").read_text("utf-8")
    return [_section(part) for part in text.split("// ## ")[1:]]


def _section(text: str) -> GrammarSection:
    title, *lines = text.strip().splitlines()
    about = [line.removeprefix("//").strip() for line in lines if line.startswith("//")]
    written = [line for line in lines if line and not line.startswith("//")]
    _, *found = _RULE.split("\n".join(written))
    rules = {name: _Reader(body).alternatives() for name, body in zip(found[::2], found[1::2], strict=True)}
    return GrammarSection(title, about, rules, written)


class _Reader:
    """Reads the right side of one rule."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)

    def alternatives(self) -> Part:
        parts = [self._sequence()]
        while self._tokens and self._tokens[0] == "|":
            self._tokens.pop(0)
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Part:
        parts = []
        while self._tokens and self._tokens[0] not in ("|", ")"):
            parts.append(self._repeated())
        return parts[0] if len(parts) == 1 else Several(tuple(parts))

    def _repeated(self) -> Part:
        part = self._single()
        while self._tokens and self._tokens[0] in ("?", "*", "+"):
            part = Repeat(part, self._tokens.pop(0))
        return part

    def _single(self) -> Part:
        token = self._tokens.pop(0)
        if token.startswith('"'):
            return Word(token[1:-1])
        if token != "(":
            return Name(token)
        part = self.alternatives()
        self._tokens.pop(0)
        return part

"""Expressions of a template: operands, function calls and pipes, compiled to Python functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NoReturn

from sinks.template.functions import FUNCTIONS, LAZY, NOW, check_arguments
from sinks.template.scan import Scanner, Token
from sinks.template.values import is_true, step_into
from sql.errors import did_you_mean

NESTING_MAX = 32

KEYWORDS = ("if", "range", "with", "else", "end", "break", "continue")
_NEEDS_FILES = ("define", "template", "block")

Variables = list[Any]
"""The values of all variables while a template is rendered, by their place; a new list for each rendering."""

ROOT, INSTANT = 0, 1
"""Places of the variables that every template has: its data, and the instant of the result in epoch
milliseconds."""

Evaluate = Callable[[Any, Variables], Any]
"""A compiled expression: a function of the dot and the variables."""


class Scope:
    """The visible variables and the place of each."""

    def __init__(self) -> None:
        self.size = INSTANT + 1
        self.visible: list[dict[str, int]] = [{"$": ROOT}]

    def declare(self, name: str) -> int:
        """The place of a new variable; it hides one of the same name up to the end of its block."""
        self.visible[-1][name] = self.size
        self.size += 1
        return self.size - 1

    def find(self, name: str) -> int | None:
        return next((block[name] for block in reversed(self.visible) if name in block), None)


class Expression:
    """Parser of one pipeline: commands joined by `|`, each passing its value as the last argument of the
    next."""

    def __init__(self, scanner: Scanner, scope: Scope, tokens: list[Token]) -> None:
        self.scanner = scanner
        self.scope = scope
        self.tokens = tokens
        self.position = 0

    def whole(self) -> Evaluate:
        """All tokens as one expression."""
        value = self._pipes(0)
        if self.position < len(self.tokens):
            self._fail(f"unexpected {self.tokens[self.position].text!r}", self.tokens[self.position])
        return value

    def _fail(self, message: str, token: Token, hint: str | None = None) -> NoReturn:
        self.scanner.fail(message, token.start, token.end, hint)

    def _peek(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _at(self, *signs: str) -> bool:
        token = self._peek()
        return token is not None and token.is_sign(*signs)

    def _pipes(self, depth: int) -> Evaluate:
        value = self._command(None, depth)
        while self._at("|"):
            self.position += 1
            value = self._command(value, depth)
        return value

    def _command(self, piped: Evaluate | None, depth: int) -> Evaluate:
        """A function with its arguments, or a single operand."""
        token = self._peek()
        if token is None:
            self._fail("value expected", self.tokens[-1])
        if token.kind == "word" and token.text not in _CONSTANTS:
            self.position += 1
            arguments = []
            while self._peek() is not None and not self._at("|", ")"):
                arguments.append(self._operand(depth))
            return self._call(token, arguments, piped)
        if piped is not None:
            self._fail(f"{token.text!r} is no function, so nothing can be piped into it", token)
        value = self._operand(depth)
        extra = self._peek()
        if extra is not None and not extra.is_sign("|", ")"):
            self._fail(f"unexpected {extra.text!r}", extra)
        return value

    def _call(self, name: Token, arguments: list[Evaluate], piped: Evaluate | None) -> Evaluate:
        if name.text not in FUNCTIONS and name.text not in LAZY and name.text != NOW:
            self._unknown(name)
        values = [*arguments, piped] if piped is not None else arguments
        first = self.tokens[self.tokens.index(name) + 1] if arguments else None
        literal = _unquote(first.text) if first is not None and first.kind == "string" else None
        if wrong := check_arguments(name.text, len(values), literal):
            self._fail(wrong, name)
        if name.text == NOW:
            return lambda dot, variables: datetime.fromtimestamp(variables[INSTANT] / 1000, UTC)
        if name.text in LAZY:
            return _call_lazily(values, stop_at=LAZY[name.text])
        function = FUNCTIONS[name.text].apply
        return lambda dot, variables: function(*[value(dot, variables) for value in values])

    def _unknown(self, name: Token) -> NoReturn:
        known = [*FUNCTIONS, *LAZY, NOW, *KEYWORDS]
        hint = did_you_mean(name.text, known)
        if name.text in _NEEDS_FILES:
            hint = "templates cannot call each other; write the text where it is used"
        self._fail(
            f"unknown function {name.text!r}", name, hint or f"functions are {', '.join(sorted(known))}"
        )

    def _operand(self, depth: int) -> Evaluate:
        token = self._peek()
        if token is None:
            self._fail("value expected", self.tokens[-1])
        self.position += 1
        if token.kind == "path":
            return _field(_dot, _names(token.text))
        if token.kind == "variable":
            return self._variable(token)
        if token.kind == "string":
            return _constant(_unquote(token.text))
        if token.kind == "number":
            return _constant(json.loads(token.text.lstrip("+")))
        if token.kind == "word" and token.text in _CONSTANTS:
            return _constant(_CONSTANTS[token.text])
        if token.kind == "word":
            return self._call(token, [], None)
        if token.text != "(" or depth >= NESTING_MAX:
            self._fail(f"unexpected {token.text!r}", token)
        return self._parenthesised(token, depth)

    def _parenthesised(self, opening: Token, depth: int) -> Evaluate:
        """`( pipeline )`, perhaps followed by fields of its value: `(index . 0).name`."""
        value = self._pipes(depth + 1)
        if not self._at(")"):
            self._fail("'(' without ')'", opening)
        closing = self.tokens[self.position]
        self.position += 1
        following = self._peek()
        if following is not None and following.kind == "path" and following.start == closing.end:
            self.position += 1
            return _field(value, _names(following.text))
        return value

    def _variable(self, token: Token) -> Evaluate:
        """A variable, perhaps with fields: `$`, `$x`, `$x.a.b`."""
        name, *fields = token.text.split(".")
        place = self.scope.find(name)
        if place is None:
            known = did_you_mean(name, [name for block in self.scope.visible for name in block])
            self._fail(f"unknown variable '{name}'", token, known or "declare it before: {{$x := .field}}")
        return _field(_at_place(place), fields)


_CONSTANTS = {"true": True, "false": False, "nil": None}


def _unquote(text: str) -> str:
    """The characters of a Go string literal."""
    if text.startswith("`"):
        return text[1:-1]
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]


def _names(path: str) -> list[str]:
    return [name for name in path.split(".") if name]


def _constant(value: object) -> Evaluate:
    return lambda dot, variables: value


def _dot(dot: object, variables: Variables) -> Any:
    return dot


def _at_place(place: int) -> Evaluate:
    return lambda dot, variables: variables[place]


def _field(base: Evaluate, names: list[str]) -> Evaluate:
    """The value at a path of field names below `base`."""
    if not names:
        return base

    def walk(dot: object, variables: Variables) -> Any:
        value = base(dot, variables)
        for name in names:
            value = step_into(value, name)
        return value

    return walk


def _call_lazily(values: list[Evaluate], *, stop_at: bool) -> Evaluate:
    """`and` and `or`: the first argument whose truth is `stop_at`, else the last one."""

    def choose(dot: object, variables: Variables) -> Any:
        result = None
        for value in values:
            result = value(dot, variables)
            if is_true(result) is stop_at:
                break
        return result

    return choose

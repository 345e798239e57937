"""The body of a template: texts, values, `if`, `with`, `range` and their blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sinks.template.expressions import NESTING_MAX, Evaluate, Expression, Scope, Variables
from sinks.template.scan import Scanner, Token
from sinks.template.values import is_true, kind_of, print_value
from sql.errors import DataError

Emit = Callable[[Any, Variables, list[str]], None]
"""A compiled piece of template: a function of the dot, the variables and the list of texts to append to."""

BLOCKS = ("if", "range", "with")
LEAVES = ("break", "continue")


class _Leave(Exception):
    """`{{break}}` or `{{continue}}`, raised to leave the block of a loop."""

    def __init__(self, word: str) -> None:
        self.goes_on = word == "continue"


@dataclass(slots=True)
class _Head:
    """The head of an `if`, `with` or `range`: a value, and the places of the variables that it is assigned
    to."""

    value: Evaluate
    places: list[int] = field(default_factory=list)

    def assign(self, variables: Variables, *values: Any) -> None:
        """Assign the last of the values to one variable, or all of them to two."""
        for place, value in zip(reversed(self.places), reversed(values), strict=False):
            variables[place] = value


class Parser:
    """Recursive descent over the pieces of a template: text and actions in turn."""

    def __init__(self, text: str) -> None:
        self.scanner = Scanner(text)
        self.scope = Scope()
        self.pieces = list(self.scanner.pieces())
        self.position = 0
        self.depth = 0
        self.loops = 0

    def parse(self) -> Emit:
        """The whole template."""
        body, stop = self._block()
        if stop is not None:
            self.scanner.fail(f"'{stop[0].text}' without 'if', 'range' or 'with'", stop[0].start, stop[0].end)
        return body

    def _block(self) -> tuple[Emit, list[Token] | None]:
        """Everything up to `else` or `end` (returned, already consumed) or the end of the text (None)."""
        self.depth += 1
        self.scope.visible.append({})
        emits: list[Emit] = []
        stop: list[Token] | None = None
        while self.position < len(self.pieces) and stop is None:
            piece = self.pieces[self.position]
            self.position += 1
            if isinstance(piece, str):
                emits += [_emit_text(piece)] if piece else []
            elif piece[0].kind == "word" and piece[0].text in ("else", "end"):
                stop = piece
            else:
                emits.append(self._action(piece))
        self.scope.visible.pop()
        self.depth -= 1
        return _emit_all(emits), stop

    def _action(self, tokens: list[Token]) -> Emit:
        head = tokens[0]
        if head.kind == "word" and head.text in BLOCKS:
            return self._control(head, tokens[1:])
        if head.kind == "word" and head.text in LEAVES:
            return self._leave(tokens)
        if len(tokens) > 1 and head.kind == "variable" and tokens[1].is_sign(":=", "="):
            return self._assignment(tokens)
        return _emit_value(self._pipeline(tokens, head))

    def _leave(self, tokens: list[Token]) -> Emit:
        head = tokens[0]
        if not self.loops or len(tokens) > 1:
            self.scanner.fail(f"'{head.text}' stands by itself inside 'range'", head.start, tokens[-1].end)

        def leave(dot: object, variables: Variables, out: list[str]) -> None:
            raise _Leave(head.text)

        return leave

    def _assignment(self, tokens: list[Token]) -> Emit:
        """Compile `$x := value`, which declares, or `$x = value`, which changes."""
        name, sign = tokens[0], tokens[1]
        value = self._pipeline(tokens[2:], sign)
        place = self._place(name) if sign.text == ":=" else self.scope.find(name.text)
        if place is None:
            self.scanner.fail(f"unknown variable '{name.text}'", name.start, name.end, "declare it with ':='")

        def assign(dot: object, variables: Variables, out: list[str]) -> None:
            variables[place] = value(dot, variables)

        return assign

    def _place(self, name: Token) -> int:
        """The place of a variable that is declared here."""
        if name.kind != "variable" or len(name.text) < 2 or "." in name.text:
            self.scanner.fail("a variable is written $name", name.start, name.end)
        return self.scope.declare(name.text)

    def _control(self, head: Token, condition: list[Token]) -> Emit:
        """`if`, `range` or `with` up to its `end`. Its variables are visible until then."""
        if self.depth >= NESTING_MAX:
            self.scanner.fail(f"nested deeper than {NESTING_MAX}", head.start, head.end)
        self.scope.visible.append({})
        subject = self._head(head, condition)
        self.loops += head.text == "range"
        body, stop = self._block()
        self.loops -= head.text == "range"
        otherwise = self._otherwise(head, stop)
        self.scope.visible.pop()
        return _CONTROLS[head.text](subject, body, otherwise)

    def _otherwise(self, head: Token, stop: list[Token] | None) -> Emit:
        """The block between `else` and `end`."""
        otherwise = _emit_all([])
        if stop and stop[0].text == "else":
            if len(stop) > 1:
                if stop[1].text not in ("if", "with") or head.text == "range":
                    self.scanner.fail("expected '{{else}}'", stop[1].start, stop[-1].end)
                self.depth += 1
                otherwise = self._control(stop[1], stop[2:])
                self.depth -= 1
                return otherwise
            otherwise, stop = self._block()
        if not stop or stop[0].text != "end":
            self.scanner.fail(f"'{head.text}' without '{{{{end}}}}'", head.start, head.end)
        if len(stop) > 1:
            self.scanner.fail("expected '{{end}}'", stop[1].start, stop[-1].end)
        return otherwise

    def _head(self, head: Token, tokens: list[Token]) -> _Head:
        """The head `value` or `$x := value`; for `range` also `$i, $x := value`."""
        sign = next((index for index, token in enumerate(tokens) if token.is_sign(":=")), None)
        if sign is None:
            return _Head(self._pipeline(tokens, head))
        value = self._pipeline(tokens[sign + 1 :], tokens[sign])
        names = tokens[:sign:2]
        if len(names) > (2 if head.text == "range" else 1) or not all(
            t.is_sign(",") for t in tokens[1:sign:2]
        ):
            self.scanner.fail(
                f"'{head.text}' declares other variables",
                tokens[0].start,
                tokens[sign].end,
                "write {{range $index, $item := .list}}",
            )
        return _Head(value, [self._place(name) for name in names])

    def _pipeline(self, tokens: list[Token], head: Token) -> Evaluate:
        if not tokens:
            self.scanner.fail(f"'{head.text}' needs a value", head.start, head.end)
        return Expression(self.scanner, self.scope, tokens).whole()


# --- run time -----------------------------------------------------------------------------------------------


def _emit_text(text: str) -> Emit:
    return lambda dot, variables, out: out.append(text)


def _emit_value(value: Evaluate) -> Emit:
    return lambda dot, variables, out: out.append(print_value(value(dot, variables)))


def _emit_all(emits: list[Emit]) -> Emit:
    def run(dot: object, variables: Variables, out: list[str]) -> None:
        for emit in emits:
            emit(dot, variables, out)

    return run


def _emit_if(head: _Head, body: Emit, otherwise: Emit) -> Emit:
    def run(dot: object, variables: Variables, out: list[str]) -> None:
        value = head.value(dot, variables)
        head.assign(variables, value)
        (body if is_true(value) else otherwise)(dot, variables, out)

    return run


def _emit_with(head: _Head, body: Emit, otherwise: Emit) -> Emit:
    def run(dot: object, variables: Variables, out: list[str]) -> None:
        value = head.value(dot, variables)
        head.assign(variables, value)
        if is_true(value):
            body(value, variables, out)
        else:
            otherwise(dot, variables, out)

    return run


def _emit_range(head: _Head, body: Emit, otherwise: Emit) -> Emit:
    def run(dot: object, variables: Variables, out: list[str]) -> None:
        values = head.value(dot, variables)
        if not is_true(values):
            otherwise(dot, variables, out)
            return
        for key, value in _items(values):
            head.assign(variables, key, value)
            try:
                body(value, variables, out)
            except _Leave as leave:
                if not leave.goes_on:
                    return

    return run


def _items(values: object) -> list[tuple[Any, Any]]:
    """Pairs of index or key and value. Go walks a map in the order of its keys."""
    if isinstance(values, dict):
        return sorted(values.items())
    if not isinstance(values, list | tuple):
        raise DataError(f"template: range needs a list, not a {kind_of(values)}")
    return list(enumerate(values))


_CONTROLS: dict[str, Callable[[_Head, Emit, Emit], Emit]] = {
    "if": _emit_if,
    "with": _emit_with,
    "range": _emit_range,
}

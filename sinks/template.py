"""Go templates, the part that eKuiper rules use, compiled once to Python functions.

Covered: text, `{{.field}}`, `{{.a.b}}`, `{{.}}`, `{{$}}`, `{{range}}`, `{{if}}`, `{{with}}`, `{{else}}`, `{{else if}}`,
`{{end}}`, comments, trim markers, pipes, parentheses, literals and the functions of `sinks.template_functions`.
Everything else is an error with a position when the rule is loaded. Differences from Go, both on purpose: a NULL or
absent field prints `null` (Go: `<no value>`), and lists and objects print as JSON (Go: `map[a:1]`), so that output
stays JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from sinks.template_functions import FUNCTIONS, LAZY, check_arguments, is_true, print_value, step_into
from sql.errors import DataError, Problem, Span, did_you_mean, render

Evaluate = Callable[[Any, Any], Any]
"""A compiled expression: takes the dot and the root, gives a value."""

Emit = Callable[[Any, Any, list[str]], None]
"""A compiled piece of template: takes the dot, the root and the list of texts to append to."""

TEMPLATE_CHARS_MAX = 64 * 1024
NESTING_MAX = 32

_ACTION = re.compile(r"\{\{(-(?=\s))?(.*?)((?<=\s)-)?\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
  | (?P<number>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)
  | (?P<path>\$?(?:\.[^\W\d]\w*)+|\$(?!\w)|\.)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign>[()|])
    )""",
    re.VERBOSE,
)
_BLOCKS = ("if", "range", "with")


class TemplateError(ValueError):
    """The template cannot be accepted. `problem.span` counts characters of the template."""

    def __init__(self, problem: Problem, text: str) -> None:
        super().__init__(render(problem, text, "template"))
        self.problem = problem


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Template:
    """A compiled template; `render(data)` gives the text and may be called from any thread.

    >>> Template("{{.dev}}: {{printf \\"%.1f\\" .temp}}").render({"dev": "a", "temp": 21.46})
    'a: 21.5'
    >>> Template("{{range .}}<{{.n}}>{{else}}none{{end}}").render([{"n": 1}, {"n": 2}])
    '<1><2>'
    """

    __slots__ = ("_emit", "text")

    def __init__(self, text: str) -> None:
        """Compile; raises `TemplateError`."""
        self.text = text
        self._emit = _Parser(text).parse()

    def render(self, data: Any) -> str:
        """Fill in `data` (the row, or the list of rows). Raises `sql.errors.DataError` if the data do not fit."""
        out: list[str] = []
        self._emit(data, data, out)
        return "".join(out)


class _Parser:
    """Recursive descent over the pieces of a template: text and actions in turn."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > TEMPLATE_CHARS_MAX:
            self.fail(f"template of {len(text)} characters; at most {TEMPLATE_CHARS_MAX} are allowed", 0, 0)
        self.pieces = list(self._split())
        self.position = 0
        self.depth = 0

    def fail(self, message: str, start: int, end: int, hint: str | None = None) -> NoReturn:
        raise TemplateError(Problem("K101", message, Span(start, end), hint), self.text)

    def _split(self) -> Iterable[str | list[_Token]]:
        """Texts and tokenised actions, with comments dropped and trim markers applied."""
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

    def _tokens(self, body: str, start: int, match: re.Match[str]) -> list[_Token]:
        tokens = []
        offset, stop = start, start + len(body.rstrip())
        while offset < stop:
            found = _TOKEN.match(self.text, offset, stop)
            if not found or not found.lastgroup:
                at = stop - len(self.text[offset:stop].lstrip())
                hint = "variables cannot be declared; use '.field' or '$.field'" if self.text[at] in "$:=" else None
                self.fail(f"unexpected {self.text[at:stop]!r} in an action", at, stop, hint)
            kind = found.lastgroup
            tokens.append(_Token(kind, found[kind], found.start(kind)))
            offset = found.end()
        if not tokens:
            self.fail("empty action", match.start(), match.end())
        return tokens

    def parse(self) -> Emit:
        body, stop = self.block()
        if stop is not None:
            self.fail(f"'{stop[0].text}' without 'if', 'range' or 'with'", stop[0].start, stop[0].end)
        return body

    def block(self) -> tuple[Emit, list[_Token] | None]:
        """Everything up to `else` or `end` (returned, already consumed) or the end of the text (None)."""
        self.depth += 1
        emits: list[Emit] = []
        while self.position < len(self.pieces):
            piece = self.pieces[self.position]
            self.position += 1
            if isinstance(piece, str):
                if piece:
                    emits.append(_emit_text(piece))
                continue
            head = piece[0]
            if head.kind == "word" and head.text in ("else", "end"):
                self.depth -= 1
                return _emit_all(emits), piece
            if head.kind == "word" and head.text in _BLOCKS:
                emits.append(self.control(head, piece[1:]))
            else:
                emits.append(_emit_value(self.pipeline(piece, head)))
        self.depth -= 1
        return _emit_all(emits), None

    def control(self, head: _Token, condition: list[_Token]) -> Emit:
        """`if`, `range` or `with` up to its `end`."""
        if self.depth >= NESTING_MAX:
            self.fail(f"nested deeper than {NESTING_MAX}", head.start, head.end)
        value = self.pipeline(condition, head)
        body, stop = self.block()
        otherwise = _emit_all([])
        if stop and stop[0].text == "else":
            if len(stop) > 1:
                if stop[1].text != "if" or head.text == "range":
                    self.fail("expected '{{else}}'", stop[1].start, stop[-1].end)
                self.depth += 1
                otherwise = self.control(stop[1], stop[2:])
                self.depth -= 1
                return _CONTROLS[head.text](value, body, otherwise)
            otherwise, stop = self.block()
        if not stop or stop[0].text != "end":
            self.fail(f"'{head.text}' without '{{{{end}}}}'", head.start, head.end)
        if len(stop) > 1:
            self.fail("expected '{{end}}'", stop[1].start, stop[-1].end)
        return _CONTROLS[head.text](value, body, otherwise)

    def pipeline(self, tokens: list[_Token], head: _Token) -> Evaluate:
        if not tokens:
            self.fail(f"'{head.text}' needs a value", head.start, head.end)
        return _Expression(self, tokens).whole()


class _Expression:
    """Parses one pipeline: commands joined by `|`, each passing its value as the last argument of the next."""

    def __init__(self, parser: _Parser, tokens: list[_Token]) -> None:
        self.parser = parser
        self.tokens = tokens
        self.position = 0

    def whole(self) -> Evaluate:
        value = self.pipes(0)
        if self.position < len(self.tokens):
            self.fail(f"unexpected {self.tokens[self.position].text!r}", self.tokens[self.position])
        return value

    def fail(self, message: str, token: _Token, hint: str | None = None) -> NoReturn:
        self.parser.fail(message, token.start, token.end, hint)

    def peek(self) -> _Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def at(self, sign: str) -> bool:
        token = self.peek()
        return token is not None and token.kind == "sign" and token.text == sign

    def pipes(self, depth: int) -> Evaluate:
        value = self.command(None, depth)
        while self.at("|"):
            self.position += 1
            value = self.command(value, depth)
        return value

    def command(self, piped: Evaluate | None, depth: int) -> Evaluate:
        """A function with its arguments, or a single operand."""
        token = self.peek()
        if token is None:
            self.fail("value expected", self.tokens[-1])
        if token.kind == "word" and token.text not in ("true", "false", "nil"):
            self.position += 1
            arguments = []
            while (following := self.peek()) is not None and not (following.kind == "sign" and following.text in "|)"):
                arguments.append(self.operand(depth))
            return self.call(token, arguments, piped)
        if piped is not None:
            self.fail(f"{token.text!r} is no function, so nothing can be piped into it", token)
        value = self.operand(depth)
        extra = self.peek()
        if extra is not None and not (extra.kind == "sign" and extra.text in "|)"):
            self.fail(f"unexpected {extra.text!r}", extra)
        return value

    def call(self, name: _Token, arguments: list[Evaluate], piped: Evaluate | None) -> Evaluate:
        if name.text not in FUNCTIONS and name.text not in LAZY:
            known = [*FUNCTIONS, *LAZY, *_BLOCKS]
            hint = did_you_mean(name.text, known) or f"functions are {', '.join(sorted([*FUNCTIONS, *LAZY]))}"
            self.fail(f"unknown function {name.text!r}", name, hint)
        values = [*arguments, piped] if piped is not None else arguments
        first = self.tokens[self.tokens.index(name) + 1] if arguments else None
        literal = _unquote(first.text) if first is not None and first.kind == "string" else None
        if wrong := check_arguments(name.text, len(values), literal):
            self.fail(wrong, name)
        if name.text in LAZY:
            return _call_lazily(values, stop_at=LAZY[name.text])
        function = FUNCTIONS[name.text].apply
        return lambda dot, root: function(*[value(dot, root) for value in values])

    def operand(self, depth: int) -> Evaluate:
        token = self.peek()
        if token is None:
            self.fail("value expected", self.tokens[-1])
        self.position += 1
        if token.kind == "path":
            return _path(token.text)
        if token.kind == "string":
            return _constant(_unquote(token.text))
        if token.kind == "number":
            return _constant(json.loads(token.text.lstrip("+")))
        if token.kind == "word" and token.text in ("true", "false", "nil"):
            return _constant({"true": True, "false": False, "nil": None}[token.text])
        if token.kind == "word":
            return self.call(token, [], None)
        if token.text != "(" or depth >= NESTING_MAX:
            self.fail(f"unexpected {token.text!r}", token)
        value = self.pipes(depth + 1)
        if not self.at(")"):
            self.fail("'(' without ')'", token)
        self.position += 1
        return value


def _unquote(text: str) -> str:
    """The characters of a Go string literal."""
    if text.startswith("`"):
        return text[1:-1]
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]


def _constant(value: Any) -> Evaluate:
    return lambda dot, root: value


def _path(text: str) -> Evaluate:
    """`.`, `.a.b`, `$` or `$.a.b`."""
    from_root = text.startswith("$")
    names = [name for name in text.lstrip("$").split(".") if name]
    if not names:
        return (lambda dot, root: root) if from_root else (lambda dot, root: dot)

    def walk(dot: Any, root: Any) -> Any:
        value = root if from_root else dot
        for name in names:
            value = step_into(value, name)
        return value

    return walk


def _call_lazily(values: list[Evaluate], *, stop_at: bool) -> Evaluate:
    """`and` and `or`: the first argument whose truth is `stop_at`, else the last one."""

    def choose(dot: Any, root: Any) -> Any:
        result = None
        for value in values:
            result = value(dot, root)
            if is_true(result) is stop_at:
                break
        return result

    return choose


def _emit_text(text: str) -> Emit:
    return lambda dot, root, out: out.append(text)


def _emit_value(value: Evaluate) -> Emit:
    return lambda dot, root, out: out.append(print_value(value(dot, root)))


def _emit_all(emits: list[Emit]) -> Emit:
    def run(dot: Any, root: Any, out: list[str]) -> None:
        for emit in emits:
            emit(dot, root, out)

    return run


def _emit_if(condition: Evaluate, body: Emit, otherwise: Emit) -> Emit:
    return lambda dot, root, out: (body if is_true(condition(dot, root)) else otherwise)(dot, root, out)


def _emit_with(subject: Evaluate, body: Emit, otherwise: Emit) -> Emit:
    def run(dot: Any, root: Any, out: list[str]) -> None:
        value = subject(dot, root)
        if is_true(value):
            body(value, root, out)
        else:
            otherwise(dot, root, out)

    return run


def _emit_range(items: Evaluate, body: Emit, otherwise: Emit) -> Emit:
    def run(dot: Any, root: Any, out: list[str]) -> None:
        values = items(dot, root)
        if not is_true(values):
            otherwise(dot, root, out)
            return
        # Go walks a map in the order of its keys.
        for value in [values[key] for key in sorted(values)] if isinstance(values, dict) else _as_list(values):
            body(value, root, out)

    return run


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise DataError(f"template: range needs a list, not {type(value).__name__}")
    return list(value)


_CONTROLS: dict[str, Callable[[Evaluate, Emit, Emit], Emit]] = {
    "if": _emit_if,
    "with": _emit_with,
    "range": _emit_range,
}

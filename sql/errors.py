"""Positions and problems: the errors of the engine, each with its place in the text.

The engine holds its text only as a string, so a `Span` is a pair of offsets into that string. The reader of
the file (`rules.source`) turns offsets into file, line and column. Nothing here does I/O.

Two families, never mixed:

* `SqlError` — the text is wrong. Carries *all* problems found, each positioned. Raised before anything runs.
* `DataError` — one event is wrong. Counted and handed to the rule's error action; the rule goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sql.record import Record

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of character offsets into the source text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))

    def holds(self, other: Span) -> bool:
        """True if the other one lies in it, or is equal."""
        return self.start <= other.start and other.end <= self.end


NOWHERE = Span(0, 0)


class Problem(Record):
    """One thing wrong with a text: a stable code, a sentence, where, and how to mend it."""

    beside = frozenset()

    code: str
    message: str
    span: Span = NOWHERE
    hint: str | None = None
    severity: Severity = "error"


class SqlError(Exception):
    """A statement cannot be accepted. Holds every problem found, in order of position."""

    def __init__(self, problems: Iterable[Problem], text: str = "") -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.span))
        self.text = text
        super().__init__("\n".join(render(problem, text) for problem in self.problems))

    @classmethod
    def of(cls, code: str, message: str, span: Span, hint: str | None = None, *, text: str = "") -> SqlError:
        """The error of a statement with one problem."""
        return cls([Problem(code, message, span, hint)], text)


class DataError(Exception):
    """One event cannot be evaluated: a wrong type, an overflow, a value out of domain.
    `span`: the place in the text, where the message does not name it."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.span = span

    def at(self, span: Span) -> DataError:
        """The same error with its place in the text."""
        return DataError(str(self), span)


class CorruptState(Exception):
    """A snapshot does not fit the plan that tries to restore it."""


@dataclass(slots=True)
class Problems:
    """Collects problems while a pass goes on, so that one run reports them all."""

    found: list[Problem] = field(default_factory=list)

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.found.append(Problem(code, message, span, hint))

    def warn(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.found.append(Problem(code, message, span, hint, "warning"))

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.found if problem.severity == "error"]

    def has(self, code: str) -> bool:
        """True if an error with this code has been found."""
        return any(problem.code == code for problem in self.errors)

    def raise_if_any(self, text: str) -> None:
        """Raise `SqlError` when at least one problem is an error."""
        if self.errors:
            raise SqlError(_causes(self.found), text)


def _causes(problems: Sequence[Problem]) -> list[Problem]:
    """The problems without errors that others may have caused: one about a whole beside those of its parts,
    and all but the first about one part."""
    found: list[Problem] = []
    for place, problem in enumerate(problems):
        others = [other.span for other in problems[:place] if other.severity == "error"]
        later = [other.span for other in problems[place + 1 :] if other.severity == "error"]
        holds = any(problem.span.holds(span) for span in others)
        holds |= any(problem.span != span and problem.span.holds(span) for span in later)
        if problem.severity == "warning" or not holds:
            found.append(problem)
    return found


Fail = Callable[[Any, BaseException], None]
"""Takes what cannot be evaluated, a row or None where it is no row's, and the error."""


def raised(row: object, error: BaseException) -> None:
    """Raise the error of a row where nothing reports it."""
    raise error


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of an offset into `text`.

    >>> line_and_column("ab\\ncd", 4)
    (2, 2)
    """
    offset = max(0, min(offset, len(text)))
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def render(problem: Problem, text: str, path: str = "<sql>") -> str:
    """The problem as a person reads it: `path:line:col: CODE message`, the source line, a caret, the hint."""
    line, column = line_and_column(text, problem.span.start)
    lines = text.split("\n")
    source = lines[line - 1] if line <= len(lines) else ""
    width = max(1, min(problem.span.end - problem.span.start, len(source) - column + 1))
    parts = [f"{path}:{line}:{column}: {problem.code} {problem.message}"]
    if source.strip():
        caret = "".join("\t" if char == "\t" else " " for char in source[: column - 1]) + "^" * width
        parts += [f"    {source}", f"    {caret}"]
    if problem.hint:
        parts.append(f"hint: {problem.hint}")
    return "\n".join(parts)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint naming the nearest known word, or None when nothing is near.

    >>> did_you_mean("tmp", ["temp", "dev"])
    "did you mean 'temp'?"
    """
    nearest = closest(name, known)
    return None if nearest is None else f"did you mean '{nearest}'?"


def shortened(text: str, length: int = 40) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest to a name; None where none is near."""
    from difflib import get_close_matches  # only for texts that are wrong

    names = {str(word).lower(): str(word) for word in known}
    close = get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return names[close[0]] if close else None


_PYTHON_NAMES = {
    "str": "string",
    "int": "bigint",
    "NoneType": "NULL",
    "bool": "boolean",
    "list": "array",
    "dict": "struct",
}


_TYPE_ERRORS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        # `a | b` of two structs fails at the False that follows it (`sql.codegen.operators`).
        (r"unsupported operand type\(s\) for \|: '(dict)' and 'bool'", "'|' takes numbers, not {0}"),
        (
            r"unsupported operand type\(s\) for (\S+): '(\w+)' and '(\w+)'",
            "'{0}' takes numbers, not {1} and {2}",
        ),
        (
            r"'(\S+)' not supported between instances of '(\w+)' and '(\w+)'",
            "'{0}' cannot compare {1} with {2}",
        ),
        (r"bad operand type for unary \+: '(\w+)'", "arithmetic takes numbers, not {0}"),
        (r"bad operand type for unary (\S+): '(\w+)'", "'{0}' takes a number, not {1}"),
        (r"can only concatenate (\w+) .*", "arithmetic takes numbers, not {0}"),
        (r"must be real number, not (\w+)", "arithmetic takes numbers, not {0}"),
    )
)
"""Python's messages for operands that do not fit, with the sentence for an author of SQL."""


def _in_words(error: BaseException) -> str:
    if isinstance(error, OverflowError):
        return "a result is outside the range of floats, or of dates"
    reason = str(error)
    for pattern, words in _TYPE_ERRORS:
        if match := pattern.fullmatch(reason):
            return words.format(*(_PYTHON_NAMES.get(name, name) for name in match.groups()))
    return reason


def positioned(error: BaseException, span: Span, text: str = "") -> DataError:
    """A `DataError` for an exception raised while evaluating the expression at `span` of `text`."""
    reason = str(error) if isinstance(error, DataError) else _in_words(error)
    if not text:
        return DataError(reason, span)
    line, column = line_and_column(text, span.start)
    return DataError(f"{line}:{column}: cannot evaluate {text[span.start : span.end]}: {reason}")


def over_max_groups(limit: int) -> DataError:
    """The reason why an event of one more group is refused."""
    return DataError(f"more than {limit} groups; raise maxGroups (maxKeys of the stream) or group coarser")

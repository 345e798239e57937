"""A document being read, and its contents: rules, streams and tests with their place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from rules import streams
from rules.contexts import Context
from rules.model import Action, Rule
from rules.options import Options
from rules.problems import FileProblem, FileText, Report
from rules.scenario import Test
from rules.secrets import Secrets
from rules.source import scalars
from rules.source.document import Document, Path
from rules.tables import Table
from rules.validation import describe, validate
from sql import record
from sql.errors import Problem, Span
from sql.syntax import CreateExpression, CreateStream


@dataclass(slots=True)
class Reading:
    """A document being read: its problems, and its source of secrets."""

    document: Document
    report: Report
    secrets: Secrets = field(repr=False)

    @property
    def text(self) -> FileText:
        return self.document.text

    def without_text(self) -> Reading:
        """The same file, of which only the path is known."""
        text = FileText(self.text.path, "")
        return Reading(Document(text, None, {}), Report(text, []), Secrets(env={}))

    def problem_at(self, problem: Problem, span: Span) -> FileProblem:
        """A problem of the engine at a range of the file."""
        return self.text.problem(problem.code, problem.message, span, problem.hint, severity=problem.severity)

    def sql_problem(self, problem: Problem, path: Path) -> FileProblem:
        """A problem with a span in the SQL text at `path`, positioned in the file."""
        return self.problem_at(problem, self.sql_span(problem.span, path))

    def sql_span(self, span: Span, path: Path) -> Span:
        """The range of the file for a range of the SQL text at `path`."""
        value = self._text_at(path)
        place = self.document.places.get(path)
        if value is None or place is None:
            return self.document.value_span(path)
        marks = scalars.offsets(self.text.text, place, value)
        start = marks[max(0, min(span.start, len(value)))]
        last = max(span.start, span.end - 1)
        return Span(start, max(start + 1, marks[min(last, len(value))] + (last < len(value))))

    def _text_at(self, path: Path) -> str | None:
        value = self.document.data
        try:
            for part in path:
                value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
        return value if isinstance(value, str) else None


@dataclass(slots=True, eq=False)
class LoadedRule:
    """A rule with its validated actions and its place. Secrets are in the actions' settings only.

    One that is not `usable` has errors, which are reported: its query is checked as
    well, but it must not run.
    """

    id: str
    rule: Rule
    actions: tuple[Action, ...]
    late: tuple[Action, ...]
    error: tuple[Action, ...]
    path: Path
    reading: Reading = field(repr=False)
    usable: bool = True

    @property
    def sql(self) -> str:
        return self.rule.sql

    @property
    def options(self) -> Options:
        return self.rule.options

    @property
    def all_actions(self) -> tuple[Action, ...]:
        """The actions for results, for late events and for errors."""
        return (*self.actions, *self.late, *self.error)

    @property
    def is_of_fleet(self) -> bool:
        """True if the rule runs in the cloud, over the events of all gateways, and not here."""
        return self.rule.scope == "fleet"

    @property
    def starts_here(self) -> bool:
        """True if a gateway starts the rule."""
        return self.rule.triggered and not self.is_of_fleet

    def without_text(self) -> LoadedRule:
        """The same rule without the text of its file."""
        return replace(self, reading=self.reading.without_text())

    @property
    def name_span(self) -> Span:
        """The span of the rule's id."""
        if (*self.path, "id") in self.reading.document.places:
            return self.reading.document.value_span((*self.path, "id"))
        return self.reading.document.key_span(self.path)


@dataclass(slots=True, eq=False)
class LoadedStream:
    """A stream's statement and its place. `made` is the text written for a mapping;
    None for a text of the file.

    One that is not `usable` has errors, which are reported; it is kept so that its rules can be checked.
    """

    name: str
    statement: CreateStream
    path: Path
    name_span: Span
    reading: Reading = field(repr=False)
    made: streams.Statement | None = field(default=None, repr=False)
    usable: bool = True

    def problem(self, problem: Problem) -> FileProblem:
        """A problem whose span counts in the statement's text, at its place in the file."""
        if self.made is None:
            return self.reading.sql_problem(problem, self.path)
        document, path = self.reading.document, self.made.path_at(problem.span.start)
        known = path is not None and path in document.places
        return self.reading.problem_at(
            problem, document.value_span(path) if known and path else self.name_span
        )

    def option_problem(self, option: str, problem: Problem) -> FileProblem:
        """A problem with an option of the statement, at the option if it is written, else where it begins."""
        spans = (written.span for written in self.statement.options if written.key.upper() == option)
        start = self.statement.span.start
        return self.problem(record.replace(problem, span=next(spans, Span(start, start + 1))))


Declaration = TypeVar("Declaration")
Form = TypeVar("Form", bound=BaseModel)


@dataclass(slots=True, eq=False)
class Declared(Generic[Declaration]):
    """A declaration of a file, with its name and its place. `path` leads to its text."""

    name: str
    declaration: Declaration
    path: Path
    name_span: Span
    reading: Reading = field(repr=False)


LoadedContext = Declared[Context]
LoadedTable = Declared[Table]
"""A table or a named window."""
LoadedExpression = Declared[CreateExpression]


@dataclass(slots=True, eq=False)
class LoadedTest:
    """A test and its place. `nested_in` is the rule it stands in, if it does."""

    test: Test
    path: Path
    reading: Reading = field(repr=False)
    nested_in: LoadedRule | None = None


def items(reading: Reading, data: object, path: Path, what: str) -> Iterator[tuple[Path, Any, str | None]]:
    """Path, data and (in a mapping) name of each member of a list or mapping."""
    if isinstance(data, dict):
        yield from (((*path, key), item, key) for key, item in data.items())
    elif isinstance(data, list):
        yield from (((*path, number), item, None) for number, item in enumerate(data))
    elif data is not None:
        reading.report.error(
            "R103",
            f"'{path[-1]}' must be a list or a mapping of {what}, not {describe(data)}",
            reading.document.value_span(path),
        )


def named(reading: Reading, data: object, key: str, what: str) -> dict[str, Any]:
    """The members of the mapping of names under a key of the file; none, and a problem, for other data."""
    if isinstance(data, dict):
        return data
    if data is not None:
        message = f"'{key}' must be a mapping of names to {what}, not {describe(data)}"
        reading.report.error("R103", message, reading.document.value_span((key,)))
    return {}


def declared(reading: Reading, model: type[Form], item: object, path: Path) -> Declared[Form] | None:
    """A declaration that is its text alone, or a mapping with the text under `sql`; None, and problems, if it
    is not valid."""
    document, is_text = reading.document, isinstance(item, str)
    found = validate(model, {"sql": item} if is_text else item, document, path, reading.report)
    if found is None:
        return None
    text_path = path if is_text else (*path, "sql")
    return Declared(str(path[-1]), found, text_path, document.key_span(path), reading)

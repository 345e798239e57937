"""Build the engine's catalog from the streams and variables of all files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rules.compiled import CompiledTable
from rules.loader import Loaded, LoadedFile
from rules.problems import FileProblem
from rules.read import tables as read_tables
from rules.read.contexts import bind, warnings_of
from rules.read.reading import LoadedExpression, LoadedStream, LoadedTable
from sql.binder.rule import plan_lookup
from sql.binder.statements.declarations import declare_expression
from sql.catalog.streams import Catalog, Stream, Variable
from sql.errors import Problem, SqlError
from sql.plan.options import RuleOptions
from sql.plan.relation_plan import RelationPlan
from sql.types import type_of


def build_catalog(loaded: Loaded) -> tuple[Catalog, list[FileProblem]]:
    """The catalog, and the problems of the streams asked for (a neighbour's problems are reported when that
    file is checked).

    A stream with errors is declared without columns, so that its rules report no problems of their own for
    it.
    """
    catalog = Catalog()
    problems: list[FileProblem] = []
    for file, reported in _files(loaded):
        for stream in file.streams:
            found = _define(catalog, stream)
            problems += found if reported else []
        for name, value in file.variables.items():
            catalog.variables[name] = Variable(name, type_of(value), value)
        for expression in file.expressions:
            found = _declare(catalog, expression)
            problems += found if reported else []
    return catalog, problems


def _files(loaded: Loaded) -> Iterator[tuple[LoadedFile, bool]]:
    """All files, neighbours first; whether the problems of each are reported."""
    yield from ((file, False) for file in loaded.context)
    yield from ((file, True) for file in loaded.files)


def _declare(catalog: Catalog, item: LoadedExpression) -> list[FileProblem]:
    """Declare an expression; it may call those declared before it."""
    try:
        declare_expression(catalog, item.declaration, item.declaration.text)
    except SqlError as error:
        return [item.reading.sql_problem(problem, item.path) for problem in error.problems]
    return []


class Contexts:
    """The contexts of all files, declared as soon as the streams they read are known."""

    def __init__(self, loaded: Loaded, catalog: Catalog, zone: str) -> None:
        self.catalog = catalog
        self.zone = zone
        self.pending = [(item, reported) for file, reported in _files(loaded) for item in file.contexts]
        self._written = _written(loaded, "contexts")

    @property
    def in_error(self) -> set[str]:
        """The names of contexts that stand in a file and are not declared, for they have errors."""
        return self._written - self.catalog.contexts.keys()

    def declare(self) -> list[FileProblem]:
        """Declare the contexts that can be declared; the problems of the files asked for."""
        problems: list[FileProblem] = []
        rest = []
        for item, reported in self.pending:
            try:
                plan = self.catalog.contexts[item.name] = bind(item, self.catalog, self.zone)
                found = [item.reading.sql_problem(problem, item.path) for problem in warnings_of(plan)]
            except SqlError as error:
                rest.append((item, reported))
                found = [item.reading.sql_problem(problem, item.path) for problem in error.problems]
            problems += found if reported else []
        self.pending = rest
        return problems


def _written(loaded: Loaded, key: str) -> set[str]:
    """The names under a key of all files, also of what could not be read."""
    documents = [file.document.data for file, _ in _files(loaded) if file.document is not None]
    named = [data.get(key) for data in documents if isinstance(data, dict)]
    return {str(name) for names in named if isinstance(names, dict) for name in names}


class DeclaredTables:
    """The tables and named windows of all files, declared as soon as the streams and
    contexts they name are known."""

    def __init__(self, loaded: Loaded, catalog: Catalog, zone: str) -> None:
        self.catalog = catalog
        self.zone = zone
        self.planned: dict[str, CompiledTable] = {}
        self._written = _written(loaded, "tables")
        self.pending: list[tuple[LoadedTable | LoadedStream, bool]] = []
        for file, reported in _files(loaded):
            self.pending += [(item, reported) for item in file.tables]
            self.pending += [(item, reported) for item in file.streams if self._is_lookup(item)]

    @property
    def in_error(self) -> set[str]:
        """The names of tables that stand in a file and are not declared, for they have errors."""
        return self._written - self.catalog.streams.keys() - self.planned.keys()

    def _is_lookup(self, stream: LoadedStream) -> bool:
        known = self.catalog.streams.get(stream.name)
        return stream.usable and known is not None and known.kind == "lookup"

    def declare(self) -> list[FileProblem]:
        """Declare the tables that can be declared; the problems of the files asked for."""
        problems: list[FileProblem] = []
        rest = []
        for item, reported in self.pending:
            try:
                self.planned[item.name] = CompiledTable(item.reading.text.path, self._bound(item))
            except SqlError as error:
                rest.append((item, reported))
                problems += [_problem(item, problem) for problem in error.problems] if reported else []
        self.pending = rest
        return problems

    def _bound(self, item: LoadedTable | LoadedStream) -> RelationPlan:
        if isinstance(item, LoadedStream):
            return plan_lookup(item.statement, item.statement.text, self.catalog, RuleOptions(zone=self.zone))
        return read_tables.bind(item, self.catalog, self.zone)


def _problem(item: LoadedTable | LoadedStream, problem: Problem) -> FileProblem:
    if isinstance(item, LoadedStream):
        return item.problem(problem)
    return item.reading.sql_problem(problem, item.path)


def _define(catalog: Catalog, stream: LoadedStream) -> list[FileProblem]:
    options: dict[str, Any] = {option.key.upper(): option.value for option in stream.statement.options}
    schemaless = Stream(stream.name, None, options.get("TIMESTAMP"), options.get("TIMESTAMP_FORMAT"), options)
    if not stream.usable:
        catalog.add(schemaless)
        return []
    try:
        catalog.define(stream.statement)
    except SqlError as error:
        catalog.add(schemaless)
        return [stream.problem(problem) for problem in error.problems]
    return []

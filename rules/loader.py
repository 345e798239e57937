"""Load rule files: a file gives rules, streams, tests and problems.

`load_file` never raises for the content of a file; each error is a problem with a position. Valid parts are
still loaded, so that all problems of a file show at once. The caller decides if a file with errors may run
(`LoadedFile.ok`); the gateway keeps the last good version instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os.path import realpath
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import TypeVar

from rules.model import Variable
from rules.problems import FileProblem, Report, in_order
from rules.read import contexts as read_contexts
from rules.read import rules as read_rules
from rules.read import streams as read_streams
from rules.read import tables as read_tables
from rules.read.reading import (
    LoadedContext,
    LoadedExpression,
    LoadedRule,
    LoadedStream,
    LoadedTable,
    LoadedTest,
    Reading,
)
from rules.secrets import Secrets
from rules.source.directory import MANAGED, SUFFIXES, file_name, rule_files
from rules.source.document import Document
from rules.source.yaml_source import Kind, read_file, read_text

__all__ = [
    "MANAGED",
    "SUFFIXES",
    "Loaded",
    "LoadedFile",
    "file_name",
    "load_directory",
    "load_file",
    "load_paths",
    "load_text",
    "owners_of",
    "rule_files",
    "unite",
]


@dataclass(slots=True)
class LoadedFile:
    """One rule file. `path` names it in problems."""

    path: str
    streams: list[LoadedStream] = field(default_factory=list)
    rules: list[LoadedRule] = field(default_factory=list)
    tests: list[LoadedTest] = field(default_factory=list)
    contexts: list[LoadedContext] = field(default_factory=list)
    tables: list[LoadedTable] = field(default_factory=list)
    expressions: list[LoadedExpression] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    problems: list[FileProblem] = field(default_factory=list)
    document: Document | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """True if there are no errors; there may be notes."""
        return not any(problem.is_error for problem in self.problems)


@dataclass(slots=True)
class Loaded:
    """Files that belong together: names are unique among them.

    `context` holds neighbours of the files asked for: only their streams, tables, contexts, expressions
    and variables count.
    """

    files: list[LoadedFile]
    context: list[LoadedFile] = field(default_factory=list)

    @property
    def problems(self) -> list[FileProblem]:
        """The problems of the files asked for, by position."""
        return in_order(problem for file in self.files for problem in file.problems)

    @property
    def rules(self) -> list[LoadedRule]:
        return [rule for file in self.files for rule in file.rules]


def load_file(path: FilePath, *, secrets: Secrets | None = None, below: FilePath | None = None) -> LoadedFile:
    """Load one file.

    `below`: it must be a regular file below this directory, not a link that leads out of it, else its text is
    not read.
    """
    shown = str(path)
    if below is not None and path.is_dir():
        return LoadedFile(shown, problems=[_folder(shown)])
    if below is not None and (reason := _refused_in(below, path)):
        problem = FileProblem(shown, 0, 0, "R002", reason, "put the file itself there")
        return LoadedFile(shown, problems=[problem])
    document, problems = read_file(path, shown)
    return _loaded(shown, document, problems, secrets)


def _folder(shown: str) -> FileProblem:
    """The note about a directory that has the name of a rule file."""
    message, hint = "is a directory: what is in it is not read", "put its files beside it, or rename it"
    return FileProblem(shown, 0, 0, "R002", message, hint, "warning")


def _refused_in(directory: FilePath, path: FilePath) -> str | None:
    """Why a path is no rule file of this directory; None if it is one. Opening a pipe would wait for ever."""
    if path.is_symlink() and not path.exists():
        return "is a link to a file that is not there"
    if not path.resolve().is_relative_to(directory.resolve()):
        return "is a link that leads out of the rule directory"
    if path.exists() and not path.is_file():
        return "is no regular file"
    return None


def load_text(
    text: str, name: str = "<text>", *, secrets: Secrets | None = None, kind: Kind = "yaml"
) -> LoadedFile:
    """Load a text as if it were a file of this name."""
    document, problems = read_text(text, name, kind=kind)
    return _loaded(name, document, problems, secrets)


def load_directory(directory: FilePath) -> Loaded:
    """Load all rule files of a directory, by name; not those below it, nor hidden ones."""
    return unite(load_file(path, below=directory) for path in rule_files(directory))


def load_paths(paths: Iterable[FilePath], *, secrets: Secrets | None = None) -> Loaded:
    """Load files and directories as one set. The neighbours of a single file are its context."""
    asked: dict[FilePath, FilePath | None] = {}
    near: dict[FilePath, FilePath] = {}
    for path in paths:
        if path.is_dir():
            asked.update(dict.fromkeys(rule_files(path), path))
        else:
            asked[path] = None
            near.update(dict.fromkeys(rule_files(path.parent), path.parent))
    known = {realpath(path) for path in asked}
    context = [
        load_file(path, secrets=secrets, below=below)
        for path, below in near.items()
        if realpath(path) not in known
    ]
    loaded = unite(load_file(path, secrets=secrets, below=below) for path, below in asked.items())
    for file in context:
        _leave_out(file, loaded.files)
    loaded.context = context
    return loaded


def _leave_out(file: LoadedFile, others: Iterable[LoadedFile]) -> None:
    """Leave out of a neighbour what the files asked for define themselves."""
    for other in others:
        file.streams = _not_in(file.streams, other.streams)
        file.tables = _not_in(file.tables, other.tables)
        file.contexts = _not_in(file.contexts, other.contexts)
        file.expressions = _not_in(file.expressions, other.expressions)
        file.variables = {
            name: value for name, value in file.variables.items() if name not in other.variables
        }


Named = LoadedRule | LoadedStream | LoadedContext | LoadedTable | LoadedExpression
Shared = TypeVar("Shared", LoadedStream, LoadedContext, LoadedTable, LoadedExpression)
"""What the rules of all files may use."""


def _not_in(items: list[Shared], others: list[Shared]) -> list[Shared]:
    names = {other.name for other in others}
    return [item for item in items if item.name not in names]


Owners = Mapping[tuple[str, str], str]
"""The paths of the files that have defined things so far, by kind and name: `("rule", "hot")`."""


def owners_of(files: Iterable[LoadedFile]) -> Owners:
    """The files that define the rules, streams and tables of these files."""
    return {(what, name): file.path for file in files for what, name, _ in _definitions(file)}


def unite(files: Iterable[LoadedFile], owners: Owners = MappingProxyType({})) -> Loaded:
    """Put files together: a rule id or stream name that is defined twice is an error in one of the files, and
    its rule is left out there. The files themselves are not changed.

    The file that `owners` names has the name as long as it defines it; otherwise the first file has it.
    """
    files = list(files)
    seen: dict[tuple[str, str], Named] = {}
    for file in files:
        for what, name, item in _definitions(file):
            if owners.get((what, name)) == file.path:
                seen.setdefault((what, name), item)
    united = []
    for file in files:
        kept = replace(file, problems=list(file.problems))
        left_out = {
            id(item) for what, name, item in _definitions(file) if not _is_first(what, name, item, seen, kept)
        }
        kept.rules = [rule for rule in file.rules if id(rule) not in left_out]
        kept.streams = [item for item in file.streams if id(item) not in left_out]
        kept.contexts = [item for item in file.contexts if id(item) not in left_out]
        kept.tables = [item for item in file.tables if id(item) not in left_out]
        kept.expressions = [item for item in file.expressions if id(item) not in left_out]
        kept.tests = [test for test in file.tests if test.nested_in is None or test.nested_in in kept.rules]
        kept.problems = in_order(kept.problems)
        united.append(kept)
    return Loaded(united)


def _definitions(file: LoadedFile) -> Iterator[tuple[str, str, Named]]:
    """The definitions of a file, each with its kind and name; a rule without an id is none."""
    yield from (("rule", rule.id, rule) for rule in file.rules if rule.id)
    yield from (("stream", item.name, item) for item in file.streams)
    yield from (("context", item.name, item) for item in file.contexts)
    yield from (("table", item.name, item) for item in file.tables)
    yield from (("expression", item.name, item) for item in file.expressions)


def _is_first(
    what: str, name: str, item: Named, seen: dict[tuple[str, str], Named], file: LoadedFile
) -> bool:
    """True for the first item of a name; reported for others."""
    first = seen.setdefault((what, name), item)
    if first is item:
        return True
    line = first.reading.text.position(first.name_span.start)[0]
    file.problems.append(
        item.reading.text.problem(
            "R106",
            f"the {what} '{name}' is already defined in {first.reading.text.path}:{line}",
            item.name_span,
            f"give the {what} another name",
        )
    )
    return False


def _loaded(
    name: str, document: Document | None, problems: list[FileProblem], secrets: Secrets | None
) -> LoadedFile:
    file = LoadedFile(name, document=document)
    if document is not None:
        reading = Reading(document, Report(document.text, problems), secrets or Secrets())
        _read(file, reading)
    file.problems = in_order(problems)
    return file


def _read(file: LoadedFile, reading: Reading) -> None:
    data = reading.document.data
    if _creates(data):
        file.streams = read_streams.read_texts(reading, data)
        return
    if isinstance(data, list) and data and all(isinstance(item, dict) or _creates(item) for item in data):
        file.streams = read_streams.read_streams(reading, data, (), only=str)
        _add_rules(file, reading, read_rules.read_rules(reading, data, (), only=dict))
        return
    if not isinstance(data, dict):
        reading.report.error(
            "R103",
            "a rule file is a mapping",
            reading.document.value_span(()),
            "begin with 'rules:', with 'id:', 'sql:' and 'actions:', or with CREATE",
        )
        return
    if not read_rules.is_rule_file(data):
        rule = read_rules.read_rule(reading, data, ())
        _add_rules(file, reading, [rule] if rule else [])
        return
    read_rules.check_keys(reading, data)
    file.streams = read_streams.read_streams(reading, data.get("streams"))
    file.tables, outside = read_tables.read_tables(reading, data.get("tables"))
    file.streams = read_streams.each_once(reading, [*file.streams, *outside])
    file.contexts = read_contexts.read_contexts(reading, data.get("contexts"))
    _add_rules(file, reading, read_rules.read_rules(reading, data.get("rules")))
    file.tests += read_rules.read_tests(reading, data.get("tests"), ("tests",))
    file.expressions = read_rules.read_expressions(reading, data.get("expressions"))
    file.variables = read_rules.read_variables(reading, data.get("variables"))


def _creates(data: object) -> bool:
    """True if this is text with CREATE statements, perhaps behind a comment."""
    return isinstance(data, str) and data.lstrip().lower().startswith(("create", "--", "/*"))


def _add_rules(file: LoadedFile, reading: Reading, rules: list[LoadedRule]) -> None:
    file.rules = rules
    for rule in rules:
        file.tests += [
            LoadedTest(test, (*rule.path, "tests", number), reading, rule)
            for number, test in enumerate(rule.rule.tests)
        ]

"""YAML of rule files: a strict subset, read with positions.

    refused    duplicate keys, anchors, aliases, tags, directives, further documents,
               keys that are collections
    scalars    those of YAML 1.2 (`rules.source.scalars`)
    bounded    bytes, depth, number of values (`rules.source.document.Limits`)

The reader walks PyYAML's events, not its nodes: nothing recurses, and a file that expands to billions of
values is refused at its first alias. Both PyYAML back ends, in C and in Python, give the same result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import Any, Literal

import yaml

from rules.problems import FileProblem, FileText, Report, in_words
from rules.source import json_source
from rules.source.document import Builder, Document, Limits, Style, TooMuch
from rules.source.scalars import resolve_plain, was_octal
from sql.errors import Span

_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
Kind = Literal["yaml", "json", "sql"]
"""The format of a rule file."""

_KINDS: dict[str, Kind] = {".json": "json", ".sql": "sql"}
_STYLES: dict[str | None, Style] = {None: "plain", "": "plain", "'": "'", '"': '"', "|": "|", ">": ">"}
_TEXT_TAGS = ("tag:yaml.org,2002:str", "!")


def kind_of(name: str) -> Kind:
    """The format of a file of this name.

    >>> kind_of("a.JSON"), kind_of("b.yml")
    ('json', 'yaml')
    """
    return _KINDS.get(FilePath(name).suffix.lower(), "yaml")


def read_file(
    path: FilePath, name: str, limits: Limits | None = None
) -> tuple[Document | None, list[FileProblem]]:
    """Read a file as YAML, or as JSON by its suffix. Never raises for the content of the file or for its
    absence.

    `name` is the file's name in problems. The document is None when the text is not readable to the end.
    """
    limits = limits or Limits()
    try:
        content = _content(path, limits.file_bytes_max + 1)
    except OSError as error:
        reason = f"cannot be read: {in_words(error, with_file=False)}"
        return None, [FileProblem(name, 0, 0, "R002", reason)]
    if not content and path.is_fifo():
        reason = "is a pipe that nobody writes to"
        return None, [FileProblem(name, 0, 0, "R002", reason, "give a regular file")]
    if len(content) > limits.file_bytes_max:
        reason = f"the file is larger than {limits.file_bytes_max} bytes"
        return None, [FileProblem(name, 0, 0, "R003", reason, "split it into several rule files")]
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return None, [_not_utf_8(name, content, error.start)]
    return read_text(text, name, limits, kind=kind_of(path.name))


def _not_utf_8(name: str, content: bytes, at: int) -> FileProblem:
    """The problem of the byte at an offset."""
    line = content.count(b"\n", 0, at) + 1
    before = content[content.rfind(b"\n", 0, at) + 1 : at].decode("utf-8", "replace")
    reason = f"byte 0x{content[at]:02x} is not UTF-8"
    return FileProblem(name, line, len(before) + 1, "R002", reason, "save the file as UTF-8")


def _content(path: FilePath, bytes_max: int) -> bytes:
    """At most so many bytes of a file. Opening does not wait: a pipe without a writer is empty. One with a
    writer, such as a shell's `<(…)`, is read to its end. Raises OSError."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        os.set_blocking(file.fileno(), True)
        return file.read(bytes_max)


def read_text(
    text: str, name: str = "<text>", limits: Limits | None = None, *, kind: Kind = "yaml"
) -> tuple[Document | None, list[FileProblem]]:
    """Read a text like `read_file`. A text of the kind `sql` is a document of one value."""
    report = Report(FileText(name, text))
    builder = Builder(report, limits or Limits())
    if len(text) > builder.limits.file_bytes_max:
        report.error(
            "R003", f"the text is larger than {builder.limits.file_bytes_max} characters", Span(0, 1)
        )
        return None, report.found
    if bad := _UNPRINTABLE.search(text):
        report.error(
            "R002", f"the character U+{ord(bad[0]):04X} may not stand in a rule file", Span(*bad.span())
        )
        return None, report.found
    try:
        document = _READERS[kind](text, builder, report)
    except TooMuch:
        return None, report.found
    return document, report.found


def _read_yaml(text: str, builder: Builder, report: Report) -> Document | None:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = 0
    try:
        events: Iterator[Any] = yaml.parse(text, Loader=loader)
        for event in events:
            span = Span(event.start_mark.index, max(event.start_mark.index + 1, event.end_mark.index))
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    report.error(
                        "R004",
                        "a second document begins here; a rule file holds one",
                        span,
                        "write several rules as a list under 'rules:'",
                    )
                    break
                if event.version or event.tags:
                    report.error(
                        "R007", "directives are not supported in rule files", span, "remove the line with '%'"
                    )
            else:
                _handle(event, span, builder, report)
    except yaml.MarkedYAMLError as error:
        _syntax_error(error, report)
        return None
    if builder.root is None and not report.found:
        report.error(
            "R008",
            "the file is empty",
            Span(0, 1),
            "a rule file has 'rules:' or 'id:', 'sql:' and 'actions:'",
        )
        return None
    return builder.finish()


def _handle(event: yaml.Event, span: Span, builder: Builder, report: Report) -> None:
    if isinstance(event, yaml.NodeEvent):
        _check_node(event, span, builder, report)
    if isinstance(event, yaml.AliasEvent):
        _put(None, "*alias", span, "plain", builder)
    elif isinstance(event, yaml.ScalarEvent):
        _put(_value(event, span, builder, report), event.value, span, _STYLES[event.style], builder)
    elif isinstance(event, yaml.CollectionStartEvent):
        if builder.expects_key:
            report.error("R007", "a key must be a text, not a list or mapping", span)
            raise TooMuch
        builder.begin({} if isinstance(event, yaml.MappingStartEvent) else [], span)
    elif isinstance(event, yaml.CollectionEndEvent):
        mark: Any = event.end_mark
        builder.end(mark.index)


def _put(value: object, written: str, span: Span, style: Style, builder: Builder) -> None:
    if builder.expects_key:
        builder.key(written, span)
    else:
        builder.scalar(value, span, style)


def _check_node(event: yaml.NodeEvent, span: Span, builder: Builder, report: Report) -> None:
    if event.anchor:
        what = "aliases" if isinstance(event, yaml.AliasEvent) else "anchors"
        report.error(
            "R005",
            f"{what} are not supported in rule files: '{event.anchor}'",
            span,
            "write the value out where it is needed",
        )
    tag = getattr(event, "tag", None)
    if tag and not (isinstance(event, yaml.ScalarEvent) and tag in _TEXT_TAGS):
        short = tag.replace("tag:yaml.org,2002:", "!!")
        report.error(
            "R007", f"the tag '{short}' is not supported in rule files", span, "remove it; quote what is text"
        )
    if (
        isinstance(event, yaml.ScalarEvent)
        and builder.expects_key
        and event.value == "<<"
        and event.implicit[0]
    ):
        report.error("R005", "merge keys are not supported in rule files", span, "write the keys out")


def _value(event: yaml.ScalarEvent, span: Span, builder: Builder, report: Report) -> Any:
    text = str(event.value)
    if not event.implicit[0] or builder.expects_key:
        return text
    try:
        value = resolve_plain(text)
    except ValueError as error:
        report.error("R009", str(error), span)
        return None
    if value.__class__ is int and was_octal(text):
        report.note(
            "R202",
            f"{text} is the number {value}; YAML 1.1 reads {int(text, 8)}",
            span,
            "write it without leading zeros, or quote it if it is text",
        )
    return value


NO_COLON, NO_END = "could not find expected ':'", "unexpected end of stream"
BEGUN_BEFORE = (NO_COLON, NO_END)
"""Errors whose place is where the construct begins."""

OUTSIDE = "this line does not fit: its indentation belongs to no open mapping or list"
BESIDE = "indent it as the keys beside it"

_PLAINER = (
    ("mapping values", "a second ':' in this line", "quote a text that has ': ' in it"),
    (
        "cannot start any token",
        "this character cannot begin a value",
        "quote the text, and indent with spaces, not with tabs",
    ),
    (NO_COLON, "':' is missing after the key", None),
    ("block end", OUTSIDE, BESIDE),
    ("did not find expected '-'", OUTSIDE, BESIDE),
    ("did not find expected key", OUTSIDE, BESIDE),
    ("found a tab", "a tab cannot indent a line", "indent with spaces"),
    (NO_END, "the quote that begins here has no end", None),
    ("escape c", "an unknown escape in a double-quoted text", "use single quotes, or double the backslash"),
)


TOO_FAR_IN = "this line goes on with the text of the line before, for it is indented further"
"""The message for a key that YAML takes for the rest of a text."""


def _too_far_in(text: FileText, colon: int) -> str | None:
    """The hint for a colon behind a single word, a key, in its line; None for any other."""
    before, _, line = text.text[:colon].rpartition("\n")
    if re.fullmatch(r"\s+(- +)?[\w.-]+\s*", line) is None:
        return None
    word = before.rpartition("\n")[2].strip().removeprefix("- ")
    return f"write {word}:" if re.fullmatch(r"[\w.-]+", word) else BESIDE


def _syntax_error(error: yaml.MarkedYAMLError, report: Report) -> None:
    context: Any = error.context_mark
    mark: Any = error.problem_mark or context
    start: int = mark.index if mark is not None else 0
    problem = str(error.problem)
    for known, message, hint in _PLAINER:
        if known in problem:
            if known == "mapping values" and (remedy := _too_far_in(report.text, start)):
                report.error("R001", TOO_FAR_IN, Span(start, start + 1), remedy)
                return
            if known in BEGUN_BEFORE and context is not None:
                start = context.index
            word = re.match(r"[\w.-]+", report.text.text[start:]) if known == NO_COLON else None
            report.error("R001", message, Span(start, start + 1), f"write {word[0]}:" if word else hint)
            return
    began = ""
    if error.context and context is not None:
        line = report.text.position(context.index)[0]
        began = f" {error.context}, begun in line {line}"
    report.error("R001", f"{problem}{began}", Span(start, start + 1))


def _read_json(text: str, builder: Builder, report: Report) -> Document | None:
    return json_source.read(builder)


def _read_sql(text: str, builder: Builder, report: Report) -> Document | None:
    builder.scalar(text, Span(0, max(1, len(text))), "plain")
    return builder.finish()


_READERS: dict[Kind, Callable[[str, Builder, Report], Document | None]] = {
    "yaml": _read_yaml,
    "json": _read_json,
    "sql": _read_sql,
}

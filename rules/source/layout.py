"""Format rule files: each query with one clause per line. Nothing but white space inside queries changes."""

from __future__ import annotations

from collections.abc import Iterator

from rules.source.document import Document, Path, Place
from rules.source.yaml_source import read_text
from sql.errors import SqlError
from sql.language.layout import laid_out, on_one_line

LINE_MAX = 110
"""The longest line of a file, in characters; a longer query gets a line for each clause."""


def formatted(text: str, name: str) -> str:
    """The text of a YAML rule file in its layout; unchanged if it is no YAML, or in layout already.

    Blocks (`sql: |`) get one clause per line; a plain query stays on its line while it fits, and becomes a
    block otherwise. Queries in quotes, folded ones and those with comments stay as they are.
    """
    document = _read(text, name)
    if document is None:
        return text
    changes = sorted(_changes(document), reverse=True)
    result = text
    for start, end, put in changes:
        result = result[:start] + put + result[end:]
    if not result.endswith("\n"):
        result += "\n"
    again = _read(result, name)
    assert again is not None and _same(document.data, again.data), (
        f"{name}: the layout would change the file's meaning"
    )
    return result


def _read(text: str, name: str) -> Document | None:
    document, problems = read_text(text, name)
    return None if any(problem.is_error for problem in problems) else document


def _changes(document: Document) -> Iterator[tuple[int, int, str]]:
    """The replacements: start, end and new text."""
    for path, sql in _queries(document.data, ()):
        place = document.places.get(path)
        if place is None or place.key is None:
            continue
        try:
            put = _block(document, place, sql) if place.style == "|" else _plain(document, place, sql)
        except SqlError:
            continue  # `penstock check` reports the error
        if put is not None:
            yield put


def _queries(data: object, path: Path) -> Iterator[tuple[Path, str]]:
    """The path and text of every `sql` of a rule or a stream in the file."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if key == "sql" and isinstance(value, str):
            yield (*path, "sql"), value
        elif key not in ("tests", "actions"):
            yield from _queries(value, (*path, key))


def _block(document: Document, place: Place, sql: str) -> tuple[int, int, str] | None:
    """A block scalar, whose text begins in the line behind its head."""
    source = document.text.text
    start = source.find("\n", place.value.start) + 1
    lines = [line for line in source[start : place.value.end].split("\n") if line.strip()]
    if not start or not lines:
        return None
    indent = len(lines[0]) - len(lines[0].lstrip(" "))
    end = start + len(source[start : place.value.end].rstrip())
    text = laid_out(sql, LINE_MAX - indent)
    return None if text is None else (start, end, _indented(text, indent))


def _plain(document: Document, place: Place, sql: str) -> tuple[int, int, str] | None:
    if place.style != "plain" or place.key is None:
        return None
    source = document.text.text
    line = source.rfind("\n", 0, place.key.start) + 1
    column = place.key.start - line
    end = place.value.start + len(source[place.value.start : place.value.end].rstrip())
    whole = on_one_line(sql)
    if whole is None or "{" in source[line : place.key.start]:
        return None
    if place.value.start - line + len(whole) <= LINE_MAX:
        return place.value.start, end, whole
    text = laid_out(sql, LINE_MAX - column - 2)
    return None if text is None else (place.value.start, end, "|\n" + _indented(text, column + 2))


def _indented(text: str, indent: int) -> str:
    return "\n".join(" " * indent + line for line in text.split("\n"))


def _same(one: object, other: object, key: object = None) -> bool:
    """True if two documents are equal, except for white space in queries."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name], name) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if key == "sql" and isinstance(one, str) and isinstance(other, str) and one != other:
        return on_one_line(one) == on_one_line(other)
    return type(one) is type(other) and bool(one == other)

"""A file as plain data with the position of each value.

A reader (`yaml_source`, `json_source`) calls a `Builder` for each value, in order. The builder enforces the
limits, refuses duplicate keys, and ends with a `Document`: data of dict, list, str, int, float, bool and
None, and for each path (a tuple of keys and indices) the place of its key and its value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from rules.problems import FileText, Report
from sql.errors import NOWHERE, Span
from sql.record import Record

Path = tuple[str | int, ...]
Style = Literal["plain", "'", '"', "|", ">", "json", "collection"]


class Limits(Record):
    """Bounds of one rule file. A file beyond one of them is refused with R003; the
    others are read as usual."""

    file_bytes_max: int = 4_000_000
    depth_max: int = 40
    nodes_max: int = 200_000


@dataclass(slots=True)
class Place:
    """The place of a value: its span, its key's span (None in lists and at the top), its style."""

    value: Span
    key: Span | None = None
    style: Style = "collection"


@dataclass(slots=True)
class Document:
    """A file's data with positions."""

    text: FileText
    data: Any
    places: dict[Path, Place]

    def place(self, path: Path) -> Place:
        """The place of the value at `path`, or of the nearest value above it."""
        while path not in self.places and path:
            path = path[:-1]
        return self.places.get(path, Place(NOWHERE))

    def key_span(self, path: Path) -> Span:
        """The key at `path`; if there is none, the beginning of the value."""
        place = self.place(path)
        return place.key or self.head(place)

    def value_span(self, path: Path) -> Span:
        """The value at `path`: a scalar whole, a collection its beginning only."""
        place = self.place(path)
        return self.head(place) if place.style in ("collection", "|", ">") else place.value

    def head(self, place: Place) -> Span:
        """The first line of a value, for carets."""
        end = self.text.text.find("\n", place.value.start)
        last = place.value.end if end < 0 else min(place.value.end, end)
        return Span(place.value.start, max(place.value.start + 1, last))


class TooMuch(Exception):
    """A limit was exceeded; it is already reported, and reading ends here."""


@dataclass(slots=True)
class _Open:
    """A mapping or list that has begun. `key` waits for its value; `drop` marks it as the value of a
    duplicate key."""

    data: dict[str, Any] | list[Any]
    path: Path
    key: str | None = None
    key_span: Span | None = None
    keys: dict[str, Span] = field(default_factory=dict)
    duplicate: bool = False


class Builder:
    """A builder of documents from a reader's calls. Problems go to the report."""

    def __init__(self, report: Report, limits: Limits) -> None:
        self.report = report
        self.limits = limits
        self.places: dict[Path, Place] = {}
        self.root: Any = None
        self._open: list[_Open] = []
        self._nodes = 0

    @property
    def expects_key(self) -> bool:
        """True if the next scalar is a mapping's key."""
        return bool(self._open) and isinstance(self._open[-1].data, dict) and self._open[-1].key is None

    def key(self, name: str, span: Span) -> None:
        """A mapping's key. A duplicate is reported with both lines; the first value is kept."""
        self._count(span)
        top = self._open[-1]
        first = top.keys.get(name)
        top.duplicate = first is not None
        if first is not None:
            line = self.report.text.position(first.start)[0]
            self.report.error(
                "R006",
                f"the key '{name}' stands twice in this mapping, first in line {line}",
                span,
                "remove one, or give it another name",
            )
        top.keys.setdefault(name, span)
        top.key, top.key_span = name, span

    def scalar(self, value: object, span: Span, style: Style) -> None:
        """A value that is no collection."""
        self._count(span)
        self._attach(value, span, style)

    def begin(self, data: dict[str, Any] | list[Any], span: Span) -> None:
        """An empty mapping or list that the following calls fill, until `end`."""
        self._count(span)
        if len(self._open) >= self.limits.depth_max:
            self.report.error("R003", f"values are nested more than {self.limits.depth_max} deep", span)
            raise TooMuch
        path = self._attach(data, span, "collection")
        self._open.append(_Open(data, path))

    def end(self, offset: int) -> None:
        """The innermost collection ends at `offset`."""
        top = self._open.pop()
        if top.path in self.places and not self._inside_duplicate():
            place = self.places[top.path]
            place.value = Span(place.value.start, max(offset, place.value.start))

    def finish(self) -> Document:
        """The document read so far."""
        return Document(self.report.text, self.root, self.places)

    def _count(self, span: Span) -> None:
        self._nodes += 1
        if self._nodes > self.limits.nodes_max:
            self.report.error("R003", f"the file has more than {self.limits.nodes_max} keys and values", span)
            raise TooMuch

    def _inside_duplicate(self) -> bool:
        return any(item.duplicate for item in self._open)

    def _attach(self, value: object, span: Span, style: Style) -> Path:
        path: Path = ()
        if not self._open:
            self.root = value
            self.places[path] = Place(span, None, style)
            return path
        top = self._open[-1]
        key_span = None
        if isinstance(top.data, list):
            path = (*top.path, len(top.data))
            top.data.append(value)
        else:
            assert top.key is not None
            path, key_span = (*top.path, top.key), top.key_span
            top.data.setdefault(top.key, value)
            top.key = None
        if not self._inside_duplicate():
            self.places[path] = Place(span, key_span, style)
        return path

"""Topics, URLs and paths that depend on the row: `plant/{{.site}}/alarms`.

Rows come from devices, so a value must never lead to a destination that the rule's author did not intend: a
topic and a URL begin with literal text (a URL up to the first slash after the host), special characters of
values are percent-encoded, and a value that is NULL, empty or makes a `.` or `..` segment makes the message a
dead letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

from sinks.template.values import print_value, step_into
from sql.errors import DataError

Kind = Literal["topic", "url", "path"]

_FIELD = re.compile(r"\{\{\s*\.([^\W\d]\w*(?:\.[^\W\d]\w*)*)\s*\}\}")
_OF_ROW = re.compile(r"""\{\{-?\s*index\s+\.\s+\d+\s+["`](\w+)["`]\s*-?\}\}""")
"""A field of a numbered row, as templates of eKuiper write it."""
_SPECIAL: dict[Kind, re.Pattern[str]] = {
    "topic": re.compile(r"[\x00-\x1f\x7f%/+#]"),
    "path": re.compile(r"[\x00-\x1f\x7f%/\\:]"),
}
_URL_PREFIX = re.compile(r"https?://[^/?#{}]+/", re.IGNORECASE)

TOPIC_BYTES_MAX = 65_535
"""MQTT's limit for the UTF-8 form of a topic or a filter."""


def check_topic(topic: str) -> None:
    """Raise ValueError if `topic`, which may hold fields, cannot be published to."""
    if not topic or any(char in topic for char in "+#\0"):
        raise ValueError("a topic to publish to must not be empty nor hold '+', '#' or NUL")
    if len(topic.encode()) > TOPIC_BYTES_MAX:
        raise ValueError(f"the topic is longer than {TOPIC_BYTES_MAX} bytes")
    Target(topic, "topic")


def _refusal(text: str, kind: Kind) -> str:
    """Why a text has more than fields, and what to write."""
    refusal = f"only fields such as '{{{{.name}}}}' may be filled into a {kind}"
    if found := _OF_ROW.search(text):
        return f"{refusal}, from each row: write '{{{{.{found[1]}}}}}'"
    return f"{refusal}: let the SELECT compute the value, and name its column"


class Target:
    """A topic, URL or path, possibly with `{{.field}}` in it.

    >>> Target("plant/{{.site}}/out", "topic").fill({"site": "a/b"})
    'plant/a%2Fb/out'
    """

    __slots__ = ("_names", "_texts", "kind")

    def __init__(self, text: str, kind: Kind) -> None:
        """Check and split; raises ValueError that says what is not allowed."""
        self.kind: Kind = kind
        pieces = _FIELD.split(text)
        self._texts, self._names = pieces[::2], [name.split(".") for name in pieces[1::2]]
        if any("{{" in piece or "}}" in piece for piece in self._texts):
            raise ValueError(_refusal(text, kind))
        if self._names:
            self._check_prefix(self._texts[0])

    @property
    def is_dynamic(self) -> bool:
        """True if the result depends on the row."""
        return bool(self._names)

    @property
    def columns(self) -> list[str]:
        """The columns that are filled in."""
        return [path[0] for path in self._names]

    def _check_prefix(self, prefix: str) -> None:
        if self.kind == "url" and not _URL_PREFIX.match(prefix):
            raise ValueError(
                "a url with fields must begin with a literal scheme, host and '/', then the fields"
            )
        if self.kind == "topic" and not prefix.strip("/"):
            raise ValueError("a topic with fields must begin with literal text, such as 'site/{{.name}}'")

    def fill(self, row: Mapping[str, Any]) -> str:
        """The target for one row. Raises DataError when a value is missing or unsafe."""
        if not self._names:
            return self._texts[0]
        parts = [self._texts[0]]
        for path, text in zip(self._names, self._texts[1:], strict=True):
            parts += [self._value(row, path), text]
        filled = "".join(parts)
        if any(segment in (".", "..") for segment in re.split(r"[/?#]", filled)):
            raise DataError(f"{self.kind}: a value makes a '.' or '..' segment")
        return filled

    def _value(self, row: Mapping[str, Any], path: list[str]) -> str:
        value: Any = row
        for name in path:
            value = step_into(value, name)
        text = "" if value is None else print_value(value)
        if not text:
            raise DataError(
                f"{self.kind}: field '{'.'.join(path)}' is {'NULL' if value is None else 'empty'}"
            )
        if self.kind == "url":
            return quote(text, safe="")
        return _SPECIAL[self.kind].sub(lambda match: f"%{ord(match[0]):02X}", text)

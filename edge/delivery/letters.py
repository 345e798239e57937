"""Reading dead letters: the files that `DeadLetters` writes, oldest letter first."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sql.record import Record

FOLDER = "dead-letters"
"""Below the data directory."""

FILE = "dead-letters.jsonl"

RETRIED = "dead-letters.retried"
"""Beside the letters: the ids of those that were sent again, one a line."""


class Letter(Record):
    """One dead letter. `id` identifies it; `fields` is all that was written, without
    the payload."""

    id: str
    at_ms: int
    reason: str
    topic: str
    payload: bytes | None
    fields: dict[str, Any]

    @property
    def rule(self) -> str:
        """The rule that could not process it; empty for a message that was refused on its way in."""
        return str(self.fields.get("rule", ""))

    @property
    def sink(self) -> str:
        """The sink that refused it; empty for input that did not get so far."""
        return str(self.fields.get("sink", ""))

    @property
    def connection(self) -> str:
        """The connection on which a message came; empty for the gateway's own broker."""
        return str(self.fields.get("connection", ""))

    @property
    def destination(self) -> str | None:
        """The topic to which it can be published again; None where nothing can be."""
        if self.payload is None:
            return None
        if self.sink:
            return str(self.fields.get("target") or "") or None if self.sink == "mqtt" else None
        return self.topic or None

    @property
    def kind(self) -> str:
        """The reason without the parts that differ from letter to letter."""
        return re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "…", self.reason)


def read_letters(data: Path) -> Iterator[Letter]:
    """All letters below a data directory. A line that is no letter, such as one cut off by a power cut, is
    left out."""
    folder = data / FOLDER
    files = sorted(folder.glob(f"{FILE}.*"), key=_age, reverse=True)
    for path in [*files, *([folder / FILE] if (folder / FILE).exists() else [])]:
        with path.open("rb") as lines:
            for line in lines:
                letter = letter_of(line)
                if letter is not None:
                    yield letter


def _age(path: Path) -> int:
    number = path.name.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0


def letter_of(line: bytes) -> Letter | None:
    """The letter of a line; None for a line that is not a letter."""
    try:
        found = json.loads(line)
        payload = found.pop("payload", None)
        return Letter(
            hashlib.sha256(line).hexdigest()[:12],
            int(found["at_ms"]),
            str(found["reason"]),
            str(found.get("topic", "")),
            None if payload is None else base64.b64decode(payload),
            found,
        )
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error):
        return None


def retried(data: Path) -> set[str]:
    """The ids of the letters that were sent again."""
    path = data / FOLDER / RETRIED
    return set(path.read_text("ascii").split()) if path.exists() else set()


def note_retried(data: Path, letter: Letter) -> None:
    """Remember that a letter was sent again."""
    with (data / FOLDER / RETRIED).open("a", encoding="ascii") as file:
        file.write(f"{letter.id}\n")

"""Findings from payloads: columns that are never there, keys that are nearly declared
ones, values of other types.

A few messages are decoded whole, beside what rules read: the first ones of a stream, then ever fewer.
The findings are kept as counts for each column; nothing of a payload is kept but one example value for each
wrong type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from sql.errors import did_you_mean
from sql.types import Type, describe, type_of

FIRST = 20
"""Messages at the start of a stream of which all are sampled, where they come one by one."""

EVERY = 100
"""After those, one of `EVERY` messages is sampled; from message `EVERY` squared on, one of that number."""

ENOUGH = 5
"""The least number of samples for a finding."""

KEYS_MAX = 200
"""Different keys that are counted; a payload with keys of its own for each message
must not fill the memory."""

KEYS_SHOWN = 8


class Lessons:
    """The findings from the samples of one stream.

    declared   the type of each declared column
    read       the columns that rules read; None: all of the message
    """

    def __init__(self, stream: str, declared: Mapping[str, Type], read: Iterable[str] | None) -> None:
        self.stream = stream
        self.samples = 0
        self.due_at = 0
        """The number of the message, counted from 0, that is to be sampled next."""
        self._declared = dict(declared)
        self._expected = dict.fromkeys([*declared, *(read or ())])
        self._seen: Counter[str] = Counter()
        self._misfits: dict[str, tuple[int, str]] = {}

    def sampled_until(self, count: int) -> None:
        """Set the next message to be sampled: `count` messages have passed, and one of them was sampled."""
        every = EVERY if count < EVERY * EVERY else EVERY * EVERY
        self.due_at = count if count < FIRST else (count // every + 1) * every - 1

    def sample(self, payload: bytes) -> None:
        """Take in one payload; one that is no JSON object is left out."""
        try:
            found = msgspec.json.decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        row = found[0] if isinstance(found, list) and found else found
        if isinstance(row, dict):
            self.learn(row)

    def learn(self, row: Mapping[str, Any]) -> None:
        """Learn from one decoded message."""
        self.samples += 1
        for key, value in row.items():
            if key in self._seen or len(self._seen) < KEYS_MAX:
                self._seen[key] += 1
            declared = self._declared.get(key)
            if declared is not None and not fits(declared, value):
                self._misfits[key] = (self._misfits.get(key, (0, ""))[0] + 1, describe(value))

    def texts(self) -> dict[str, str]:
        """A sentence for each column that is not as expected; empty while too few messages were seen."""
        if self.samples < ENOUGH:
            return {}
        return {**self._never_there(), **self._of_other_types()}

    def _never_there(self) -> dict[str, str]:
        strange = [key for key in self._seen if key not in self._expected]
        found = {}
        for column in self._expected:
            if not self._seen[column]:
                hint = (
                    did_you_mean(column, strange) or f"they have {', '.join(sorted(self._seen)[:KEYS_SHOWN])}"
                )
                found[column] = f"none of {self.samples} sampled messages has the column '{column}'; {hint}"
        return found

    def _of_other_types(self) -> dict[str, str]:
        return {
            column: f"column '{column}' is declared {self._declared[column].value}, "
            f"but {count} of {self.samples} sampled messages hold another type, such as {example}"
            for column, (count, example) in self._misfits.items()
        }


def fits(declared: Type, value: object) -> bool:
    """True if a value of a payload may stand in a column of this type: NULL may, and 23.0 for a bigint."""
    if isinstance(value, float) and declared is Type.INTEGER:
        return value.is_integer()
    return declared.accepts(type_of(value)) or (declared is Type.BYTES and isinstance(value, str))

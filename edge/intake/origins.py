"""The topic of an event that a rule could not evaluate: looked up only when an error needs it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from edge.base.message import Message
from edge.intake.codecs import META
from sql.rows import as_dict
from sql.types import key_of


class Origins(Struct, dict=True):
    """The messages of a batch beside their rows, one row for each message where `rows` are as many."""

    messages: Sequence[Message]
    rows: Sequence[Any]

    def topic_of(self, event: Mapping[str, Any]) -> str:
        """The topic of the message that gave an event; of equal events the first one's. Empty where it is not
        clear, as in a batch with arrays."""
        if len({message[0] for message in self.messages}) == 1:
            return self.messages[0][0]
        return self._topics.get(_key(event), "")

    @cached_property
    def _topics(self) -> dict[Hashable, str]:
        if len(self.messages) != len(self.rows):
            return {}
        found: dict[Hashable, str] = {}
        for message, row in zip(self.messages, self.rows, strict=True):
            found.setdefault(_key(as_dict(row)), message[0])
        return found


def _key(event: Mapping[str, Any]) -> Hashable:
    """Equal for equal events. Columns that are NULL are left out: an event of one rule may
    have fewer than the row."""
    known = {name: value for name, value in event.items() if value is not None and name != META}
    key: Hashable = key_of(known)
    return key

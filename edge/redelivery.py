"""Messages that the broker sends again although their effect is stored: they are recognised, and have no second effect.

A broker repeats every message whose acknowledgement it has not seen, marked as a duplicate and under the same packet
id. That happens when the connection breaks between taking a message in and acknowledging it, and when the process
dies between the checkpoint and the acknowledgement:

    taken in ---> checkpoint ---> acknowledged
             |--- 1 ---|--- 2 ---|              a break at 1 or 2: the broker repeats it

So the packet ids and check sums of the messages of the last two checkpoints are kept, and stored with each
checkpoint. What is marked as a duplicate and known is acknowledged without being processed again. Memory: six bytes
for each message.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from edge.sources.base import DUPLICATE, Message, message_id

FORGET_AFTER_MESSAGES = 65_535
"""By then the broker has used every packet id anew, so what an earlier run stored says nothing any more."""

_ENTRY = struct.Struct(">HI")

Signature = tuple[int, int]


def signature(message: Message) -> Signature:
    """Packet id, and check sum of topic and payload."""
    return message_id(message[2]), zlib.crc32(message[1], zlib.crc32(message[0].encode("utf-8", "surrogatepass")))


class Redeliveries:
    """What one source may send again. Used by the gateway loop only."""

    def __init__(self, saved: bytes = b"") -> None:
        """`saved`: the `snapshot` of an earlier run."""
        self.recognised = 0
        whole = len(saved) - len(saved) % _ENTRY.size
        self._earlier_run: set[Signature] = set(_ENTRY.iter_unpack(saved[:whole]))
        self._last_checkpoint: set[Signature] = set()
        self._since: set[Signature] = set()
        self._messages = 0

    def fresh(self, messages: list[Message]) -> list[Message]:
        """The messages that are to be processed; from now on they are known."""
        if not any(message[2] is not None for message in messages):
            return messages
        kept = [message for message in messages if message[2] is None or self._is_fresh(message)]
        self._messages += len(messages)
        if self._messages > FORGET_AFTER_MESSAGES:
            self._earlier_run.clear()
        return kept

    def _is_fresh(self, message: Message) -> bool:
        key = signature(message)
        if message[3] & DUPLICATE and (key in self._since or key in self._last_checkpoint or key in self._earlier_run):
            self.recognised += 1
            return False
        self._since.add(key)
        return True

    def snapshot(self) -> bytes:
        """What the next run must know."""
        return b"".join(_ENTRY.pack(*key) for key in self._all())

    def committed(self) -> None:
        """A checkpoint has stored everything so far."""
        self._last_checkpoint, self._since = self._since, set()

    def _all(self) -> Iterable[Signature]:
        return sorted(self._earlier_run | self._last_checkpoint | self._since)

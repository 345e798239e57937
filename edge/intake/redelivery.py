"""Messages that the broker sends again although their effect is stored: they are recognised, and have no second effect.

A broker repeats every message whose acknowledgement it has not seen, marked as a duplicate and under the same packet
id. That happens when the connection breaks between taking a message in and acknowledging it, and when the process
dies between the checkpoint and the acknowledgement:

    taken in ---> checkpoint ---> acknowledged
             |--- 1 ---|--- 2 ---|              a break at 1 or 2: the broker repeats it

So the packet ids and check sums of recent messages are kept, and stored with each checkpoint: those since the last
checkpoint but one, and at least as many as a broker may have waiting for acknowledgements. What is marked as a
duplicate and known is acknowledged without being processed again. Stored: six bytes for each message.
"""

from __future__ import annotations

import struct
import zlib
from itertools import islice

from edge.intake.sources.base import DUPLICATE, Message, message_id

KEPT_MIN = 2_000
"""Messages kept in any case: twice the receive maximum, for brokers overshoot it when they catch up."""

_ENTRY = struct.Struct(">HI")

Signature = tuple[int, int]


def signature(message: Message) -> Signature:
    """Packet id, and check sum of topic and payload."""
    return message_id(message[2]), zlib.crc32(message[1], zlib.crc32(message[0].encode("utf-8", "surrogatepass")))


class Redeliveries:
    """What one source may send again. Used by the gateway loop only."""

    def __init__(self, saved: bytes = b"", kept_min: int = KEPT_MIN) -> None:
        """`saved`: the `snapshot` of an earlier run."""
        self.recognised = 0
        self.kept_min = kept_min
        whole = len(saved) - len(saved) % _ENTRY.size
        self._known: dict[Signature, None] = dict.fromkeys(_ENTRY.iter_unpack(saved[:whole]))
        """In the order of their arrival."""
        self._since_checkpoint = self._between_checkpoints = 0

    def fresh(self, messages: list[Message]) -> list[Message]:
        """The messages that are to be processed; from now on they are known."""
        if not any(message[2] is not None for message in messages):
            return messages
        return [message for message in messages if message[2] is None or self._is_fresh(message)]

    def _is_fresh(self, message: Message) -> bool:
        key = signature(message)
        is_known = key in self._known
        if is_known and message[3] & DUPLICATE:
            self.recognised += 1
            return False
        if is_known:  # the packet id was used anew, for the same content
            del self._known[key]
        self._known[key] = None
        self._since_checkpoint += 1
        return True

    def snapshot(self) -> bytes:
        """What the next run must know."""
        return b"".join(_ENTRY.pack(*key) for key in self._known)

    def committed(self) -> None:
        """A checkpoint has stored everything so far."""
        keep = max(self.kept_min, self._since_checkpoint + self._between_checkpoints)
        for key in list(islice(self._known, max(0, len(self._known) - keep))):
            del self._known[key]
        self._between_checkpoints, self._since_checkpoint = self._since_checkpoint, 0

"""Messages that the broker sends again although their effect is recorded: they are
recognised, and have no second one.

A broker repeats every message whose acknowledgement it has not seen, marked as a duplicate and under the same
packet id. That happens when the connection breaks between taking a message in and acknowledging it, and when
the process dies between the commit and the acknowledgement:

    taken in ---> commit ---> acknowledged
             |--- 1 ---|--- 2 ---|              a break at 1 or 2: the broker repeats it

A broker uses a packet id for one message at a time, so the last message taken under each id is all that it
can repeat: a check sum by packet id, at most 65,535 of them, however many messages it has in flight. They are
rebuilt from the journal after a crash. What is marked as a duplicate and known is acknowledged without being
processed again.

A new message may come under a used id, with equal content, and marked as a duplicate because its first
transmission was cut off. It is no repetition if the broker is known to have seen the earlier acknowledgement,
see `confirmed`.

Retained messages come again with every new subscription. One that was taken before, and not replaced since by
another on its topic, is recognised as well.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence

from edge.intake.sources.base import DUPLICATE, RETAINED, Message
from sinks.memory_bus import topic_matches

RETAINED_MAX = 50_000
"""Topics whose retained message is remembered; of further ones the oldest are forgotten."""

_ENTRY = struct.Struct(">HI")


_MARKED = DUPLICATE | RETAINED


def signature(message: Message) -> int:
    """Check sum of topic and payload."""
    return zlib.crc32(message[1], zlib.crc32(message[0].encode("utf-8", "surrogatepass")))


class Redeliveries:
    """The messages that one source may send again. Used by the gateway loop only."""

    def __init__(self, saved: bytes = b"", retained: Mapping[str, int] | None = None) -> None:
        """`saved`: the `snapshot` of an earlier run; `retained`: the retained messages that it remembered."""
        self.recognised = 0
        self.retained = dict(retained or {})
        """Check sum of the last message by topic, for topics with a retained one."""
        whole = len(saved) - len(saved) % _ENTRY.size
        self._known: dict[int, int] = dict(_ENTRY.iter_unpack(saved[:whole]))

    def fresh(self, messages: list[Message]) -> list[Message]:
        """The messages that are to be processed; from now on they are known."""
        repeated = [message for message in messages if message[3] & _MARKED and self._is_known(message)]
        if repeated:
            self.recognised += len(repeated)
            again = {id(message) for message in repeated}
            messages = [message for message in messages if id(message) not in again]
        self.note(messages)
        return messages

    def note(self, messages: Sequence[Message]) -> None:
        """These messages were processed."""
        for message in messages:
            if message[2] is not None:
                self._known[message[2] & 0xFFFF] = signature(message)
            if message[3] & RETAINED or message[0] in self.retained:
                self._note_retained(message)

    def _note_retained(self, message: Message) -> None:
        self.retained[message[0]] = signature(message)
        if len(self.retained) > RETAINED_MAX:
            del self.retained[next(iter(self.retained))]

    def _is_known(self, message: Message) -> bool:
        topic, _, token, flags = message
        if flags & DUPLICATE and token is not None and self._known.get(token & 0xFFFF) == signature(message):
            return True
        return bool(flags & RETAINED) and self.retained.get(topic) == signature(message)

    def forget_retained(self, filters: Iterable[str]) -> None:
        """Forget the retained messages of new filters: their readers need them, though others have
        seen them."""
        for name in filters:
            for topic in [topic for topic in self.retained if topic_matches(name, topic)]:
                del self.retained[topic]

    def confirmed(self, ids: Iterable[int]) -> None:
        """The broker has seen the acknowledgements of these packet ids: it will not repeat their messages."""
        for packet_id in ids:
            self._known.pop(packet_id, None)

    def new_session(self) -> None:
        """Forget the known messages: the broker has kept nothing of earlier connections."""
        self._known.clear()

    def snapshot(self) -> bytes:
        """The state that the next run needs."""
        return b"".join(_ENTRY.pack(*entry) for entry in self._known.items())

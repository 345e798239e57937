"""Recognition of messages that the broker sends again although their effect is recorded.

A broker repeats every message whose acknowledgement it has not seen, marked as a duplicate and under the same
packet id. That happens when the connection breaks between taking a message in and acknowledging it, and when
the process ends between the commit and the acknowledgement:

    taken in ---> commit ---> acknowledged
             |--- 1 ---|--- 2 ---|              a break at 1 or 2: the broker repeats it

A broker uses a packet id for one message at a time, so the last message taken under each id is all that it
can repeat: a check sum by packet id. They are rebuilt from the journal after a crash. What is marked as a
duplicate and known is acknowledged without being processed again.

A new message may come under a used id, with equal content, and marked as a duplicate because its first
transmission was lost with the connection. It is recognised as new if the broker is known to have
seen the earlier acknowledgement (`confirmed`), or if so many messages came since that the id is no longer
remembered: brokers that count their ids up use one again after 65,535 messages.

Retained messages come again with every new subscription. One that was taken before, and not replaced since by
another on its topic, is recognised as well.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from operator import and_, itemgetter

from edge.base.message import ACKNOWLEDGED, DUPLICATE, RETAINED, Message, message_id, payload_bytes
from sinks.memory_bus import topic_matches

RETAINED_MAX = 50_000
"""Topics whose retained message is remembered; of further ones the oldest are forgotten."""

REMEMBERED_MIN = 32_767
"""The newest messages that are recognised, where each has a packet id of its own. At most twice as many
are: fewer than there are ids."""

GATHERED_MAX, GATHERED_BYTES = 500, 50_000
"""Messages, and their payload bytes, whose check sums are made together: a few with each wake-up cost five
times as much, for nothing of it is in the caches of the processor then."""

_ENTRY = struct.Struct(">HI")

_MARKED = DUPLICATE | RETAINED
_UNMARKED = frozenset(flags for flags in range(16) if not flags & _MARKED)
_AT_MOST_ONCE, _PLAIN = frozenset({0}), frozenset({0x02})

_flags = itemgetter(3)


@lru_cache(10_000)
def _topic_sum(topic: str) -> int:
    return zlib.crc32(topic.encode("utf-8", "surrogatepass"))


def signature(message: Message) -> int:
    """Check sum of topic and payload."""
    return zlib.crc32(message[1], _topic_sum(message[0]))


class Redeliveries:
    """The messages that one source may send again. Used by the gateway loop only."""

    def __init__(
        self, saved: bytes = b"", older: bytes = b"", retained: Mapping[str, int] | None = None
    ) -> None:
        """`saved` and `older`: the `snapshot` of an earlier run; `retained`: the retained messages that it
        remembered."""
        self.recognised = 0
        self.retained = dict(retained or {})
        """Check sum of the last message by topic, for topics with a retained one."""
        self._known = _entries(saved)
        """Check sums of the newest messages by packet id."""
        self._older = _entries(older)
        """Of the ones before: dropped when there are `REMEMBERED_MIN` new ones."""
        self._gathered: list[Message] = []
        """The last messages, of QoS 1 and not retained, which have no check sum yet."""
        self._gathered_bytes = 0

    def fresh(self, messages: list[Message]) -> list[Message]:
        """The messages that are to be processed; from now on they are known."""
        kinds = set(map(_flags, messages))
        if not self.retained:
            if kinds == _PLAIN:
                self._gather(messages)
            if kinds in (_PLAIN, _AT_MOST_ONCE):
                return messages
        if not kinds <= _UNMARKED:
            self._note_gathered()
            again = {id(message) for message in messages if message[3] & _MARKED and self._is_known(message)}
            self.recognised += len(again)
            messages = [message for message in messages if id(message) not in again]
        self.note(messages)
        return messages

    def _gather(self, messages: Sequence[Message]) -> None:
        """These messages of QoS 1, none of them retained, are known from now on."""
        self._gathered += messages
        self._gathered_bytes += payload_bytes(messages)
        if self._gathered_bytes >= GATHERED_BYTES or len(self._gathered) >= GATHERED_MAX:
            self._note_gathered()

    def _note_gathered(self) -> None:
        """Make the check sums of the messages that have gathered."""
        if not self._gathered:
            return
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if len(self._known) + len(gathered) >= REMEMBERED_MIN:
            self._note_each(gathered)
            return
        topics, payloads, tokens, _ = zip(*gathered, strict=True)
        ids = map(and_, tokens, repeat(0xFFFF))
        self._known.update(zip(ids, map(zlib.crc32, payloads, map(_topic_sum, topics)), strict=True))

    def note(self, messages: Sequence[Message]) -> None:
        """Note that these messages were processed."""
        self._note_gathered()
        self._note_each(messages)

    def _note_each(self, messages: Sequence[Message]) -> None:
        known, retained, check_sum, topic_sum = self._known, self.retained, zlib.crc32, _topic_sum
        for message in messages:
            topic, payload, token, flags = message
            if flags & ACKNOWLEDGED and token is not None:  # other tokens are no packet ids
                known[token & 0xFFFF] = check_sum(payload, topic_sum(topic))
                if len(known) >= REMEMBERED_MIN:
                    self._older = known
                    self._known = known = {}
            if flags & RETAINED or topic in retained:
                self._note_retained(message)

    def _note_retained(self, message: Message) -> None:
        self.retained[message[0]] = signature(message)
        if len(self.retained) > RETAINED_MAX:
            del self.retained[next(iter(self.retained))]

    def _is_known(self, message: Message) -> bool:
        topic, flags = message[0], message[3]
        if flags & DUPLICATE and (packet_id := message_id(message)):
            known = self._known.get(packet_id, self._older.get(packet_id))
            if known == signature(message):
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
        self._note_gathered()
        for packet_id in ids:
            self._known.pop(packet_id, None)
            self._older.pop(packet_id, None)

    def new_session(self) -> None:
        """Forget the known messages: the broker has kept nothing of earlier connections."""
        self._gathered, self._gathered_bytes = [], 0
        self._known.clear()
        self._older.clear()

    def snapshot(self) -> tuple[bytes, bytes]:
        """The state that the next run needs: the newest messages, and the older ones."""
        self._note_gathered()
        return _packed(self._known), _packed(self._older)


def _packed(entries: Mapping[int, int]) -> bytes:
    return b"".join(_ENTRY.pack(*entry) for entry in entries.items())


def _entries(packed: bytes) -> dict[int, int]:
    """Check sums by packet id; a torn end is left out."""
    return dict(_ENTRY.iter_unpack(packed[: len(packed) - len(packed) % _ENTRY.size]))

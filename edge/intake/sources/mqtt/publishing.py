"""Messages out on an MQTT connection: many packets in one write, confirmations back.

    publish --> waiting --> packets, at most `window` of them unconfirmed --> open --> PUBACK --> done
                   ^                                                            |
                   +------------------- the connection ended -------------------+

Order is kept: what was open when a connection ended goes first on the next one, marked as sent before and
under the packet id that it had, as MQTT demands where the broker has kept the session.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from edge.base.message import DUPLICATE, RETAINED
from sinks.dynamic import TOPIC_BYTES_MAX

FIRST_ID, LAST_ID = 0x8000, 0xFFFF
"""Packet ids used here; paho counts those of its own packets from 1."""

WINDOW_MAX = 1_000
"""The limit of unconfirmed messages, unless the broker sets a lower one."""

PACKETS_PER_TURN = 500

PACKET_BYTES_MAX = 268_435_455
"""MQTT's own limit."""

QUOTA_EXCEEDED = 0x97
FAILURE_FROM = 0x80

TOPICS_MAX = 10_000
"""Encoded topics that are remembered; one more and the memory is emptied."""


class OutgoingMessage:
    """A message on its way. `done` is called with the reason of a refusal, or with None once the
    broker has the message."""

    __slots__ = ("done", "flags", "packet_id", "payload", "sent_ms", "topic")

    def __init__(self, topic: bytes, payload: bytes, flags: int, done: Callable[[str | None], None]) -> None:
        self.topic, self.payload, self.flags, self.done = topic, payload, flags, done
        self.sent_ms = self.packet_id = 0


class Publishing:
    """Outgoing messages, over one connection after the other. For the loop's thread only.

    confirm_ms   a broker that does not confirm within this time is given up, and the messages are sent again
    """

    def __init__(self, confirm_ms: int) -> None:
        self._confirm_ms = confirm_ms
        self._waiting: deque[OutgoingMessage] = deque()
        self._open: dict[int, OutgoingMessage] = {}
        self._next_id = FIRST_ID
        self.window = WINDOW_MAX
        """The most messages that may be unconfirmed."""
        self._bytes_max = PACKET_BYTES_MAX
        self._has_properties = False
        self._topics: dict[str, bytes] = {}
        self.on_waiting: Callable[[], None] = lambda: None
        """Called where a message waits and none did before."""
        self.has_sent = False
        """True if messages went out on the last connection."""

    def publish(
        self, topic: str, payload: bytes, qos: int, retained: bool, done: Callable[[str | None], None]
    ) -> None:
        """Queue a message of QoS 0 or 1. Raises ValueError for text that is not a topic."""
        flags = qos << 1 | (RETAINED if retained else 0)
        message = OutgoingMessage(self._topics.get(topic) or self._encoded(topic), payload, flags, done)
        if not self._waiting:
            self.on_waiting()
        self._waiting.append(message)

    def begin(self, window: int, bytes_max: int, has_properties: bool) -> None:
        """Begin a new connection, whose broker takes `window` unconfirmed messages, and packets of
        `bytes_max`."""
        self.window = min(window, WINDOW_MAX)
        self._bytes_max = min(bytes_max, PACKET_BYTES_MAX)
        self._has_properties = has_properties
        self.has_sent = False
        for message in reversed(self._open.values()):
            message.flags |= DUPLICATE
            self._waiting.appendleft(message)
        self._open.clear()

    @property
    def can_send(self) -> bool:
        """True if `packets` would return some."""
        return bool(self._waiting) and (len(self._open) < self.window or not self._waiting[0].flags & 0x02)

    @property
    def is_busy(self) -> bool:
        """True if messages wait, or are unconfirmed."""
        return bool(self._open or self._waiting)

    def overdue_ms(self) -> int | None:
        """When the oldest unconfirmed message is overdue, on the clock of `packets`; None if there is
        none."""
        for oldest in self._open.values():
            return oldest.sent_ms + self._confirm_ms
        return None

    def packets(self, now_ms: int) -> bytes:
        """The next packets, joined."""
        found: list[bytes] = []
        waiting = self._waiting
        for _ in range(min(len(waiting), PACKETS_PER_TURN)):
            if not self.can_send:
                break
            message = waiting.popleft()
            message.sent_ms = now_ms
            self._add(found, message)
        self.has_sent = self.has_sent or bool(found)
        return b"".join(found)

    def _add(self, found: list[bytes], message: OutgoingMessage) -> None:
        variable = message.topic
        if message.flags & 0x02:
            message.packet_id = message.packet_id or self._free_id()
            variable += message.packet_id.to_bytes(2, "big")
        if self._has_properties:
            variable += b"\0"
        length = len(variable) + len(message.payload)
        if length + 5 > self._bytes_max:
            message.done(
                f"packet of {length} bytes is longer than the {self._bytes_max} that the broker takes"
            )
            return
        found += (bytes((0x30 | message.flags,)), encoded_length(length), variable, message.payload)
        if message.packet_id:
            self._open[message.packet_id] = message
        else:
            message.done(None)

    def _free_id(self) -> int:
        packet_id = self._next_id
        while packet_id in self._open:
            packet_id = FIRST_ID if packet_id == LAST_ID else packet_id + 1
        self._next_id = FIRST_ID if packet_id == LAST_ID else packet_id + 1
        return packet_id

    def confirmed(self, packet_id: int, code: int) -> bool:
        """The broker has answered a message; whether it was one of ours."""
        message = self._open.pop(packet_id, None)
        if message is None:
            return False
        if code == QUOTA_EXCEEDED:
            message.packet_id = 0
            self._waiting.appendleft(message)
        else:
            message.done(None if code < FAILURE_FROM else f"broker refused the message: {reason_of(code)}")
        return True

    def _encoded(self, topic: str) -> bytes:
        name = topic.encode()
        if not name or len(name) > TOPIC_BYTES_MAX or any(char in topic for char in "+#\0"):
            raise ValueError(
                f"'{topic}' is no topic to publish to: it is empty, too long, or contains '+', '#' or NUL"
            )
        if len(self._topics) >= TOPICS_MAX:
            self._topics.clear()
        self._topics[topic] = encoded = len(name).to_bytes(2, "big") + name
        return encoded


def encoded_length(length: int) -> bytes:
    """MQTT's integer of one to four bytes.

    >>> encoded_length(127), encoded_length(128)
    (b'\\x7f', b'\\x80\\x01')
    """
    if length < 128:
        return bytes((length,))
    found = bytearray()
    while length > 127:
        found.append(length & 127 | 128)
        length >>= 7
    found.append(length)
    return bytes(found)


def reason_of(code: int) -> str:
    """The name of a reason code of PUBACK in MQTT's standard."""
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.reasoncodes import ReasonCode

    try:
        return str(ReasonCode(PacketTypes.PUBACK, identifier=code).getName())
    except KeyError:
        return f"code {code}"

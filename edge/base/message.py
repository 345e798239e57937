"""The messages of the gateway, as sources give them, the loop takes them and the journal records them."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

Message = tuple[str, bytes, int | None, int]
"""(topic, payload, token, flags). A light tuple, because there is one for every event.

token   give it to `acknowledge` when what the message caused is durable; None: nothing to acknowledge.
        With a quality of service above 0 its last 16 bits are the packet id; sources that are no brokers
        have numbers of their own
flags   RETAINED | DUPLICATE | the quality of service, see `qos_of`
"""

BadMessage = tuple[str, bytes, int | None, str]
"""(topic with escapes for what is no text, payload, token, reason): what cannot be handed on as a
`Message`."""

RETAINED = 0x01
"""The broker had kept the message; it was not sent just now."""

DUPLICATE = 0x08
"""The broker has sent the message before, on this connection or an earlier one, and got no
acknowledgement."""

ACKNOWLEDGED = 0x06
"""The bits of the quality of service: the broker waits for an acknowledgement unless they are 0."""

_payload = itemgetter(1)


def payload_bytes(messages: Iterable[Message]) -> int:
    """The bytes of their payloads."""
    return sum(map(len, map(_payload, messages)))


def qos_of(flags: int) -> int:
    """Quality of service of a message, 0 to 2.

    >>> qos_of(0x0A), qos_of(RETAINED)
    (1, 0)
    """
    return flags >> 1 & 3


def message_id(message: Message) -> int:
    """The packet id of a message; 0 at QoS 0, where tokens are numbers of files or requests.

    >>> message_id(("t", b"", 0x3_0005, 0x02)), message_id(("$source/file", b"", 5, 0))
    (5, 0)
    """
    token, flags = message[2], message[3]
    return token & 0xFFFF if flags & ACKNOWLEDGED and token is not None else 0

"""Cutting a stream of bytes into MQTT packets, and QoS 0 and 1 PUBLISH packets into
messages. Pure, and quick."""

from __future__ import annotations

import struct
from collections.abc import Callable

from edge.base.message import DUPLICATE, BadMessage, Message
from edge.intake.sources.base import ConnectionLost

_HEAD = struct.Struct(">BBBH")
_head, HEAD_BYTES = _HEAD.unpack_from, _HEAD.size
"""The first bytes of a packet: its command, its length, and that of its topic if the length of the packet has
two bytes, as it mostly has."""

TOPICS_MAX = 10_000
"""The number of decoded topics in the cache; one more and the cache is emptied."""


class PublishParser:
    """Bytes in, tuples out; what is incomplete waits for the next bytes.

    epoch              of the connection; it is part of each token,
                       so that an acknowledgement finds its connection
    has_properties     MQTT 5
    packet_bytes_max   a longer PUBLISH is dropped as it comes in and reported as bad, its payload left out
    other              takes the packets that are not QoS 0 or 1 PUBLISH, as (first byte, body)
    """

    def __init__(
        self, epoch: int, has_properties: bool, packet_bytes_max: int, other: Callable[[int, bytes], None]
    ) -> None:
        self.duplicates = 0
        self._epoch_bits = epoch << 16
        self._has_properties = has_properties
        self._packet_bytes_max = packet_bytes_max
        self._other = other
        self._topics: dict[bytes, str] = {}
        self._chunks: list[bytes] = []  # the beginning of a packet that is not complete
        self._held = 0  # bytes in the chunks
        self._needed = 0  # bytes there must be before it is worth looking again
        self._skip = 0  # bytes to come that belong to a packet that is being dropped

    def feed(self, data: bytes, batch: list[Message], bad: list[BadMessage]) -> None:
        """Parse what has arrived; an incomplete packet waits for the next call. Raises `ConnectionLost`."""
        if self._skip or self._chunks:
            data = self._continued(data)
            if not data:
                return
        try:
            position = self._parse(data, batch, bad)
        except IndexError:
            raise ConnectionLost("malformed packet: it ends too early") from None
        if position < len(data):
            self._chunks.append(data[position:])
            self._held = len(data) - position

    def _continued(self, data: bytes) -> bytes:
        """The data without what is dropped of it, behind the beginning of its first packet; empty where that
        is still incomplete."""
        dropped = min(self._skip, len(data))
        self._skip -= dropped
        data = data[dropped:]
        if not self._chunks:
            return data
        self._chunks.append(data)
        self._held += len(data)
        if self._held < self._needed:
            return b""
        data = b"".join(self._chunks)
        self._chunks.clear()
        return data

    def cut_off_id(self) -> int | None:
        """The packet id of a first transmission that is incomplete; None where none is,
        or its id has not come."""
        data = b"".join(self._chunks)
        if len(data) < 2 or data[0] & 0xFE != 0x32:  # PUBLISH, QoS 1, not a duplicate
            return None
        _, start = variable_integer(data, 1, len(data))
        if not start or len(data) < start + 2:
            return None
        end = start + 2 + (data[start] << 8 | data[start + 1])
        return data[end] << 8 | data[end + 1] if len(data) >= end + 2 else None

    # One loop with few calls, because it runs for every message.
    def _parse(self, data: bytes, batch: list[Message], bad: list[BadMessage]) -> int:  # noqa: PLR0912
        """Parse whole packets; where the first incomplete one begins. Sets how many bytes that one needs."""
        append, topics, bytes_max = batch.append, self._topics, self._packet_bytes_max
        has_properties, epoch_bits = self._has_properties, self._epoch_bits
        position, end = 0, len(data)
        while end - position >= HEAD_BYTES:
            command, length, second, topic_bytes = _head(data, position)
            if length < 128:
                start, topic_bytes = position + 2, second << 8 | topic_bytes >> 8
            elif second < 128:
                start, length = position + 3, length & 127 | second << 7
            else:
                length, start = variable_integer(data, position + 1, end)
                if not start or end < start + 2:
                    break
                topic_bytes = data[start] << 8 | data[start + 1]
            if length > bytes_max and command & 0xF4 == 0x30:
                position, waits = self._drop(data, position, start, length, bad)
                if waits:
                    return position
                continue
            stop = start + length
            if stop > end:
                self._needed = stop - position
                return position
            if command & 0xF4 == 0x30:  # PUBLISH, and not QoS 2
                start += 2
                body = start + topic_bytes
                name = data[start:body]
                token: int | None = None
                if command & 0x02:
                    token = epoch_bits | data[body] << 8 | data[body + 1]
                    body += 2
                    if command & DUPLICATE:
                        self.duplicates += 1
                if has_properties:
                    body = after_properties(data, body, stop) if data[body] else body + 1
                if body > stop:
                    raise ConnectionLost("malformed PUBLISH packet: its parts are longer than the packet")
                topic = topics.get(name) or self._topic(name)
                if topic:
                    append((topic, data[body:stop], token, command & 0x0F))
                else:
                    bad.append((escaped(name), data[body:stop], token, why_bad(name)))
            else:
                self._other(command, data[start:stop])
            position = stop
        return position if position == end else self._parse_short(data, position, bad)

    def _parse_short(self, data: bytes, position: int, bad: list[BadMessage]) -> int:
        """Like `_parse`, for the last bytes: pings and acknowledgements, or the beginning of a packet."""
        end = len(data)
        while end - position >= 2:
            command, length = data[position], data[position + 1]
            stop = position + 2 + length
            if length > 127 or stop > end:
                break
            body = data[position + 2 : stop]
            if command & 0xF4 != 0x30:
                self._other(command, body)
            elif body == b"\0\0" and not command & 0x02:
                bad.append(("", b"", None, why_bad(b"")))
            else:
                raise ConnectionLost("malformed PUBLISH packet: it is too short")
            position = stop
        self._needed = end - position + 1
        return position

    def _topic(self, name: bytes) -> str | None:
        """The topic as text, remembered; None for bytes that are not a topic."""
        try:
            topic = name.decode("utf-8")
        except UnicodeDecodeError:
            return None
        if len(self._topics) >= TOPICS_MAX:
            self._topics.clear()
        self._topics[name] = topic
        return topic

    def _drop(
        self, data: bytes, position: int, start: int, length: int, bad: list[BadMessage]
    ) -> tuple[int, bool]:
        """Pass over a packet that is too long, once its topic and id are here: where to go
        on, and whether to wait."""
        end = len(data)
        body = start + 2
        if end >= body:
            body += data[start] << 8 | data[start + 1]
        if body + 2 > start + length:
            raise ConnectionLost("malformed PUBLISH packet: its parts are longer than the packet")
        if end < body + 2:
            self._needed = body + 2 - position
            return position, True
        name = data[start + 2 : body]
        token = self._epoch_bits | data[body] << 8 | data[body + 1] if data[position] & 0x02 else None
        bad.append((escaped(name), b"", token, too_large(length, self._packet_bytes_max)))
        self._skip = max(0, start + length - end)
        return min(end, start + length), False


def variable_integer(data: bytes, position: int, end: int) -> tuple[int, int]:
    """MQTT's integer of one to four bytes, and where it ends; (0, 0) when `end` comes first.

    >>> variable_integer(bytes([0x80, 0x01]), 0, 2), variable_integer(bytes([0x80]), 0, 1)
    ((128, 2), (0, 0))
    """
    value = 0
    for shift in (0, 7, 14, 21):
        if position >= end:
            return 0, 0
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ConnectionLost("malformed packet: its length has more than four bytes")


def after_properties(data: bytes, position: int, stop: int) -> int:
    """The start of the payload: rules do not read properties, and their length stands first."""
    size, start = variable_integer(data, position, stop)
    if not start:
        raise ConnectionLost("malformed PUBLISH packet: its properties are cut off")
    return start + size


def escaped(name: bytes) -> str:
    """A topic that may be no text, made printable.

    >>> escaped(bytes([0x61, 0xFF]))
    'a\\\\xff'
    """
    return name.decode("utf-8", "backslashreplace")


def why_bad(name: bytes) -> str:
    """The fault of a topic that `PublishParser` refused."""
    return "topic is not valid UTF-8" if name else "message without a topic"


def too_large(length: int, packet_bytes_max: int) -> str:
    """The reason for dropping a packet by its length."""
    return f"the packet is longer than the {packet_bytes_max} bytes allowed: {length}"

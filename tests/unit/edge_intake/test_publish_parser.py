"""The parser of packets: any cut of the same bytes gives the same messages; nonsense is refused."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.base.message import BadMessage, Message
from edge.intake.sources.base import ConnectionLost
from edge.intake.sources.mqtt.publish_parser import PublishParser, variable_integer


def length_bytes(length: int) -> bytes:
    out = bytearray()
    while True:
        length, low = divmod(length, 128)
        out.append(low | (128 if length else 0))
        if not length:
            return bytes(out)


def publish(
    topic: bytes, payload: bytes, qos: int, packet_id: int, flags: int, properties: bytes | None
) -> bytes:
    body = len(topic).to_bytes(2, "big") + topic + (packet_id.to_bytes(2, "big") if qos else b"")
    if properties is not None:
        body += length_bytes(len(properties)) + properties
    return bytes([0x30 | qos << 1 | flags]) + length_bytes(len(body) + len(payload)) + body + payload


topics = st.sampled_from([b"a", b"plant/7", b"x" * 200, "größe".encode()])
sizes = st.one_of(st.integers(0, 140), st.sampled_from([16_370, 16_384, 20_000]))


@given(
    st.lists(
        st.tuples(topics, sizes, st.integers(0, 1), st.integers(1, 65_535), st.sampled_from([0, 1, 8])),
        max_size=8,
    ),
    st.lists(st.integers(1, 400), min_size=1, max_size=20),
    st.sampled_from([None, 0, 5, 130]),
)
def test_any_cut_gives_the_same_messages(
    sent: list[tuple[bytes, int, int, int, int]], cuts: list[int], properties_size: int | None
) -> None:
    properties = None if properties_size is None else b"p" * properties_size
    stream = b""
    expected: list[Message] = []
    for topic, size, qos, packet_id, flags in sent:
        payload = bytes(index & 0xFF for index in range(size))
        stream += publish(topic, payload, qos, packet_id, flags, properties) + b"\xd0\x00"
        expected.append((topic.decode(), payload, 3 << 16 | packet_id if qos else None, qos << 1 | flags))
    others: list[int] = []
    parser = PublishParser(3, properties is not None, 1 << 20, lambda command, body: others.append(command))
    batch: list[Message] = []
    bad: list[BadMessage] = []
    position = 0
    while position < len(stream):
        cut = cuts[position % len(cuts)] * (40 if len(stream) > 10_000 else 1)
        parser.feed(stream[position : position + cut], batch, bad)
        position += cut
    assert batch == expected and bad == []
    assert others == [0xD0] * len(sent)
    assert parser.duplicates == sum(1 for _, _, qos, _, flags in sent if qos and flags == 8)


@pytest.mark.parametrize("cut", [1, 3, 7, 64, 5_000])
def test_a_packet_that_is_too_long_is_dropped_and_told(cut: int) -> None:
    """What follows it is read as if nothing had been."""
    stream = publish(b"big", b"x" * 3_000, 1, 7, 0, None) + publish(b"t", b"after", 1, 8, 0, None)
    parser = PublishParser(1, False, 200, lambda command, body: None)
    batch: list[Message] = []
    bad: list[BadMessage] = []
    for start in range(0, len(stream), cut):
        parser.feed(stream[start : start + cut], batch, bad)
    assert batch == [("t", b"after", 1 << 16 | 8, 2)]
    assert bad == [("big", b"", 1 << 16 | 7, "the packet is longer than the 200 bytes allowed: 3007")]


def test_a_topic_that_is_no_text_is_told_and_can_be_acknowledged() -> None:
    batch: list[Message] = []
    bad: list[BadMessage] = []
    PublishParser(1, False, 200, lambda command, body: None).feed(
        publish(b"a\xff", b"x", 1, 9, 0, None), batch, bad
    )
    assert (batch, bad) == ([], [("a\\xff", b"x", 1 << 16 | 9, "topic is not valid UTF-8")])


@pytest.mark.parametrize(
    "stream",
    [
        b"\x30\x00" + b"\x00" * 4,  # no room for the topic's length
        b"\x30\x03\x00\x05a" + b"\x00" * 9,  # a topic longer than the packet
        b"\x32\x04\x00\x01ab" + b"\x00" * 9,  # half a packet id
        b"\x30\xff\xff\xff\xff\x01",  # a length of five bytes
        b"\x32\xc9\x01\xff\xff" + b"a" * 300,  # too long, and its topic longer still
    ],
)
def test_malformed_packets_end_the_connection(stream: bytes) -> None:
    parser = PublishParser(1, False, 128, lambda command, body: None)
    with pytest.raises(ConnectionLost, match="malformed"):
        parser.feed(stream, [], [])


def test_properties_that_are_cut_off_end_the_connection() -> None:
    with pytest.raises(ConnectionLost, match="malformed"):
        PublishParser(1, True, 128, lambda command, body: None).feed(b"\x30\x04\x00\x01a\x80", [], [])


@given(st.binary(max_size=200), st.booleans(), st.integers(1, 50))
def test_rubbish_gives_messages_or_a_lost_connection_and_nothing_else(
    noise: bytes, properties: bool, cut: int
) -> None:
    parser = PublishParser(1, properties, 128, lambda command, body: None)
    messages: list[Any] = []
    with contextlib.suppress(ConnectionLost):
        for start in range(0, len(noise), cut):
            parser.feed(noise[start : start + cut], messages, [])
    assert all(len(message[1]) < len(noise) for message in messages)


def test_variable_integers() -> None:
    for value in (0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455):
        encoded = length_bytes(value)
        assert variable_integer(encoded, 0, len(encoded)) == (value, len(encoded))
        assert variable_integer(encoded, 0, len(encoded) - 1) == (0, 0)

"""Messages out on an MQTT connection: packets by hand, the broker's window, refusals, a new connection."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edge.intake.sources.mqtt.publishing import Publishing

FIRST = bytes.fromhex("3209 0003 612f62 8000 6869")
"""PUBLISH, QoS 1, topic a/b, packet id 0x8000, payload hi."""


def sent(done: list[str | None]) -> tuple[Publishing, Callable[[str, int], None]]:
    publishing = Publishing(confirm_ms=5_000)
    return publishing, lambda text, qos: publishing.publish("a/b", text.encode(), qos, False, done.append)


def test_packets_are_those_of_the_standard() -> None:
    done: list[str | None] = []
    publishing, publish = sent(done)
    publish("hi", 1)
    publish("lo", 0)
    assert publishing.packets(0) == FIRST + bytes.fromhex("3007 0003 612f62 6c6f")
    assert done == [None], "QoS 0 is done when it is handed on"
    assert publishing.confirmed(0x8000, 0) and not publishing.confirmed(0x8000, 0)
    assert done == [None, None]


def test_mqtt_5_has_properties_and_retained_a_flag() -> None:
    publishing = Publishing(confirm_ms=5_000)
    publishing.begin(10, 1_000, has_properties=True)
    publishing.publish("a/b", b"hi", 1, True, lambda refusal: None)
    assert publishing.packets(0) == bytes.fromhex("330a 0003 612f62 8000 00 6869")


def test_no_more_than_the_window_is_under_way() -> None:
    publishing, publish = sent([])
    publishing.begin(2, 1_000, has_properties=False)
    for text in "abc":
        publish(text, 1)
    assert publishing.packets(0).count(b"\x00\x03a/b") == 2
    assert not publishing.can_send
    publishing.confirmed(0x8001, 0)
    assert publishing.can_send and publishing.packets(0).endswith(b"c")


def test_what_was_open_goes_first_on_the_next_connection_and_is_marked() -> None:
    publishing, publish = sent([])
    for text in "ab":
        publish(text, 1)
    publishing.packets(0)
    publish("c", 1)
    publishing.begin(10, 1_000, has_properties=False)
    again = publishing.packets(0)
    assert [again[at] for at in (0, 10, 20)] == [0x3A, 0x3A, 0x32], "DUP, DUP, new"
    assert [again[at] for at in (9, 19, 29)] == [*b"abc"]
    assert [again[at + 8] for at in (0, 10, 20)] == [0, 1, 2], "each under the packet id that it had"


def test_it_tells_whether_something_waits_and_whether_something_went_out() -> None:
    publishing, publish = sent([])
    assert not publishing.is_busy
    publish("a", 1)
    assert publishing.is_busy and not publishing.has_sent
    publishing.packets(0)
    assert publishing.is_busy and publishing.has_sent
    publishing.confirmed(0x8000, 0)
    assert not publishing.is_busy
    publishing.begin(10, 1_000, has_properties=False)
    assert not publishing.has_sent, "on the new connection"


def test_refusals_are_told_and_a_full_broker_is_tried_again() -> None:
    done: list[str | None] = []
    publishing, publish = sent(done)
    publish("a", 1)
    publishing.packets(0)
    assert publishing.confirmed(0x8000, 0x97) and not done
    assert publishing.packets(0)
    publishing.confirmed(0x8001, 0x87)
    assert done == ["broker refused the message: Not authorized"]


def test_what_the_broker_does_not_take_is_refused_here() -> None:
    done: list[str | None] = []
    publishing, publish = sent(done)
    publishing.begin(10, 100, has_properties=False)
    publish("x" * 200, 1)
    publish("ok", 1)
    assert publishing.packets(0).endswith(b"ok")
    assert done == ["packet of 207 bytes is longer than the 100 that the broker takes"]


@pytest.mark.parametrize("topic", ["", "a/+", "#", "a\0b", "a" * 65_536, "\udc00"])
def test_a_topic_that_is_none_is_refused(topic: str) -> None:
    with pytest.raises(ValueError, match=r"topic|surrogates"):
        Publishing(5_000).publish(topic, b"", 1, False, lambda refusal: None)


def test_a_broker_that_does_not_confirm_is_overdue() -> None:
    publishing, publish = sent([])
    assert publishing.overdue_ms() is None
    publish("a", 1)
    publishing.packets(100)
    assert publishing.overdue_ms() == 5_100

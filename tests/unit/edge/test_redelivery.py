"""Which messages are taken for repeated ones, and which are not."""

from __future__ import annotations

from edge.intake.redelivery import Redeliveries
from edge.intake.sources.base import DUPLICATE, Message

QOS_1 = 0x02


def message(packet: int, payload: bytes = b"x", *, again: bool = False, epoch: int = 1) -> Message:
    return ("t", payload, epoch << 16 | packet, QOS_1 | (DUPLICATE if again else 0))


def test_a_repeated_message_is_known_however_often_it_comes() -> None:
    redeliveries = Redeliveries()
    assert redeliveries.fresh([message(1), message(2)]) == [message(1), message(2)]
    again = message(1, again=True, epoch=2)
    assert redeliveries.fresh([again]) == []
    assert redeliveries.fresh([again]) == []
    assert redeliveries.recognised == 2


def test_the_next_run_knows_what_was_stored() -> None:
    first = Redeliveries()
    first.fresh([message(1), message(2)])
    second = Redeliveries(first.snapshot())
    assert second.fresh([message(2, again=True), message(3, again=True)]) == [message(3, again=True)]
    third = Redeliveries(second.snapshot())
    assert third.fresh([message(1, again=True)]) == [], "not repeated in the second run, but still possible"


def test_only_what_is_marked_and_has_the_same_content_is_a_repetition() -> None:
    redeliveries = Redeliveries()
    redeliveries.fresh([message(1, b"a")])
    others = [message(1, b"a"), message(1, b"b", again=True), message(2, b"a", again=True)]
    assert redeliveries.fresh(others) == others


def test_quality_0_is_never_remembered() -> None:
    redeliveries = Redeliveries()
    messages: list[Message] = [("t", b"x", None, 0)] * 3
    assert redeliveries.fresh(messages) == messages
    assert redeliveries.snapshot() == b""


def test_every_packet_id_may_be_in_flight() -> None:
    redeliveries = Redeliveries()
    redeliveries.fresh([message(packet, str(packet).encode()) for packet in range(1, 65_536)])
    again = [message(packet, str(packet).encode(), again=True, epoch=2) for packet in range(1, 65_536)]
    assert Redeliveries(redeliveries.snapshot()).fresh(again) == []


def test_a_message_under_a_used_id_counts_once_the_earlier_acknowledgement_was_seen() -> None:
    """Its first transmission was cut off, so it comes marked as a duplicate, with the
    content of the one before."""
    redeliveries = Redeliveries()
    redeliveries.fresh([message(1)])
    redeliveries.confirmed([1])
    again = message(1, again=True, epoch=2)
    assert redeliveries.fresh([again]) == [again]
    assert redeliveries.fresh([again]) == []


def test_a_new_session_repeats_nothing() -> None:
    redeliveries = Redeliveries()
    redeliveries.fresh([message(1)])
    redeliveries.new_session()
    again = message(1, again=True, epoch=2)
    assert redeliveries.fresh([again]) == [again]


def test_a_torn_snapshot_is_read_as_far_as_it_goes() -> None:
    first = Redeliveries()
    first.fresh([message(1)])
    assert Redeliveries(first.snapshot() + b"\x00").fresh([message(1, again=True)]) == []

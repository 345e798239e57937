"""Which messages are taken for repeated ones, and which are not."""

from __future__ import annotations

from edge.redelivery import FORGET_AFTER_MESSAGES, Redeliveries
from edge.sources.base import DUPLICATE, Message

QOS_1 = 0x02


def message(packet: int, payload: bytes = b"x", *, again: bool = False, epoch: int = 1) -> Message:
    return ("t", payload, epoch << 16 | packet, QOS_1 | (DUPLICATE if again else 0))


def test_a_repeated_message_is_known_before_and_after_its_checkpoint() -> None:
    redeliveries = Redeliveries()
    assert redeliveries.fresh([message(1), message(2)]) == [message(1), message(2)]
    again = message(1, again=True, epoch=2)
    assert redeliveries.fresh([again]) == []
    redeliveries.committed()
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


def test_memory_is_bounded_by_two_checkpoints() -> None:
    redeliveries = Redeliveries()
    for checkpoint in range(5):
        redeliveries.fresh([message(packet, str(checkpoint).encode()) for packet in range(100)])
        redeliveries.committed()
    assert len(redeliveries.snapshot()) == 100 * 6


def test_an_earlier_run_is_forgotten_when_all_packet_ids_have_been_used_anew() -> None:
    first = Redeliveries()
    first.fresh([message(1)])
    second = Redeliveries(first.snapshot())
    for start in range(0, FORGET_AFTER_MESSAGES + 1, 1_000):
        second.fresh([message(start % 65_536, b"new")] * 1_000)
        second.committed()
    assert second.fresh([message(1, again=True)]) == [message(1, again=True)]


def test_a_torn_snapshot_is_read_as_far_as_it_goes() -> None:
    first = Redeliveries()
    first.fresh([message(1)])
    assert Redeliveries(first.snapshot() + b"\x00").fresh([message(1, again=True)]) == []

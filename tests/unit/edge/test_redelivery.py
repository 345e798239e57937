"""Which messages are taken for repeated ones, and which are not."""

from __future__ import annotations

from edge.intake.redelivery import Redeliveries
from edge.intake.sources.base import DUPLICATE, Message

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


def test_memory_is_bounded_by_two_checkpoints_or_the_minimum() -> None:
    redeliveries = Redeliveries(kept_min=150)
    for checkpoint, count in enumerate((100, 100, 100, 10, 10, 10)):
        redeliveries.fresh([message(packet, str(checkpoint).encode()) for packet in range(count)])
        redeliveries.committed()
        expected = (100, 200, 200, 150, 150, 150)[checkpoint]
        assert len(redeliveries.snapshot()) == expected * 6


def test_the_oldest_are_forgotten_first_also_those_of_an_earlier_run() -> None:
    first = Redeliveries(kept_min=2)
    first.fresh([message(1), message(2)])
    second = Redeliveries(first.snapshot(), kept_min=2)
    second.fresh([message(3)])
    second.committed()
    assert second.fresh([message(2, again=True), message(3, again=True)]) == []
    assert second.fresh([message(1, again=True)]) == [message(1, again=True)]


def test_a_torn_snapshot_is_read_as_far_as_it_goes() -> None:
    first = Redeliveries()
    first.fresh([message(1)])
    assert Redeliveries(first.snapshot() + b"\x00").fresh([message(1, again=True)]) == []

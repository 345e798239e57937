"""Which messages are taken for repeated ones, and which are not."""

from __future__ import annotations

import pytest

from edge.base.message import DUPLICATE, Message
from edge.intake.redelivery import REMEMBERED_MIN, Redeliveries

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
    second = Redeliveries(*first.snapshot())
    assert second.fresh([message(2, again=True), message(3, again=True)]) == [message(3, again=True)]
    third = Redeliveries(*second.snapshot())
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
    assert redeliveries.snapshot() == (b"", b"")


def test_tokens_of_other_sources_are_no_packet_ids() -> None:
    """A file read from its start numbers its rows from 1, before the broker repeats its messages."""
    redeliveries = Redeliveries()
    redeliveries.fresh([message(1), message(2)])
    rows: list[Message] = [("$source/site", b"row", number, 0) for number in (1, 2)]
    assert redeliveries.fresh(rows) == rows
    assert redeliveries.fresh([message(1, again=True, epoch=2), message(2, again=True, epoch=2)]) == []


def test_thousands_may_be_in_flight() -> None:
    redeliveries = Redeliveries()
    redeliveries.fresh([message(packet, str(packet).encode()) for packet in range(1, REMEMBERED_MIN + 1)])
    again = [message(packet, str(packet).encode(), again=True) for packet in range(1, REMEMBERED_MIN + 1)]
    assert Redeliveries(*redeliveries.snapshot()).fresh(again) == []


@pytest.mark.parametrize("batch", [1, 500])
def test_an_equal_message_under_an_id_that_has_come_round_is_new(batch: int) -> None:
    """It was lost on its way with the connection, so the first that comes is marked as a duplicate."""
    redeliveries = Redeliveries()
    for first in range(1, 65_536, batch):
        redeliveries.fresh([message(packet) for packet in range(first, min(first + batch, 65_536))])
    lost = [message(packet, again=True, epoch=2) for packet in range(1, 1_001)]
    assert redeliveries.fresh(lost) == lost
    repeated = [message(packet, again=True, epoch=3) for packet in range(65_535 - 20_000, 65_536)]
    assert redeliveries.fresh(repeated) == []


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
    assert Redeliveries(first.snapshot()[0] + b"\x00").fresh([message(1, again=True)]) == []


def test_messages_that_have_gathered_are_known_wherever_it_counts() -> None:
    redeliveries = Redeliveries()
    for packet in range(1, 4):
        redeliveries.fresh([message(packet)])
    redeliveries.confirmed([2])
    again = [message(packet, again=True, epoch=2) for packet in range(1, 4)]
    assert redeliveries.fresh(again) == [again[1]]
    assert Redeliveries(*redeliveries.snapshot()).fresh(again) == []

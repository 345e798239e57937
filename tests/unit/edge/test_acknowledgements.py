"""When messages that wait for their acknowledgement make a commit due."""

from __future__ import annotations

from edge.journal.acknowledgements import MESSAGES_MAX, Acknowledgements, PendingAcknowledgement

SYNC_MS, QUIET_MS = 50, 2


def taken(*batches: tuple[int, int]) -> Acknowledgements:
    """Batches of so many messages, each with its time."""
    found = Acknowledgements()
    for messages, now_ms in batches:
        found.add(PendingAcknowledgement(lambda tokens: None, [0] * messages, now_ms))
    return found


def test_a_quiet_time_after_the_last_message() -> None:
    assert taken((1, 100)).due_ms(SYNC_MS, QUIET_MS) == 102
    assert taken((1, 100), (1, 101)).due_ms(SYNC_MS, QUIET_MS) == 103


def test_the_sync_interval_after_the_first_message_of_a_busy_line() -> None:
    assert taken(*((1, now_ms) for now_ms in range(100, 150))).due_ms(SYNC_MS, QUIET_MS) == 150


def test_at_once_where_many_wait_before_the_broker_has_to() -> None:
    assert taken((MESSAGES_MAX - 1, 100), (1, 101)).due_ms(SYNC_MS, QUIET_MS) == 101


def test_nothing_is_due_without_messages() -> None:
    assert Acknowledgements().due_ms(SYNC_MS, QUIET_MS) is None


def test_the_first_ones_that_need_no_commit_are_acknowledged_and_the_others_have_their_own_time() -> None:
    acknowledged: list[int] = []
    found, is_confirmed = Acknowledgements(), False
    found.add(PendingAcknowledgement(acknowledged.extend, [1, 2], 100, lambda: True))
    found.add(PendingAcknowledgement(acknowledged.extend, [3], 140, lambda: is_confirmed))
    found.add(PendingAcknowledgement(acknowledged.extend, [4], 149, lambda: True))
    assert found.due_ms(SYNC_MS, QUIET_MS) == 150
    found.settle(150, QUIET_MS)
    assert (acknowledged, found.messages) == ([1, 2], 2)
    assert found.due_ms(SYNC_MS, QUIET_MS) == 151, "the line fell quiet after the last one"
    found.settle(151, QUIET_MS)
    assert acknowledged == [1, 2], "the order is kept"
    is_confirmed = True
    found.settle(151, QUIET_MS)
    assert (acknowledged, found.due_ms(SYNC_MS, QUIET_MS)) == ([1, 2, 3, 4], None)


def test_those_of_a_commit_under_way_are_acknowledged_once() -> None:
    acknowledged: list[int] = []
    found = Acknowledgements()
    found.add(PendingAcknowledgement(acknowledged.extend, [1], 100, lambda: True))
    found.add(PendingAcknowledgement(acknowledged.extend, [2], 100))
    found.begin(100, QUIET_MS)
    found.add(PendingAcknowledgement(acknowledged.extend, [3], 101, lambda: True))
    found.settle(101, QUIET_MS)
    assert acknowledged == [1]
    found.succeed()
    assert (acknowledged, found.messages) == ([1, 2], 1)
    found.settle(101, QUIET_MS)
    assert (acknowledged, found.messages) == ([1, 2, 3], 0)

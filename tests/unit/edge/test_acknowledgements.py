"""When messages that wait for their acknowledgement make a commit due."""

from __future__ import annotations

from edge.journal.acknowledgements import MESSAGES_MAX, Acknowledgements, Entry

SYNC_MS, QUIET_MS = 50, 2


def taken(*batches: tuple[int, int]) -> Acknowledgements:
    """Batches of so many messages, each with its time."""
    found = Acknowledgements()
    for messages, now_ms in batches:
        found.add(Entry(lambda tokens: None, [0] * messages), now_ms)
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

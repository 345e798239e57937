"""Messages taken in and not yet acknowledged to their senders, and the time when the
acknowledgement is due."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter

from msgspec import Struct


class PendingAcknowledgement(Struct, frozen=True):
    """The function that acknowledges, and the tokens of the messages that it is given then.

    at_ms     when they were taken in
    is_done   True once nothing is left of the messages that a crash could lose;
              None: only a commit makes it so
    """

    acknowledge: Callable[[list[int]], None]
    tokens: list[int]
    at_ms: int
    is_done: Callable[[], bool] | None = None


_function = attrgetter("acknowledge")

MESSAGES_MAX = 500
"""From so many on a commit is due at once: half of those that a broker may send by default before it waits
for acknowledgements (`mqtt.receiveMax`)."""


QUIET_MIN = 3
"""The times in a row that the line must have fallen quiet at the same number."""

WINDOW_MIN = 8
"""Fewer in flight are more likely a slow sender than a full window."""


class Window:
    """An estimate of the broker's window: the number of messages that it has in flight before it waits for
    acknowledgements.

    A broker with 20 messages in flight sends the next one when the first is acknowledged. Waiting for more
    before a commit would then only cost time. MQTT 3.1.1 does not transmit the number, so it is inferred: a
    line that falls quiet three times with the same number unacknowledged is full at that number, until it
    brings more.
    """

    def __init__(self) -> None:
        self.size: int | None = None
        self._last = self._same = 0

    def is_full(self, unacknowledged: int) -> bool:
        """True if nothing more will come before an acknowledgement."""
        if self.size is not None and unacknowledged > self.size:
            self.size, self._same = None, 0
        return self.size is not None and unacknowledged == self.size

    def fell_quiet(self, unacknowledged: int) -> None:
        """Note that nothing has come for a while, with so many messages unacknowledged.

        >>> window = Window()
        >>> for count in (20, 20, 20):
        ...     window.fell_quiet(count)
        >>> window.is_full(19), window.is_full(20), window.is_full(21), window.is_full(20)
        (False, True, False, False)
        """
        self._same = self._same + 1 if unacknowledged == self._last else 1
        self._last = unacknowledged
        if self._same >= QUIET_MIN and unacknowledged >= WINDOW_MIN:
            self.size = unacknowledged


class Acknowledgements:
    """Those that wait for the next commit, and those that the commit under way will allow. Times are
    monotonic ms."""

    def __init__(self) -> None:
        self.messages = 0
        """Messages taken in and not acknowledged yet."""
        self._waiting: list[PendingAcknowledgement] = []
        self._storing: list[PendingAcknowledgement] = []
        self._window = Window()
        self._first_ms: int | None = None
        self._last_ms = 0

    def add(self, entry: PendingAcknowledgement) -> None:
        """Messages were taken in."""
        self._waiting.append(entry)
        self.messages += len(entry.tokens)
        self._last_ms = entry.at_ms
        if self._first_ms is None:
            self._first_ms = entry.at_ms

    @property
    def is_window_full(self) -> bool:
        """True if the broker sends nothing more before an acknowledgement, judging by its traffic."""
        return self._window.is_full(self.messages)

    def due_ms(self, sync_interval_ms: int, quiet_ms: int) -> int | None:
        """The time of the next commit: after a quiet time, once the first message has waited so long, or once
        there are many, or the broker sends no more."""
        if self._first_ms is None:
            return None
        if self.messages >= MESSAGES_MAX or self._window.is_full(self.messages):
            return self._last_ms
        return min(self._first_ms + sync_interval_ms, self._last_ms + quiet_ms)

    def begin(self, now_ms: int, quiet_ms: int) -> None:
        """A commit begins that holds all that were added."""
        self._note_quiet(now_ms, quiet_ms)
        self._storing += self._waiting
        self._waiting = []
        self._first_ms = None

    def succeed(self) -> None:
        """Acknowledge the messages of the commit, which is durable now."""
        storing, self._storing = self._storing, []
        self._acknowledge(storing)

    def settle(self, now_ms: int, quiet_ms: int) -> None:
        """Acknowledge the first ones, those of the commit under way included, up to one that needs a
        commit."""
        entries = [*self._storing, *self._waiting]
        done = 0
        for entry in entries:
            if entry.is_done is None or not entry.is_done():
                break
            done += 1
        if not done:
            return
        self._note_quiet(now_ms, quiet_ms)
        storing = len(self._storing)
        self._storing, self._waiting = entries[done:storing], entries[max(done, storing) :]
        self._first_ms = self._waiting[0].at_ms if self._waiting else None
        self._acknowledge(entries[:done])

    def _acknowledge(self, entries: Iterable[PendingAcknowledgement]) -> None:
        for acknowledge, same in groupby(entries, _function):
            tokens: list[int] = []
            for entry in same:
                tokens += entry.tokens
            self.messages -= len(tokens)
            acknowledge(tokens)

    def _note_quiet(self, now_ms: int, quiet_ms: int) -> None:
        if self.messages and now_ms >= self._last_ms + quiet_ms:
            self._window.fell_quiet(self.messages)

    def fail(self, now_ms: int) -> None:
        """Let the messages wait for the next commit, because this one failed."""
        self._waiting[:0], self._storing = self._storing, []
        if self._first_ms is None and self._waiting:
            self._first_ms = now_ms

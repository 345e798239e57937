"""The number of messages that the broker has in flight before it waits for acknowledgements,
as far as its traffic shows.

A broker with 20 messages in flight sends the next one when the first is acknowledged. Waiting for more before
a commit would then only cost time. MQTT 3.1.1 does not transmit the number, so it is inferred: a line
that falls quiet three times with the same number unacknowledged is full at that number, until it brings more.
"""

from __future__ import annotations

SAME_MIN = 3
"""The times in a row that the line must have fallen quiet at the same number."""

MESSAGES_MIN = 8
"""Fewer in flight are more likely a slow sender than a full window."""


class Window:
    """An estimate of the broker's window."""

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
        if self._same >= SAME_MIN and unacknowledged >= MESSAGES_MIN:
            self.size = unacknowledged

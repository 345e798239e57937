"""The interface of sources: batches out, acknowledgements in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from edge.base.message import BadMessage, Message

OnBatch = Callable[[list[Message]], None]
OnBad = Callable[[list[BadMessage]], None]


class ConnectionLost(Exception):
    """The connection has ended; the text gives the reason."""


class Source(Protocol):
    """A source runs in a thread of its own. All methods may be called from any thread."""

    def start(self, on_batch: OnBatch, on_bad: OnBad | None = None) -> None:
        """Begin. `on_batch` gets what one wake-up brought, in order, on the source's
        thread, and must be quick."""

    def acknowledge(self, tokens: Iterable[int]) -> None:
        """Confirm to the sender that these messages are safe. Tokens of an earlier connection are ignored."""

    def pause(self) -> None:
        """Read no more until `resume`; the connection stays alive."""

    def resume(self) -> None:
        """Read again."""

    def stop(self, timeout_ms: int) -> bool:
        """Send what is waiting, disconnect and end the thread; whether it ended in time."""

    @property
    def stats(self) -> dict[str, int]:
        """Counters and gauges by name."""

"""The thread, the pause and the end of a source that reads by itself, such as from a file
or by asking a server."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable

from edge.base.message import Message
from edge.clock import Clock
from edge.intake.sources.base import OnBad, OnBatch

log = logging.getLogger("penstock.sources")


class WorkerSource(ABC):
    """A source whose `run` reads until it is done or `_goes_on` returns False; an error
    in it ends no other source."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self._clock = clock
        self._changed = threading.Condition()
        self._is_paused = False
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._on_batch: OnBatch | None = None
        self._counts = {"connected": 0, "epoch": 1, "messages": 0, "errors": 0}

    @abstractmethod
    def run(self) -> None:
        """Read and `_deliver`, asking `_goes_on` before each step."""

    def start(self, on_batch: OnBatch, on_bad: OnBad | None = None) -> None:
        self._on_batch = on_batch
        self._thread = threading.Thread(target=self._guarded, name=f"source {self.name}", daemon=True)
        self._thread.start()

    def acknowledge(self, tokens: Iterable[int]) -> None:
        """Do nothing; sources with a position override this."""

    def pause(self) -> None:
        with self._changed:
            self._is_paused = True

    def resume(self) -> None:
        with self._changed:
            self._is_paused = False
            self._changed.notify_all()

    def stop(self, timeout_ms: int) -> bool:
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_ms / 1000)
        return self._thread is None or not self._thread.is_alive()

    @property
    def stats(self) -> dict[str, int]:
        return dict(self._counts)

    def _goes_on(self, wait_ms: int = 0) -> bool:
        """Wait so long, and until no pause is requested; False if the source shall end."""
        until_ms = self._clock.monotonic_ms() + wait_ms
        with self._changed:
            while not self._is_stopping:
                left_ms = until_ms - self._clock.monotonic_ms()
                if left_ms <= 0 and not self._is_paused:
                    return True
                self._clock.wait(self._changed, left_ms if left_ms > 0 else None)
        return False

    def _deliver(self, messages: list[Message]) -> None:
        self._counts["connected"] = 1
        if messages and self._on_batch is not None:
            self._counts["messages"] += len(messages)
            self._on_batch(messages)

    def _failed(self, reason: str) -> None:
        """Count and log a fault; the source tries again."""
        self._counts["connected"] = 0
        self._counts["errors"] += 1
        log.warning("source.failed", extra={"source": self.name, "error": reason})

    def _guarded(self) -> None:
        try:
            self.run()
        except Exception as error:
            self._counts["errors"] += 1
            log.error("source.defect", extra={"source": self.name, "error": repr(error)}, exc_info=error)

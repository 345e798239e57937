"""Checkpoints: what makes it safe to acknowledge a message.

One transaction stores the state of every rule that changed, the results that no sink has taken yet, and the spooled
rows that wait for it. After it, and only then, the messages taken in before it are acknowledged. A crash at any point
therefore finds the messages either in the stored effects or still at the broker, never in neither and never in both.

    messages --> engine --> results --> outbox           (memory)
                    |                      |
                    +----- checkpoint -----+             (one transaction, synced)
                               |
                          acknowledge                    (the broker forgets them)

When: as soon as messages wait for their acknowledgement and `interval_ms` has passed, but so that checkpoints take at
most `share_percent` of the time, however large the state is; without waiting messages, every `idle_interval_ms`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from edge.checkpoint import state_codec
from edge.clock import Clock
from edge.config import CheckpointConfig

log = logging.getLogger("penstock.checkpoint")

FAILURE_PAUSE_MS = 1_000
"""After a checkpoint that could not be written (disk full), the next attempt waits this long."""

OUTBOX_KEY = "outbox"
REDELIVERY_KEY = "redelivery"
RULE_PREFIX = "rule:"
VERSION_KEY = "version"
VERSION = b"1"


class StateStore(Protocol):
    """Durable key-value state. The spool is one."""

    def load_state(self) -> Mapping[str, bytes]:
        """Everything stored."""

    def commit_state(self, changes: Mapping[str, bytes | None]) -> None:
        """Store (None: remove) all or nothing, durably; with it everything spooled before. Raises OSError."""


class Checkpoints:
    """Decides when to make a checkpoint, makes it, and acknowledges what it covers. Used by the loop only."""

    def __init__(
        self,
        store: StateStore,
        clock: Clock,
        config: CheckpointConfig,
        collect: Callable[[], Mapping[str, Any]],
        on_committed: Callable[[], None] = lambda: None,
    ) -> None:
        """`collect` gives the present state: key to plain data, for everything that may have changed.

        `on_committed` is called when it has been stored, before anything is acknowledged.
        """
        self.made = 0
        self.failures = 0
        self.last_ms = 0
        self.problem: str | None = None
        self.sizes: dict[str, int] = {}
        """Bytes of each key in the last checkpoint."""
        self._store = store
        self._clock = clock
        self._config = config
        self._collect = collect
        self._on_committed = on_committed
        self._stored: dict[str, int] = {}
        self._removed: set[str] = set()
        self._acknowledge: list[tuple[Callable[[Any], None], Any]] = []
        self._messages = 0
        self._changed_at_ms: int | None = None
        self._not_before_ms = 0

    @property
    def unacknowledged(self) -> int:
        """Messages taken in and not acknowledged yet."""
        return self._messages

    def load(self) -> dict[str, Any]:
        """The state of the last checkpoint by key; what cannot be read is left out and logged."""
        found: dict[str, Any] = {}
        for key, data in self._store.load_state().items():
            try:
                found[key] = state_codec.decode(data)
                self._stored[key] = hash(data)
                self.sizes[key] = len(data)
            except ValueError as error:
                log.error("checkpoint.unreadable", extra={"key": key, "error": str(error)})
        return found

    def received(self, acknowledge: Callable[[Any], None], receipt: Any, messages: int) -> None:
        """Remember to call `acknowledge(receipt)` when the effect of these messages is durable."""
        self._acknowledge.append((acknowledge, receipt))
        self._messages += messages
        self.changed()

    def changed(self) -> None:
        """Note that there is something to store."""
        if self._changed_at_ms is None:
            self._changed_at_ms = self._clock.monotonic_ms()

    def forget(self, key: str) -> None:
        """Remove a key with the next checkpoint."""
        self._removed.add(key)
        self.changed()

    def due_in_ms(self) -> int | None:
        """How long until the next checkpoint should be made; None when there is nothing to store."""
        if self._changed_at_ms is None:
            return None
        wait_ms = 0 if self._acknowledge else self._config.idle_interval_ms
        return max(0, max(self._changed_at_ms + wait_ms, self._not_before_ms) - self._clock.monotonic_ms())

    def make(self) -> bool:
        """Make a checkpoint now and acknowledge what it covers; False (and nothing acknowledged) when it failed."""
        if self._changed_at_ms is None:
            return True
        started_ms = self._clock.monotonic_ms()
        encoded = {key: state_codec.encode(value) for key, value in self._collect().items()}
        changes: dict[str, bytes | None] = {
            key: data for key, data in encoded.items() if self._stored.get(key) != hash(data)
        }
        changes.update((key, None) for key in self._removed if key not in encoded)
        try:
            self._store.commit_state(changes)
        except OSError as error:
            self._failed(error)
            return False
        self._stored_all(changes)
        self._pace(started_ms)
        self._on_committed()
        self._acknowledge_all()
        return True

    def _failed(self, error: Exception) -> None:
        """Nothing is acknowledged: the broker keeps the messages, intake stops at its bound, and we try again."""
        self.failures += 1
        self.problem = f"checkpoint cannot be written: {error}"
        self._not_before_ms = self._clock.monotonic_ms() + FAILURE_PAUSE_MS
        log.error("checkpoint.failed", extra={"error": str(error), "unacknowledged": self._messages})

    def _stored_all(self, changes: Mapping[str, bytes | None]) -> None:
        for key, data in changes.items():
            if data is None:
                self._stored.pop(key, None)
                self.sizes.pop(key, None)
            else:
                self._stored[key] = hash(data)
                self.sizes[key] = len(data)
        self._removed.clear()
        self._changed_at_ms = None
        self.made += 1
        if self.problem:
            log.info("checkpoint.recovered")
            self.problem = None

    def _pace(self, started_ms: int) -> None:
        now_ms = self._clock.monotonic_ms()
        self.last_ms = now_ms - started_ms
        pause_ms = self.last_ms * 100 // self._config.share_percent - self.last_ms
        self._not_before_ms = now_ms + max(self._config.interval_ms, pause_ms)

    def _acknowledge_all(self) -> None:
        pending, self._acknowledge = self._acknowledge, []
        self._messages = 0
        for acknowledge, receipt in pending:
            acknowledge(receipt)

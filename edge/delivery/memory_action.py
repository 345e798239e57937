"""The memory action inside the gateway loop: one rule's result is another rule's stream, within the same step.

Chains of rules are so part of what a replay computes again; no row of them is handed over twice or lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from edge.delivery.dead_letters import DeadLetters
from sinks import MemoryBus, Outcome, SinkSettings, Stats
from sinks.render import Renderer
from sql import Emission

log = logging.getLogger("penstock.memory")

MEMORY = "memory"


class MemoryAction:
    """Has the shape of a `Delivery`, without queue and thread. Used by the gateway loop only."""

    def __init__(
        self,
        settings: SinkSettings,
        rule_id: str,
        bus: MemoryBus,
        dead_letters: DeadLetters,
        on_done: Callable[[Any, Outcome], None],
    ) -> None:
        self.name = MEMORY
        self.rule_id = rule_id
        self._renderer = Renderer(settings, rule_id)
        self._bus = bus
        self._dead_letters = dead_letters
        self._on_done = on_done
        self._sent = self._rejected = 0
        self._last_error = ""

    def submit(self, emission: Emission, token: Any = None, timeout_ms: int = 0) -> bool:
        """Give the rows to every stream that reads the topic; always taken."""
        rendered = self._renderer.render([emission])
        for message in rendered.messages:
            self._sent += 1
            for subscriber in self._bus.subscribers(message.target):
                subscriber(message.target, message.rows, message.at_ms)
        for failed in rendered.failed:
            self._rejected += 1
            self._last_error = failed.reason
            self._dead_letters.keep(
                emission.at_ms, failed.reason, rule=self.rule_id, sink=MEMORY, rows=list(failed.rows)
            )
            log.warning("sink.rejected", extra={"rule": self.rule_id, "sink": MEMORY, "error": failed.reason})
        if token is not None:
            self._on_done(token, "rejected" if rendered.failed else "delivered")
        return True

    def begin_close(self, deadline_ms: int) -> None:
        """Nothing is under way."""

    def close(self, deadline_ms: int) -> int:
        """Nothing is left behind."""
        return 0

    def stats(self) -> Stats:
        """The counters, in the words of all deliveries."""
        return Stats("ok", self._sent, 0, self._rejected, 0, 0, 0, self._last_error)

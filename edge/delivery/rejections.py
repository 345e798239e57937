"""Results that an action of the gateway loop could not deliver: counted, logged, and kept as dead letters."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from edge.delivery.dead_letters import DeadLetters
from sinks.render import Unrendered

log = logging.getLogger("penstock.sinks")


class Rejections:
    """The rejected results of one action."""

    def __init__(self, rule_id: str, sink: str, dead_letters: DeadLetters) -> None:
        self.count = 0
        self.last_error = ""
        self._rule_id, self._sink = rule_id, sink
        self._dead_letters = dead_letters

    def add(self, at_ms: int, reason: str, **fields: Any) -> None:
        """Keep a dead letter with these further fields: the rows, or payload and target."""
        self.count += 1
        self.last_error = reason
        self._dead_letters.keep(at_ms, reason, rule=self._rule_id, sink=self._sink, **fields)
        log.warning("sink.rejected", extra={"rule": self._rule_id, "sink": self._sink, "error": reason})

    def add_unrendered(self, at_ms: int, failed: Iterable[Unrendered]) -> None:
        """Keep results that could not be rendered."""
        for rejected in failed:
            self.add(at_ms, rejected.reason, rows=list(rejected.rows))

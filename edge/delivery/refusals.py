"""Messages and rows that the gateway could not process: counted, logged, and kept as dead letters."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from edge.base.message import BadMessage
from edge.delivery.dead_letters import DeadLetters
from sql.rows import as_dict

log = logging.getLogger("penstock.gateway")

KINDS_MAX = 50
"""Reasons counted by themselves; further ones are counted together."""


class Refusals:
    """Counts and keeps what was refused, and what failed.

    rejected  messages and rows by reason
    defects   errors that no rule could have caused by itself
    """

    def __init__(self, dead_letters: DeadLetters) -> None:
        self.rejected: Counter[str] = Counter()
        self.defects = 0
        self._dead_letters = dead_letters

    def message(self, bad: BadMessage, now_ms: int, connection: str, streams: Sequence[str] = ()) -> None:
        """A message that cannot be used; `streams` would have read it."""
        topic, payload, _, reason = bad
        kind = reason.split(":", 1)[0].split(" - ", 1)[0].split(", not ", 1)[0]
        is_known = kind in self.rejected or len(self.rejected) < KINDS_MAX
        self.rejected[kind if is_known else "other"] += 1
        more = {name: value for name, value in (("streams", [*streams]), ("connection", connection)) if value}
        self._dead_letters.keep(now_ms, reason, topic, payload, **more)
        log.warning("message.rejected", extra={"topic": topic, "reason": reason})

    def chain(self, reason: str, stream: str, dropped: int, first: list[Any], now_ms: int) -> None:
        """Rows of memory topics that would move for ever, with the first of them."""
        log.error("chain.too_long", extra={"stream": stream, "dropped": dropped, "error": reason})
        self.rejected["chain too long"] += dropped
        self._dead_letters.keep(now_ms, f"{reason}; {dropped} rows are dropped, this one first", rows=first)

    def defect(self, error: Exception, stream: str | None) -> str:
        """An error that no rule could have caused by itself; returns the reason. The messages are
        acknowledged: sent again, they would only fail again, and hold up everything behind them."""
        self.defects += 1
        reason = f"defect: {type(error).__name__}: {error}"
        log.error("engine.defect", extra={"stream": stream, "error": reason}, exc_info=error)
        return reason

    def rows(self, error: Exception, stream: str, rows: list[Any], now_ms: int) -> None:
        """Rows of a stream whose processing failed."""
        reason = self.defect(error, stream)
        self._dead_letters.keep(now_ms, reason, stream=stream, rows=[as_dict(row) for row in rows])


def rule_defect(rule: str, error: Exception) -> None:
    """Log an error of one rule's code; the rule continues without the event."""
    log.error("rule.defect", extra={"rule": rule, "error": repr(error)}, exc_info=error)

"""The timers of the rules as the gateway loop fires them: a share in each turn where many are overdue."""

from __future__ import annotations

import logging

from edge.clock import Clock
from sql import Engine
from sql.emission import Emissions

log = logging.getLogger("penstock.gateway")

TIMERS_MAX = 1_000
"""Timers that fire in one turn. After a jump of the clock, or a long stop, more are due: calls, connections
and signals have their turns between them. A replay fires as many for each record."""

DEFECT_PAUSE_MS = 1_000
"""A timer that failed is still due: it is tried again after this time, not at once."""

NOTE = "messages wait until they have fired; the option catchUp of a rule leaves out what was missed"


class DueTimers:
    """`are_left`: more are overdue than fire in one turn. Messages wait for them, and they for slow sinks."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.are_left = False
        self._have_failed = False

    def are_due(self, now_ms: int) -> bool:
        """True if a timer is due."""
        deadline_ms = self._engine.next_deadline_ms()
        return deadline_ms is not None and deadline_ms <= now_ms

    def fire(self, now_ms: int, most: float = TIMERS_MAX) -> Emissions:
        """Fire those that are due, in order; `most` timers and those of the same instant."""
        emissions = self._engine.advance(now_ms, timers_max=most)
        self._have_failed = False
        were_left, self.are_left = self.are_left, self.are_due(now_ms)
        if self.are_left and not were_left:
            late_ms = now_ms - (self._engine.next_deadline_ms() or now_ms)
            log.warning("timers.overdue", extra={"late_ms": late_ms, "note": NOTE})
        return emissions

    def note_failure(self) -> None:
        """A defect has ended `fire`: nothing waits for the rest."""
        self._have_failed, self.are_left = True, False

    def wait_ms(self, clock: Clock) -> int | None:
        """The time until the next timer is due; None without timers, and then the clock is not read."""
        deadline_ms = self._engine.next_deadline_ms()
        if deadline_ms is None:
            return None
        return max(DEFECT_PAUSE_MS if self._have_failed else 0, deadline_ms - clock.now_ms())

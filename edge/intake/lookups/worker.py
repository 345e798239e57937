"""Threads that query one store. A request is repeated until it is answered or refused, or its time limit has
passed."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from edge.clock import Clock
from edge.intake.lookups.base import Lookup, LookupSettings, Refused, Rows, Unanswered
from edge.intake.lookups.refusals import StoreRefusals
from sinks.base import wait_until
from sql.plan.lookup_plan import Refusal, Request

log = logging.getLogger("penstock.lookups")

AGAIN_MS, AGAIN_MS_MAX = 50, 1_000
"""Pause after a failure; it doubles up to the second."""

LAST_MS = 100
"""The time that the last try has; with less it would end too soon to say why the store does not answer."""

OnAnswer = Callable[[Request, Rows | Refusal], None]


class Order(NamedTuple):
    """A request, and the end of its time limit on the monotonic clock."""

    request: Request
    until_ms: int


@dataclass(slots=True)
class Health:
    """The health of a store. `error`: why it does not answer, until it does."""

    answers: int = 0
    failures: int = 0
    error: str | None = None
    slowest_ms: int = 0


class StoreWorker:
    """Queries one store for one table."""

    def __init__(
        self,
        table: str,
        lookups: Sequence[Lookup],
        settings: LookupSettings,
        clock: Clock,
        on_answer: OnAnswer,
    ) -> None:
        """One thread for each of `lookups`. `on_answer` is called on these."""
        self.health = Health()
        self._table = table
        self._timeout_ms = settings.timeout_ms
        self._refusals = StoreRefusals(settings.refusal_ms)
        self._clock = clock
        self._on_answer = on_answer
        self._orders: deque[Order] = deque()
        self._changed = threading.Condition()
        self._is_stopping = False
        self._threads = [
            threading.Thread(target=self._serve, args=(lookup,), name=f"lookup {table}", daemon=True)
            for lookup in lookups
        ]
        for thread in self._threads:
            thread.start()

    @property
    def queued(self) -> int:
        """Requests that no thread has begun with."""
        return len(self._orders)

    def ask(self, requests: Iterable[Request]) -> None:
        """Queue requests to the store; older ones whose time limit has passed are dropped."""
        now_ms = self._clock.monotonic_ms()
        with self._changed:
            while self._orders and self._orders[0].until_ms <= now_ms:
                self._orders.popleft()
            self._orders.extend(Order(request, now_ms + self._timeout_ms) for request in requests)
            self._changed.notify_all()

    def stop(self) -> None:
        """End the threads; one that waits for an answer ends behind it."""
        with self._changed:
            self._is_stopping = True
            self._orders.clear()
            self._changed.notify_all()

    def _serve(self, lookup: Lookup) -> None:
        while (order := self._next()) is not None:
            self._try(lookup, order)
        lookup.close()

    def _next(self) -> Order | None:
        with self._changed:
            while not self._orders and not self._is_stopping:
                self._changed.wait()
            return None if self._is_stopping else self._orders.popleft()

    def _try(self, lookup: Lookup, order: Order) -> None:
        if (reason := self._refusals.reason(order.request, self._clock.monotonic_ms())) is not None:
            self._on_answer(order.request, Refusal(reason))
            return
        pause_ms = AGAIN_MS
        while (left_ms := order.until_ms - self._clock.monotonic_ms()) > 0:
            began_ms = self._clock.monotonic_ms()
            try:
                rows = lookup.find(order.request.columns, order.request.key, left_ms)
            except Unanswered as failure:
                self._failed(str(failure))
            except Refused as refusal:
                self._refused(order.request, refusal)
                return
            except Exception as error:
                lookup.close()
                self._failed(f"defect: {type(error).__name__}: {error}")
                log.error("lookup.defect", extra={"table": self._table, "error": repr(error)}, exc_info=error)
            else:
                self._answered(order.request, self._clock.monotonic_ms() - began_ms)
                self._on_answer(order.request, rows)
                return
            left_ms = order.until_ms - self._clock.monotonic_ms()
            if left_ms <= LAST_MS or not self._pause(min(pause_ms, left_ms - LAST_MS)):
                return
            pause_ms = min(2 * pause_ms, AGAIN_MS_MAX)

    def _pause(self, pause_ms: int) -> bool:
        """Wait; FALSE where the worker is to end."""
        until_ms = self._clock.monotonic_ms() + pause_ms
        with self._changed:
            return not wait_until(self._clock, self._changed, lambda: self._is_stopping, until_ms)

    def _answered(self, request: Request, took_ms: int) -> None:
        health, error = self.health, self.health.error
        health.answers += 1
        health.slowest_ms = max(health.slowest_ms, took_ms)
        if error is not None:
            self._refusals.clear(request)
            health.error = self._refusals.newest()
            if health.error is None:
                log.info("lookup.recovered", extra={"table": self._table})

    def _refused(self, request: Request, refusal: Refused) -> None:
        self.health.failures += 1
        self.health.error = str(refusal)
        if self._refusals.add(request, refusal, self._clock.monotonic_ms()):
            log.warning("lookup.refused", extra={"table": self._table, "error": str(refusal)})
        self._on_answer(request, Refusal(str(refusal)))

    def _failed(self, why: str) -> None:
        self.health.failures += 1
        if why != self.health.error:
            self.health.error = why
            log.warning("lookup.failed", extra={"table": self._table, "error": why})

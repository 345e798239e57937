"""Delivery: everything between a rule's result and its sink, written once for all sinks.

    submit -> queue (bounded) -> batch -> render -> send -> receipt
                                            |        |
                                            |        +-- Retry   wait (exponential), the same message again
                                            |        +-- Reject  dead letter, then the next message
                                            |        +-- Fatal   close, wait, open, the same message again
                                            +-- cannot be rendered: dead letter

One worker thread per sink keeps the order and isolates a failing sink from all others. A message leaves the
queue only when it is delivered or in the dead letters. `on_done(token, outcome)` reports this, and only then
may the source be acknowledged.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rules.problems import in_words
from rules.secrets import redact
from sinks.backoff import Backoff
from sinks.base import Fatal, Message, Outcome, Reject, Retry, Sink, SinkContext, wait_until
from sinks.formats.json_text import json_bytes
from sinks.render import Renderer, Unrendered
from sinks.settings import SinkSettings
from sinks.waiting import Entry, Waiting
from sql.record import Record

if TYPE_CHECKING:
    from sql import Emission

LOG = logging.getLogger("penstock.sinks")

State = Literal["idle", "ok", "retrying", "degraded", "closed"]

RETRY_AFTER_MAX_MS = 3_600_000
"""The longest wait that a destination may request."""

UNEXPECTED_MAX = 3
"""A message on which the code of a sink fails this number of times becomes a dead letter, so that it cannot
block the rest."""


class Stats(Record):
    """Counters since the start, for metrics. They count messages, except `queued` and `dropped`, which count
    emissions.

    `non_finite` counts NaN and infinities written as null. `last_error` has secrets removed.
    """

    state: State
    sent: int
    retried: int
    rejected: int
    dropped: int
    queued: int
    non_finite: int
    last_error: str


class Delivery:
    """One sink of one rule with its queue and its worker. Made by `build_action`; all methods are
    thread-safe."""

    def __init__(self, sink: Sink, settings: SinkSettings, context: SinkContext) -> None:
        self.name = context.sink_name
        self.rule_id = context.rule_id
        self._sink = sink
        self._settings = settings
        self._environment = context.environment
        self._clock = context.environment.clock
        self._renderer = Renderer(settings, context.rule_id)
        self._backoff = Backoff(settings.retry_interval, settings.retry_max_interval)
        self._secrets = list(settings.secrets())
        self._changed = threading.Condition()
        self._waiting = Waiting(settings)
        self._in_hand: list[Entry] = []
        self._worker: threading.Thread | None = None
        self._closing = False
        self._deadline_ms = 0
        self._abandoned = False
        self._finished = False
        self._open = False
        self._state: State = "idle"
        self._sent = self._retried = self._rejected = self._dropped = self._non_finite = 0
        self._last_error = ""

    # --- the caller's side ----------------------------------------------------------------------------------

    def submit(self, emission: Emission, token: object = None) -> bool:
        """Queue one emission; False when the queue is full or the delivery is closed.

        False changes nothing: keep the emission and offer it again. With `disableBufferFullDiscard: false`
        the oldest waiting emission is dropped instead (outcome "dropped") and the result is always True. A
        token of None gets no receipt.
        """
        dropped = None
        with self._changed:
            if self._closing:
                return False
            if self._waiting.is_full:
                if self._settings.disable_buffer_full_discard:
                    return False
                dropped = self._waiting.pop()
                self._dropped += 1
            self._waiting.append(emission, token, self._clock.monotonic_ms())
            self._start()
            self._changed.notify_all()
        if dropped:
            self._receipts([dropped], ["dropped"])
        return True

    def close(self, deadline_ms: int) -> int:
        """Take nothing more, flush until the clock's `monotonic_ms()` reaches `deadline_ms`, close the sink.

        Returns the number of emissions not delivered; their tokens get no receipt, now or later. May be
        called twice. To close many deliveries within one bound, call `begin_close` on all of them first.
        """
        self.begin_close(deadline_ms)
        with self._changed:
            wait_until(self._clock, self._changed, lambda: self._finished, deadline_ms)
            self._abandoned = True
            self._state = "closed"
            self._changed.notify_all()
            return len(self._waiting) + len(self._in_hand)

    def begin_close(self, deadline_ms: int) -> None:
        """Take nothing more and begin to flush, without waiting. Of several deadlines the earliest counts."""
        with self._changed:
            self._deadline_ms = min(deadline_ms, self._deadline_ms) if self._closing else deadline_ms
            self._closing = True
            self._finished = self._finished or self._worker is None
            self._changed.notify_all()

    def stats(self) -> Stats:
        """The present counters."""
        with self._changed:
            queued = len(self._waiting) + len(self._in_hand)
            return Stats(
                self._state,
                self._sent,
                self._retried,
                self._rejected,
                self._dropped,
                queued,
                self._non_finite,
                self._last_error,
            )

    # --- the worker's side ----------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start the worker with the first emission, so that a thousand idle rules cost no threads."""
        if self._worker is None:
            name = f"sink-{self.rule_id}-{self.name}"
            self._worker = threading.Thread(target=self._run, name=name, daemon=True)
            self._worker.start()

    def _run(self) -> None:
        try:
            while entries := self._take():
                outcomes = self._process(entries)
                with self._changed:
                    if self._abandoned or outcomes is None:
                        return
                    self._in_hand = []
                self._receipts(entries, outcomes)
        finally:
            self._close_sink()
            with self._changed:
                self._finished = True
                self._changed.notify_all()

    def _take(self) -> list[Entry]:
        """The next entries to deliver together; waits for them. Empty when closing and nothing is left."""
        with self._changed:
            while not self._abandoned:
                if not self._waiting:
                    if self._closing:
                        return []
                    self._clock.wait(self._changed, None)
                elif (
                    not self._closing
                    and (linger_ms := self._waiting.linger_ms(self._clock.monotonic_ms())) > 0
                ):
                    self._clock.wait(self._changed, linger_ms)
                else:
                    self._in_hand = self._waiting.pop_batch()
                    return self._in_hand
            return []

    def _process(self, entries: list[Entry]) -> list[Outcome] | None:
        """Render and deliver; the outcome of each entry, or None if closing ran out of time."""
        units = [entries] if self._settings.batches else [[entry] for entry in entries]
        messages: list[Message] = []
        owners: list[int] = []
        rejected: set[int] = set()
        for number, unit in enumerate(units):
            rendered = self._renderer.render([entry.emission for entry in unit])
            messages += rendered.messages
            owners += [number] * len(rendered.messages)
            with self._changed:
                self._non_finite += rendered.non_finite
            for failed in rendered.failed:
                rejected.add(number)
                if not self._dead_letter(failed):
                    return None
        done = 0
        while done < len(messages):
            delivered, hopeless = self._attempt(messages[done:])
            done += delivered
            if hopeless is not None:
                rejected.add(owners[done])
                if not self._dead_letter(Unrendered(messages[done].rows, hopeless), messages[done]):
                    return None
                done += 1
        if self._abandoned or (rejected and not self._persist(self._environment.dead_letters.sync)):
            return None
        return [
            "rejected" if number in rejected else "delivered"
            for number, unit in enumerate(units)
            for _ in unit
        ]

    def _attempt(self, messages: Sequence[Message]) -> tuple[int, str | None]:
        """Deliver the messages in order, with retries, until all are done or one is rejected.

        Returns the number delivered and, if the next one is to be a dead letter, the reason.
        """
        done = failures = unexpected = 0
        while not self._abandoned and done < len(messages):
            try:
                self._ensure_open()
                self._sink.send(messages[done:])
                self._delivered(len(messages) - done)
                return len(messages), None
            except Reject as failure:
                self._delivered(failure.done)
                return done + failure.done, failure.reason
            except (Retry, Fatal) as failure:
                self._delivered(failure.done)
                done += failure.done
                failures = 1 if failure.done else failures + 1
                if isinstance(failure, Fatal):
                    self._close_sink()
                elif 0 < self._settings.retry_count < failures:
                    return done, f"given up after {self._settings.retry_count} retries: {failure.reason}"
                self._pause(failure, failures)
            except Exception as error:  # a defect in a sink must stop neither its rule nor the others
                failures, unexpected = failures + 1, unexpected + 1
                reason = f"{type(error).__name__}: {error}"
                LOG.error("sink.failed", extra=self._fields(reason), exc_info=not self._secrets)
                self._close_sink()
                if unexpected >= UNEXPECTED_MAX:
                    return done, reason
                self._pause(Fatal(reason), failures)
        return len(messages), None

    def _ensure_open(self) -> None:
        if self._open:
            return
        try:
            self._sink.open()
        except (Retry, Fatal):
            raise
        except Exception as error:  # a sink that cannot be opened is no fault of the message
            raise Fatal(f"{type(error).__name__}: {error}") from error
        self._open = True

    def _close_sink(self) -> None:
        self._open = False
        try:
            self._sink.close()
        # Closing is the last thing that is tried; there is nothing left to do about it.
        except Exception as error:  # noqa: BLE001
            LOG.error("sink.close_failed", extra=self._fields(str(error)))

    def _delivered(self, count: int) -> None:
        if not count:
            return
        with self._changed:
            self._sent += count
            before, self._state = self._state, "ok"
        if before in ("retrying", "degraded"):
            LOG.info("sink.recovered", extra=self._fields(None))

    def _pause(self, failure: Retry | Fatal, failures: int) -> None:
        """Wait before the next attempt; return early if closing runs out of time."""
        wait_ms = self._backoff.wait_ms(failures, self._environment.random)
        if isinstance(failure, Retry) and failure.after_ms is not None:
            wait_ms = max(wait_ms, min(failure.after_ms, RETRY_AFTER_MAX_MS))
        state: State = "degraded" if isinstance(failure, Fatal) else "retrying"
        reason = self._redacted(failure.reason)
        with self._changed:
            before, self._state, self._last_error = self._state, state, reason
            self._retried += 1
        if before != state:
            LOG.warning(f"sink.{state}", extra=self._fields(reason))  # noqa: G004 - one of two events
        self._sleep(wait_ms)

    def _sleep(self, wait_ms: int) -> None:
        until_ms = self._clock.monotonic_ms() + wait_ms
        with self._changed:
            while not self._abandoned:
                now_ms = self._clock.monotonic_ms()
                if self._closing and now_ms >= self._deadline_ms:
                    self._abandoned = True
                    return
                end_ms = min(until_ms, self._deadline_ms) if self._closing else until_ms
                if now_ms >= end_ms:
                    return
                self._clock.wait(self._changed, end_ms - now_ms)

    def _dead_letter(self, failed: Unrendered, message: Message | None = None) -> bool:
        """Write a dead letter, however long it takes; False if closing ran out of time."""
        reason = self._redacted(failed.reason)
        payload = message.payload if message and message.payload else json_bytes(list(failed.rows))
        fields = {"rule": self.rule_id, "sink": self.name}
        if message and message.target:
            fields["target"] = self._redacted(message.target)
        letters, now_ms = self._environment.dead_letters, self._clock.now_ms()
        if not self._persist(lambda: letters.write(now_ms, reason, payload=payload, **fields)):
            return False
        with self._changed:
            self._rejected += 1
            self._last_error = reason
        LOG.warning("sink.rejected", extra=self._fields(reason))
        return True

    def _persist(self, write: Callable[[], None]) -> bool:
        """Repeat a write to the dead letters until the disk takes it; False if closing ran out of time."""
        failures = 0
        while not self._abandoned:
            try:
                write()
            except OSError as error:
                failures += 1
                self._pause(Retry(f"dead letter cannot be written: {in_words(error)}"), failures)
                continue
            return True
        return False

    def _receipts(self, entries: list[Entry], outcomes: list[Outcome]) -> None:
        for entry, outcome in zip(entries, outcomes, strict=True):
            if entry.token is not None:
                self._environment.on_done(entry.token, outcome)

    def _redacted(self, text: str) -> str:
        return redact(text, self._secrets)

    def _fields(self, error: str | None) -> dict[str, Any]:
        return {"rule": self.rule_id, "sink": self.name, "error": self._redacted(error) if error else None}

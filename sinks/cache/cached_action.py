"""An action with `enableCache`: a bounded file between the rule and the delivery.

    submit -> waiting (memory) -> file -> delivery -> sink
                                   |          |
                                   receipt    receipt: the result leaves the file

Every result goes through the file, so there is one order, and a result has its receipt as soon as it is on
the disk. The sources are held back only when the file holds `maxDiskCache` results. After a kill the delivery
continues from the file; results that were being sent are sent again. Results that the journal replays are
recognized by their numbers.

One thread writes the file, and submits up to `memoryCacheThreshold` results to the delivery ahead.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rules.problems import in_words
from sinks.base import Outcome, SinkContext, SinkFactory, wait_until
from sinks.cache.store import CacheStore, Stored
from sinks.delivery import Delivery, Stats
from sinks.settings import SinkSettings
from sql import Emission
from sql.record import replace

LOG = logging.getLogger("penstock.sinks.cache")

T = TypeVar("T")

DISK_RETRY_MS = 1_000
"""The time after a failed write until the file is tried again."""

_owners: dict[Path, threading.Lock] = {}
"""A lock per file: the next version of an action waits until the one before has closed."""


class Numbered(Protocol):
    """A token with the number of the result's last row."""

    @property
    def last(self) -> int: ...


class CachedDelivery:
    """A delivery with a file in front of it. All methods are thread-safe."""

    def __init__(
        self, factory: SinkFactory, settings: SinkSettings, context: SinkContext, path: Path
    ) -> None:
        self.name = context.sink_name
        self.rule_id = context.rule_id
        self._settings = settings
        self._environment = context.environment
        self._clock = context.environment.clock
        self._path = path
        inner = replace(context, environment=replace(context.environment, on_done=self._on_done))
        kept = settings.model_copy(update={"disable_buffer_full_discard": True})
        self._delivery = Delivery(factory(settings, inner), kept, inner)
        self._changed = threading.Condition()
        self._waiting: list[tuple[bool, Emission, Numbered | None]] = []
        self._stored = self._dropped = 0
        self._done = self._fed = 0
        self._in_flight = 0
        self._worker: threading.Thread | None = None
        self._deadline_ms: int | None = None
        self._finished = False
        self._problem = ""
        if path.exists():
            self._start()

    # --- the caller's side ----------------------------------------------------------------------------------

    def submit(self, emission: Emission, token: Any = None) -> bool:
        """Take one emission; False when the file or the disk is full, or the delivery is closed.

        The token is `Numbered`, or None for no receipt.
        """
        late = self._delivery.stats().state in ("retrying", "degraded")
        with self._changed:
            if self._deadline_ms is not None or self._is_full():
                return False
            self._waiting.append((late, emission, token))
            self._start()
            self._changed.notify_all()
        return True

    def begin_close(self, deadline_ms: int) -> None:
        """Take nothing more; waiting results go to the file. An unreachable destination is not waited for."""
        with self._changed:
            self._deadline_ms = deadline_ms
            self._finished = self._finished or self._worker is None
            self._changed.notify_all()
        is_away = self._delivery.stats().state in ("retrying", "degraded")
        self._delivery.begin_close(self._clock.monotonic_ms() if is_away else deadline_ms)

    def close(self, deadline_ms: int) -> int:
        """Close; the number of results that are neither delivered nor in the file."""
        self.begin_close(deadline_ms)
        with self._changed:
            wait_until(self._clock, self._changed, lambda: self._finished, deadline_ms)
            return len(self._waiting)

    def stats(self) -> Stats:
        """The counters of the delivery; `queued` counts the results in memory and in the file."""
        found = self._delivery.stats()
        with self._changed:
            queued, dropped = len(self._waiting) + self._stored, self._dropped
            error = self._problem or found.last_error
        return replace(found, queued=queued, dropped=dropped, last_error=error)

    # --- the worker's side ----------------------------------------------------------------------------------

    def _is_full(self) -> bool:
        settings = self._settings
        if len(self._waiting) >= settings.memory_cache_threshold:
            return True
        keeps = settings.disable_buffer_full_discard
        return keeps and self._stored + len(self._waiting) >= settings.max_disk_cache

    def _on_done(self, token: int, outcome: Outcome) -> None:
        """The receipt of the delivery for a result: the file may delete it."""
        with self._changed:
            self._done = max(self._done, token)
            self._in_flight -= 1
            self._changed.notify_all()

    def _start(self) -> None:
        if self._worker is None:
            self._worker = threading.Thread(
                target=self._run, name=f"cache-{self.rule_id}-{self.name}", daemon=True
            )
            self._worker.start()

    def _run(self) -> None:
        with _owners.setdefault(self._path, threading.Lock()):
            store: CacheStore | None = None
            try:
                while store is None and not self._given_up():
                    store = self._tried(lambda: CacheStore(self._path))
                if store is not None:
                    self._serve(store)
                    self._end(store)
            finally:
                if store is not None:
                    store.close()
                with self._changed:
                    self._finished = True
                    self._changed.notify_all()

    def _serve(self, store: CacheStore) -> None:
        """Store, submit and delete results until closing."""
        while self._deadline_ms is None:
            if self._tried(lambda: self._exchange(store)):
                self._tried(lambda: self._feed(store))
                self._sleep(store)

    def _sleep(self, store: CacheStore) -> None:
        """Wait until there is something to do."""
        with self._changed:
            while not (self._waiting or self._done or self._deadline_ms is not None or self._room(store)):
                self._clock.wait(self._changed, None)

    def _room(self, store: CacheStore) -> int:
        """The number of results of the file that may be submitted now."""
        settings = self._settings
        ahead = min(settings.memory_cache_threshold, settings.buffer_length)
        waiting: int = min(ahead, store.count) - self._in_flight
        return max(0, waiting)

    def _exchange(self, store: CacheStore) -> bool:
        """Store waiting results and delete delivered ones in one transaction; then send the receipts."""
        with self._changed:
            taken, done = list(self._waiting), self._done
        new = [
            (late, emission) for late, emission, token in taken if token is None or token.last > store.mark
        ]
        mark = max((token.last for _, _, token in taken if token is not None), default=0)
        if new or done:
            store.change(new, mark, done)
        if (over := store.count - self._settings.max_disk_cache) > 0:
            self._dropped += store.drop(self._fed, over)
        with self._changed:
            del self._waiting[: len(taken)]
            self._stored = store.count
            self._done = 0 if self._done == done else self._done
        for _, _, token in taken:
            if token is not None:
                self._environment.on_done(token, "delivered")
        return True

    def _feed(self, store: CacheStore) -> bool:
        """Submit as many results to the delivery as it may have ahead."""
        room = self._room(store)
        for item in store.read(self._fed, min(room, self._settings.buffer_page_size)) if room else ():
            if item.late:
                self._pause(self._settings.resend_interval)
            if self._deadline_ms is not None:
                break
            with self._changed:
                self._in_flight += 1
            self._fed = item.seq
            if not self._delivery.submit(self._marked(item), item.seq):
                break  # it is closing: the result stays in the file
        return True

    def _pause(self, wait_ms: int) -> None:
        """Wait for `wait_ms`, or until closing."""
        until_ms = self._clock.monotonic_ms() + wait_ms
        with self._changed:
            wait_until(self._clock, self._changed, lambda: self._deadline_ms is not None, until_ms)

    def _marked(self, item: Stored) -> Emission:
        """The result, with a column that marks it as late if the settings name one."""
        field = self._settings.resend_indicator_field
        if field and item.late:
            for row in (*item.emission.inserted, *item.emission.removed):
                row[field] = True
        return item.emission

    def _end(self, store: CacheStore) -> None:
        """Close: store waiting results in the file; results that are being sent may still arrive."""
        assert self._deadline_ms is not None
        self._tried(lambda: self._exchange(store))
        if self._settings.clean_cache_at_stop:
            self._tried(store.clear)
        self._delivery.close(self._deadline_ms)
        self._tried(lambda: self._exchange(store))

    def _given_up(self) -> bool:
        deadline_ms = self._deadline_ms
        return deadline_ms is not None and self._clock.monotonic_ms() >= deadline_ms

    def _tried(self, step: Callable[[], T]) -> T | None:
        """The result of a step; after a failure of the disk None, and a pause."""
        try:
            found = step()
        except (sqlite3.Error, OSError) as error:
            if not self._problem:
                LOG.error(
                    "cache.failed",
                    extra={"rule": self.rule_id, "file": str(self._path), "error": in_words(error)},
                )
            with self._changed:
                self._problem = f"cache: {in_words(error)}"
                if self._deadline_ms is None:
                    self._clock.wait(self._changed, DISK_RETRY_MS)
            return None
        self._problem = ""
        return found

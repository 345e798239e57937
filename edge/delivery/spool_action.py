"""The actions `cloud` and `archive` inside the gateway loop: rows enter a spool with their numbers.

Appending to the spool only touches memory, so it is done here, in the loop. After a crash the replay makes
rows again with the same numbers, and the spool ignores those that it has: none is lost, none is doubled.

A full spool refuses: the result stays in the outbox, and intake stops at its bound (`cloud.onFull: block`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from cloud_sync.errors import SpoolFull
from cloud_sync.records import Record
from cloud_sync.spool import Origin, Spool
from edge.clock import Clock
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.rejections import Rejections
from sinks import Outcome, SinkSettings, Stats
from sinks.base import Row
from sinks.render import Renderer
from sql import Emission

log = logging.getLogger("penstock.cloud")

CLOUD = "cloud"
ARCHIVE = "archive"

Form = Callable[[Row, int], Record]
"""Makes the record of a row of the emission at an instant. Raises ValueError."""


class SpoolAction:
    """Has the shape of a `Delivery`, without queue and thread. Used by the gateway loop only."""

    def __init__(
        self,
        name: str,
        settings: SinkSettings,
        form: Form,
        rule_id: str,
        spool: Spool,
        clock: Clock,
        dead_letters: DeadLetters,
        on_done: Callable[[Any, Outcome], None],
        key: str,
        *,
        takes_errors: bool,
    ) -> None:
        """`key` names the action in the spool, for all its life. `takes_errors`: errors are its rows; for any
        other action they are not, because an error (`sendError`) has none of the columns and would count as
        an empty row."""
        self.name = name
        self._form = form
        self._key = key
        self._takes_errors = takes_errors
        self.rule_id = rule_id
        self._renderer = Renderer(settings, rule_id)
        self._spool = spool
        self._clock = clock
        self._rejections = Rejections(rule_id, name, dead_letters)
        self._on_done = on_done
        self._sent = self._refused = 0
        self._full_error = ""

    def submit(self, emission: Emission, token: Any = None) -> bool:
        """Append all rows of an emission, or (False) none because the spool is full."""
        records, rejected = self._records(emission)
        origin = None if token is None else Origin(self._key, token.first)
        try:
            self._spool.append(records, self._clock.now_ms(), origin)
        except SpoolFull as full:
            self._refused += 1
            self._full_error = str(full)
            log.warning("spool.full", extra={"rule": self.rule_id, "error": str(full)})
            return False
        except ValueError as error:  # one row larger than the whole spool
            records, rejected = [], [*rejected, (emission.inserted, str(error))]
        self._full_error = ""
        for rows, reason in rejected:
            self._rejections.add(emission.at_ms, reason, rows=rows)
        self._sent += len(records)
        if token is not None:
            self._on_done(token, "rejected" if rejected else "delivered")
        return True

    def begin_close(self, deadline_ms: int) -> None:
        """Do nothing: no delivery is under way."""

    def close(self, deadline_ms: int) -> int:
        """Leave nothing behind: results that were not appended are still in the outbox."""
        return 0

    def stats(self) -> Stats:
        """The counters, in the words of all deliveries."""
        rejected = self._rejections
        return Stats(
            "retrying" if self._full_error else "ok",
            self._sent,
            self._refused,
            rejected.count,
            0,
            0,
            0,
            self._full_error or rejected.last_error,
        )

    def _records(self, emission: Emission) -> tuple[list[Record], list[tuple[Any, str]]]:
        """The records of an emission, and the rows that make none, each with the reason."""
        if emission.kind == "error" and not self._takes_errors:
            return [], [(emission.inserted, f"an error is no row for the cloud: {emission.error}")]
        if emission.states:
            emission = msgspec.structs.replace(emission, inserted=emission.with_states(), states=())
        rendered = self._renderer.render([emission])
        rejected: list[tuple[Any, str]] = [(failed.rows, failed.reason) for failed in rendered.failed]
        records = []
        for message in rendered.messages:
            for row in message.rows:
                try:
                    records.append(self._form(row, message.at_ms))
                except ValueError as error:
                    rejected.append((row, str(error)))
        return records, rejected

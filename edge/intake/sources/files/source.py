"""The `file` source: rows of JSON, CSV, Parquet and line files, read once, again at an
interval, or as they grow.

Files lie below the gateway's input folder. The place up to which rows are safe is kept beside the gateway's
state when they are acknowledged, so a restart goes on behind them; rows that were read but not yet safe are
read again.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path

from edge.base.message import BadMessage, Message
from edge.intake.sources.base import OnBad, OnBatch
from edge.intake.sources.files.position import FilePlace, FilePosition
from edge.intake.sources.files.settings import FileSourceSettings, position_file
from edge.intake.sources.registry import SourceEnvironment, topic_of
from edge.intake.sources.worker import WorkerSource
from sql.catalog.streams import Stream

BATCH_ROWS = 1_000
"""Rows handed on at once, where none has to wait for the one before."""

LOOK_MS = 500
"""The interval at which a followed file is looked at again."""
FAILURE_PAUSE_MS = 5_000
"""The time after which a file that cannot be read is read again, where no interval is set."""

Mark = tuple[int, int]
"""A place in the file that is being read: rows and bytes before it."""

Read = tuple[Mark, bytes, str | None]
"""A row with the place behind it, and the reason if it cannot be used."""


class FileSource(WorkerSource):
    """Reads one file, row by row. A token is the number of a row since the beginning of the run."""

    def __init__(
        self, stream: Stream, file: Path, settings: FileSourceSettings, environment: SourceEnvironment
    ) -> None:
        super().__init__(stream.name, environment.clock)
        self._file = file
        self._root = environment.input_dir.resolve()
        self._settings = settings
        self._position = FilePosition(position_file(stream.name, environment), file, self._failed)
        self._place = self._position.read()
        """The place stored last."""
        self._delivered: Mark = (self._place.rows, self._place.offset)
        self._safe: Mark = self._delivered
        self._tokens: dict[int, Mark] = {}
        """The place before each message that is not safe yet."""
        self._last_token = 0
        self._counting = threading.Lock()
        self._on_bad: OnBad = lambda bad: self.acknowledge(
            token for _, _, token, _ in bad if token is not None
        )
        self._unread = environment.unread
        if stream.kind != "stream":
            self._unread.add(self.name)

    def start(self, on_batch: OnBatch, on_bad: OnBad | None = None) -> None:
        self._on_bad = on_bad or self._on_bad
        super().start(on_batch, on_bad)

    def run(self) -> None:
        try:
            self._run()
        finally:
            self._has_read()
        self._keep_position()

    @abstractmethod
    def _run(self) -> None:
        """Read until all is read, or the source shall end."""

    @abstractmethod
    def _place_of(self, mark: Mark) -> FilePlace:
        """A place that rows have been delivered up to, as it is kept."""

    def acknowledge(self, tokens: Iterable[int]) -> None:
        """Remember the place up to which rows are safe: that before the first that is not."""
        with self._counting:
            for token in tokens:
                self._tokens.pop(token, None)
            safe = min(self._tokens.values(), default=self._delivered)
            if safe > self._safe:
                self._safe = safe
                self._keep(self._place_of(safe))

    @property
    def stats(self) -> dict[str, int]:
        return {**super().stats, "rows": self._delivered[0], "safe": self._safe[0]}

    def _has_read(self) -> None:
        """Note that the first reading of a table is over, so that streams of files may begin."""
        if self.name in self._unread:
            self._unread.discard(self.name)
            assert self._on_batch is not None
            self._on_batch([])  # wakes the loop

    def _keep(self, place: FilePlace) -> None:
        self._place = place
        self._position.store(place)

    def _keep_position(self) -> None:
        """Wait until all rows are safe and their place is on the disk, or the source shall end."""
        while (self._tokens or not self._position.is_stored) and self._goes_on(LOOK_MS):
            self._position.sync()
        self._position.sync()

    def _go_to(self, place: FilePlace) -> None:
        """Read on from a place; rows delivered before are no longer waited for."""
        with self._counting:
            self._delivered = self._safe = (place.rows, place.offset)
            self._tokens = {}
            self._keep(place)

    def _check_place(self) -> None:
        """Refuse a file outside of the input folder, to which a link may lead."""
        if not self._file.resolve().is_relative_to(self._root):
            raise ValueError("the file lies outside of the input folder")

    def _hand_on(self, rows: list[Read]) -> bool:
        """Deliver rows; FALSE when the source shall end."""
        wait_ms = self._settings.send_interval if self._delivered[0] else 0
        if not self._goes_on(wait_ms):
            return False
        self._position.sync()
        topic, good, bad = topic_of(self.name), list[Message](), list[BadMessage]()
        with self._counting:
            for mark, payload, reason in rows:
                self._last_token += 1
                self._tokens[self._last_token] = self._delivered
                self._delivered = mark
                if reason is None:
                    good.append((topic, payload, self._last_token, 0))
                else:
                    bad.append((topic, payload, self._last_token, reason))
        if bad:
            self._counts["errors"] += len(bad)
            self._on_bad(bad)
        self._deliver(good)
        return True

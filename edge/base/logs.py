"""Structured logs: one line per event, `key=value`, on standard error.

    time=2026-01-01T00:00:00.000Z level=info event=rule.deployed rule=hot_pumps state=kept

A place in the code logs one event name (`log.info("rule.deployed", extra={"rule": id})`). The same event of
the same subject (`SUBJECTS`) is printed at most once per `REPEAT_MS`; the next line reports those omitted as
`repeated=N`. The last one is printed late where no other follows, and before another event of the same thing,
so that a log which ends with `mqtt.disconnected` is that of a gateway without connection. Exempt are results
and the effects of a change of the rule files (`ALWAYS`). Registered secrets are replaced by `***` wherever
they appear. Never logged: single events at info.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO

from edge.clock import monotonic_ms

REPEAT_MS = 10_000
"""The same event of the same rule, table, source … is printed at most once in this time."""

REPEAT_KEYS_MAX = 2_000
"""The number of events with their subjects in the limiter; beyond, it forgets all and starts anew."""

SUBJECTS = ("rule", "file", "sink", "stream", "source", "table", "server")
"""The fields that say what an event is about."""

RESULTS_LOGGER = "penstock.results"
"""Lines of the log sink: they are a rule's results, which no limiter may drop."""

ALWAYS = frozenset(
    {
        "rule.deployed",
        "rule.leaving",
        "rule.came_back",
        "rule.stopped",
        "rule.failed",
        "rule_file.problem",
        "rule_file.mended",
    }
)
"""Events that follow a change of a rule file; the limiter drops none. Two saves in a row have two of them,
and a file with two problems has two lines."""

LINES_KEPT = 300
LINE_CHARS_KEPT = 2_000
"""The number of last lines kept for the page of the gateway, and the characters kept of each."""

_SECRET_LENGTH_MIN = 4
"""Shorter secrets are not searched for: replacing every "a" would make logs useless and reveal the secret."""

Key = tuple[object, ...]
"""The logger, the event and its subject."""

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_secrets: set[str] = set()


def register_secret(value: str) -> None:
    """Make sure `value` is never printed in a log line."""
    if len(value) >= _SECRET_LENGTH_MIN:
        _secrets.add(value)


def redact(text: str) -> str:
    """`text` with every registered secret replaced."""
    for secret in _secrets:
        if secret in text:
            text = text.replace(secret, "***")
    return text


def quoted(value: object) -> str:
    """A value as it stands after `key=`: bare where that is unambiguous, else a JSON string on one line.

    >>> quoted("plain"), quoted("two words"), quoted(3), quoted("")
    ('plain', '"two words"', '3', '""')
    """
    text = str(value)
    if text and all(char.isprintable() and char not in ' ="\\' for char in text):
        return text
    return json.dumps(text, ensure_ascii=False)


class LineFormatter(logging.Formatter):
    """One line per record; everything given as `extra` becomes a `key=value`."""

    def format(self, record: logging.LogRecord) -> str:
        at = (
            datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
        parts = [f"time={at}", f"level={record.levelname.lower()}", f"event={quoted(record.getMessage())}"]
        parts += [
            f"{name}={quoted(value)}"
            for name, value in vars(record).items()
            if name not in _STANDARD_FIELDS and value is not None
        ]
        if record.exc_info:
            parts.append(f"trace={quoted(self.formatException(record.exc_info))}")
        return redact(" ".join(parts))


def _is_akin(one: Key, other: Key) -> bool:
    """True for events of the same thing and subject, such as `journal.failed` and `journal.recovered`."""
    return one[2:] == other[2:] and str(one[1]).partition(".")[0] == str(other[1]).partition(".")[0]


class RepeatFilter(logging.Filter):
    """Lets the same event of the same subject pass once per `REPEAT_MS` and counts the others; the last of
    them goes to `emit` when the time is over."""

    def __init__(
        self,
        emit: Callable[[logging.LogRecord], object] = lambda record: None,
        now_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        super().__init__()
        self._emit = emit
        self._now_ms = now_ms
        self._seen: dict[Key, tuple[int, int]] = {}
        self._held: dict[Key, logging.LogRecord] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == RESULTS_LOGGER or record.msg in ALWAYS:
            return True
        key = (record.name, record.msg, *(getattr(record, name, None) for name in SUBJECTS))
        now_ms = self._now_ms()
        with self._lock:
            last_ms, repeated = self._seen.get(key, (now_ms - REPEAT_MS, 0))
            if now_ms - last_ms < REPEAT_MS:
                self._seen[key] = (last_ms, repeated + 1)
                self._hold(key, record)
                return False
            self._held.pop(key, None)
            akin = [self._let_go(other, now_ms) for other in list(self._held) if _is_akin(other, key)]
            if len(self._seen) >= REPEAT_KEYS_MAX:
                self._seen.clear()
            self._seen[key] = (now_ms, 0)
        if repeated:
            record.repeated = repeated
        for earlier in akin:
            self._emit(earlier)
        return True

    def catch_up(self) -> None:
        """Print what was held for longer than `REPEAT_MS`, and what was held before it, in order of time: the
        last line is then what happened last."""
        now_ms = self._now_ms()
        with self._lock:
            by_time = sorted(self._held, key=lambda key: self._held[key].created)
            is_due = [now_ms - self._seen.get(key, (0, 0))[0] >= REPEAT_MS for key in by_time]
            count = len(by_time) - is_due[::-1].index(True) if True in is_due else 0
            records = [self._let_go(key, now_ms) for key in by_time[:count]]
            if self._held:
                self._wait()
        for record in records:
            self._emit(record)

    def _hold(self, key: Key, record: logging.LogRecord) -> None:
        if not self._held:
            self._wait()
        self._held[key] = record

    def _wait(self) -> None:
        timer = threading.Timer(REPEAT_MS / 1_000, self.catch_up)
        timer.daemon = True
        timer.start()

    def _let_go(self, key: Key, now_ms: int) -> logging.LogRecord:
        record, omitted = self._held.pop(key), self._seen.get(key, (0, 1))[1] - 1
        self._seen[key] = (now_ms, 0)
        if omitted > 0:
            record.repeated = omitted
        return record


class Remembering(logging.StreamHandler[IO[str]]):
    """Writes lines, and keeps the last ones for later reading."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(stream)
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        self.lines.append(line[:LINE_CHARS_KEPT])
        return line

    def emit_late(self, record: logging.LogRecord) -> None:
        """Write a record that has passed the filters, from any thread, unless the stream is closed."""
        self.acquire()
        try:
            if not self.stream.closed:
                self.emit(record)
        finally:
            self.release()


def recent() -> list[str]:
    """The last lines that were logged, the oldest first."""
    handlers = logging.getLogger("penstock").handlers
    return [line for handler in handlers if isinstance(handler, Remembering) for line in list(handler.lines)]


def configure(level: str = "info", stream: IO[str] | None = None) -> None:
    """Send the logs of penstock to `stream` (standard error). Called once, by the command
    that runs the daemon."""
    handler = Remembering(stream or sys.stderr)
    handler.setFormatter(LineFormatter())
    handler.addFilter(RepeatFilter(handler.emit_late))
    logger = logging.getLogger("penstock")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False

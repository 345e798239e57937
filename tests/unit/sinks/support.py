"""What the sink tests share: emissions, a clock that leaps, dead letters in a list, a sink
that follows a script."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edge.clock import SystemClock
from sinks import Delivery, Environment, MemoryBus, Message, SinkContext, SinkSettings
from sql import Emission
from tests.support.waiting import PATIENCE_MS, PATIENCE_S


def rows(*inserted: dict[str, Any], at_ms: int = 1_000) -> Emission:
    """An emission of these rows."""
    return Emission("hot", at_ms, inserted=list(inserted))


class LeapingClock:
    """Timed waits end at once and move the time; waits without limit are real. `waits`
    lists the moves, in ms."""

    def __init__(self) -> None:
        self.time_ms = 0
        self.waits: list[int] = []
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        return 1_767_225_600_000 + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        with self._lock:
            return self.time_ms

    def wait(self, condition: threading.Condition, timeout_ms: int | None) -> None:
        if timeout_ms is None:
            condition.wait()
        elif not condition.wait(0.005):
            with self._lock:
                self.time_ms += timeout_ms
                self.waits.append(timeout_ms)


class Letters:
    """Dead letters in memory; `full` makes writing fail that many times."""

    def __init__(self) -> None:
        self.kept: list[dict[str, Any]] = []
        self.full = 0
        self.synced = 0

    def write(
        self, at_ms: int, reason: str, topic: str = "", payload: bytes | None = None, **fields: Any
    ) -> None:
        if self.full:
            self.full -= 1
            raise OSError("no space left")
        self.kept.append({"at_ms": at_ms, "reason": reason, "payload": payload, **fields})

    def sync(self) -> None:
        self.synced = len(self.kept)


class Scripted:
    """A sink that raises what the script says, one entry per `send` (None: take all), and takes all
    afterwards."""

    def __init__(self, *script: Exception | None, on_open: Sequence[Exception | None] = ()) -> None:
        self.script = list(script)
        self.on_open = list(on_open)
        self.taken: list[bytes] = []
        self.batches: list[int] = []
        self.calls: list[str] = []
        self.gate = threading.Event()
        self.gate.set()

    def open(self) -> None:
        self.calls.append("open")
        if self.on_open and (failure := self.on_open.pop(0)):
            raise failure

    def send(self, messages: Sequence[Message]) -> None:
        self.calls.append("send")
        assert self.gate.wait(PATIENCE_S)
        failure = self.script.pop(0) if self.script else None
        done = len(messages) if failure is None else getattr(failure, "done", 0)
        self.taken += [message.payload for message in messages[:done]]
        self.batches.append(done)
        if failure:
            raise failure

    def close(self) -> None:
        self.calls.append("close")


class Bench:
    """One delivery with everything around it in reach of the test."""

    def __init__(self, sink: Any, settings: Any = None, clock: Any = None, tmp_path: Path = Path()) -> None:
        self.clock = clock or SystemClock()
        self.letters = Letters()
        self.receipts: list[tuple[Any, str]] = []
        self.memory = MemoryBus()
        self.environment = Environment(
            self.clock, random.Random(7), tmp_path, self.letters, self.memory, self._on_done
        )
        checked = (
            settings if isinstance(settings, SinkSettings) else SinkSettings.model_validate(settings or {})
        )
        self.sink = sink
        self.delivery_context = SinkContext("hot", "scripted", self.environment)
        self.delivery = Delivery(sink, checked, self.delivery_context)
        self._changed = threading.Condition()

    def _on_done(self, token: Any, outcome: str) -> None:
        with self._changed:
            self.receipts.append((token, outcome))
            self._changed.notify_all()

    def await_receipts(self, count: int) -> list[tuple[Any, str]]:
        """The receipts, as soon as there are `count` of them."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.receipts) >= count, PATIENCE_S), self.receipts
            return list(self.receipts)

    def close(self, within_ms: int = PATIENCE_MS) -> int:
        """Close the delivery within so much time."""
        return self.delivery.close(self.clock.monotonic_ms() + within_ms)


def taken(sink: Scripted) -> list[int]:
    """The numbers the sink took, in order."""
    return [int(payload.removeprefix(b'[{"n":').removesuffix(b"}]")) for payload in sink.taken]

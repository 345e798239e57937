"""The contract of sinks, as tests that any package can run for its own.

    from edge.plugins.sink_contract import Destination, SinkContract

    class TestShout(SinkContract):
        sink = "shout"

        def destination(self, bench, folder):
            path = folder / "out.txt"
            return Destination({"path": str(path)}, lambda: [json.loads(line)["N"] for line in path.open()])

The rows that are sent are `{"n": number}`, one message each. Nothing here needs a test framework but
`tmp_path`, the folder that pytest gives.
"""

from __future__ import annotations

import json
import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from edge.clock import SystemClock
from sinks.base import Environment, Message, Outcome, Reject, Retry, Sink, SinkContext, SinkFailure, sink_kind
from sinks.delivery import Delivery
from sinks.memory_bus import MemoryBus
from sql import Emission

PATIENCE_S = 120.0
"""The time limit for each expected effect."""

LOOK_S = 0.01


class Recorded(logging.Handler):
    """Keeps all of each record, also the fields that its text does not show."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(repr(vars(record)))


@dataclass
class Destination:
    """Settings that lead to a real destination, and the numbers that have arrived there, in order.

    arrived   None: it cannot be seen from outside
    hidden    a secret among the settings, which must be shown nowhere
    """

    settings: dict[str, Any]
    arrived: Callable[[], list[int]] | None
    close: Callable[[], None] = lambda: None
    hidden: str = ""


@dataclass
class Letters:
    """Dead letters in memory."""

    kept: list[dict[str, Any]] = field(default_factory=list)

    def write(
        self, at_ms: int, reason: str, topic: str = "", payload: bytes | None = None, **fields: Any
    ) -> None:
        self.kept.append({"reason": reason, "payload": payload, **fields})

    def sync(self) -> None:
        """Do nothing: there is nothing to make durable."""


class Bench:
    """The resources that a gateway gives its sinks, in memory; `receipts` collects their receipts."""

    def __init__(self, folder: Path) -> None:
        self.clock = SystemClock()
        self.letters = Letters()
        self.memory = MemoryBus()
        self.receipts: list[tuple[Any, Outcome]] = []
        self.environment = Environment(
            self.clock,
            random.Random(3),
            folder / "data",
            self.letters,
            self.memory,
            lambda token, outcome: self.receipts.append((token, outcome)),
            cache_dir=folder / "cache",
        )

    def deadline_ms(self) -> int:
        """A time by which a delivery may be closed."""
        return self.clock.monotonic_ms() + int(PATIENCE_S * 1000)

    def await_receipts(self, count: int) -> list[tuple[Any, Outcome]]:
        """The receipts, as soon as there are `count` of them."""
        eventually(lambda: len(self.receipts) >= count)
        return list(self.receipts)


def eventually(happens: Callable[[], bool]) -> None:
    """Wait until something is so."""
    pause = threading.Event()
    for _ in range(int(PATIENCE_S / LOOK_S)):
        if happens():
            return
        pause.wait(LOOK_S)
    raise AssertionError("it did not happen in time")


class Faulty:
    """A real sink behind faults: each holds the number of messages taken before it is raised."""

    def __init__(self, sink: Sink, faults: Sequence[SinkFailure]) -> None:
        self.sink = sink
        self.faults = list(faults)

    def open(self) -> None:
        self.sink.open()

    def close(self) -> None:
        self.sink.close()

    def send(self, messages: Sequence[Message]) -> None:
        if self.faults and self.faults[0].done < len(messages):
            fault = self.faults.pop(0)
            if fault.done:
                self.sink.send(messages[: fault.done])
            raise fault
        self.sink.send(messages)


@dataclass
class Case:
    """One sink with its destination."""

    name: str
    bench: Bench
    destination: Destination

    def __post_init__(self) -> None:
        self.settings = self._settings()
        self.context = SinkContext("hot", self.name, self.bench.environment)
        self.sink = sink_kind(self.name).factory(self.settings, self.context)
        self.deliveries: list[Delivery] = []

    def _settings(self) -> Any:
        fast = {"sendSingle": True, "retryInterval": 5, "retryMaxInterval": 5}
        return sink_kind(self.name).settings.model_validate(fast | self.destination.settings)

    def delivery(self, *faults: SinkFailure) -> Delivery:
        """A delivery to the destination, one message per row, through these faults."""
        self.deliveries.append(Delivery(Faulty(self.sink, faults), self.settings, self.context))
        return self.deliveries[-1]

    def assert_arrived(self, expected: list[int]) -> None:
        """The destination has exactly these numbers, in this order."""
        arrived = self.destination.arrived
        if arrived is not None:
            found: list[list[int]] = []

            def all_there() -> bool:
                found.append(arrived())
                return len(found[-1]) >= len(expected)

            eventually(all_there)
            assert found[-1] == expected

    def close(self) -> None:
        for delivery in self.deliveries:
            delivery.close(self.bench.deadline_ms())
        self.destination.close()


def emission(*numbers: int) -> Emission:
    """A result with a row for each number."""
    return Emission("hot", 1_000, inserted=[{"n": number} for number in numbers])


class SinkContract:
    """A sink that passes these tests loses nothing, repeats nothing by itself, and keeps the order."""

    sink: ClassVar[str]
    """Its name in rule files."""

    def destination(self, bench: Bench, folder: Path) -> Destination:
        """A destination that is new and empty."""
        raise NotImplementedError

    @contextmanager
    def case(self, folder: Path) -> Iterator[Case]:
        bench = Bench(folder)
        case = Case(self.sink, bench, self.destination(bench, folder))
        try:
            yield case
        finally:
            case.close()

    def test_it_opens_and_closes_again_and_again(self, tmp_path: Path) -> None:
        with self.case(tmp_path) as case:
            case.sink.close()
            for number in range(3):
                case.sink.open()
                message = Message(b'{"n":%d}' % number, ({"n": number},), case.settings.target_text)
                case.sink.send([message])
                case.sink.close()
                case.sink.close()
            case.assert_arrived([0, 1, 2])

    def test_retries_keep_the_order_and_repeat_nothing(self, tmp_path: Path) -> None:
        with self.case(tmp_path) as case:
            delivery = case.delivery(Retry("busy", done=3), Retry("busy"), Retry("busy", done=1))
            assert delivery.submit(emission(*range(8)), "token")
            assert case.bench.await_receipts(1) == [("token", "delivered")]
            case.assert_arrived(list(range(8)))
            assert delivery.stats().retried == 3

    def test_rejected_messages_are_dead_letters_and_nothing_else_is_lost(self, tmp_path: Path) -> None:
        with self.case(tmp_path) as case:
            delivery = case.delivery(Reject("no", done=2), Reject("no"))
            assert delivery.submit(emission(*range(6)), "token")
            assert case.bench.await_receipts(1) == [("token", "rejected")]
            case.assert_arrived([0, 1, 4, 5])
            letters = case.bench.letters.kept
            assert [(letter["rule"], letter["sink"], letter["reason"]) for letter in letters] == [
                ("hot", self.sink, "no")
            ] * 2

    def test_close_flushes_what_waits(self, tmp_path: Path) -> None:
        with self.case(tmp_path) as case:
            delivery = case.delivery()
            for number in range(40):
                assert delivery.submit(emission(number), number)
            assert delivery.close(case.bench.deadline_ms()) == 0
            case.assert_arrived(list(range(40)))
            assert [token for token, _ in case.bench.await_receipts(40)] == list(range(40))
            assert not delivery.submit(emission(99), 99)

    def test_secrets_are_shown_nowhere(self, tmp_path: Path) -> None:
        lines: list[str] = []
        handler = Recorded(lines)
        logger = logging.getLogger("penstock.sinks")
        logger.addHandler(handler)
        try:
            with self.case(tmp_path) as case:
                hidden = case.destination.hidden
                if not hidden:
                    return
                delivery = case.delivery(Retry(f"with {hidden}"), Reject(f"because of {hidden}"))
                delivery.submit(emission(1), "token")
                case.bench.await_receipts(1)
                letters = json.dumps(case.bench.letters.kept, default=repr)
                shown = "".join(
                    [repr(delivery.stats()), letters, repr(case.settings), repr(case.sink), *lines]
                )
        finally:
            logger.removeHandler(handler)
        assert "***" in shown
        assert hidden not in shown

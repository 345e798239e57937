"""The contract of sources, as tests that any package can run for its own.

    from edge.plugins.source_contract import Plant, SourceContract

    class TestWeather(SourceContract):
        def plant(self, folder):
            station = Station()
            return Plant(make=lambda: WeatherSource("air", station.address, SystemClock()), send=station.say)

`send` lets the outside world send messages whose payloads are `{"n": number}`; it may return before they have
arrived. Nothing here needs a test framework but `tmp_path`, the folder that pytest gives.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from edge.base.message import DUPLICATE, BadMessage, Message
from edge.intake.sources.base import Source
from edge.plugins.sink_contract import PATIENCE_S, eventually

STOP_MS = int(PATIENCE_S * 1000)


@dataclass
class Plant:
    """The surroundings of a source.

    make     makes a source that has not been started; several times, one after the other, for the same sender
    send     sends these numbers, in this order
    rewinds  messages without acknowledgement come again after a restart of the gateway
    """

    make: Callable[[], Source]
    send: Callable[[Sequence[int]], None]
    rewinds: bool = False
    close: Callable[[], None] = lambda: None


@dataclass
class ContractConsumer:
    """Takes the batches of a source, as the gateway does."""

    source: Source
    acknowledging: bool = True
    messages: list[Message] = field(default_factory=list)
    bad: list[BadMessage] = field(default_factory=list)

    def start(self) -> ContractConsumer:
        self.source.start(self.on_batch, self.bad.extend)
        return self

    def on_batch(self, batch: list[Message]) -> None:
        self.messages += batch
        if self.acknowledging:
            self.source.acknowledge([token for _, _, token, _ in batch if token is not None])

    @property
    def numbers(self) -> list[int]:
        """The numbers that have come."""
        return [json.loads(payload)["n"] for _, payload, _, _ in self.messages]

    def wait(self, count: int) -> list[int]:
        """The numbers, as soon as there are `count` of them."""
        eventually(lambda: len(self.messages) >= count)
        return self.numbers


class SourceContract:
    """A source that passes these tests can feed rules: nothing is lost or doubled, and it
    ends on request."""

    def plant(self, folder: Path) -> Plant:
        """The source's surroundings, new."""
        raise NotImplementedError

    @contextmanager
    def running(
        self, folder: Path, *, acknowledging: bool = True
    ) -> Iterator[tuple[Plant, ContractConsumer]]:
        plant = self.plant(folder)
        consumer = ContractConsumer(plant.make(), acknowledging).start()
        try:
            yield plant, consumer
        finally:
            consumer.source.stop(STOP_MS)
            plant.close()

    def test_everything_arrives_once_and_in_order(self, tmp_path: Path) -> None:
        with self.running(tmp_path) as (plant, consumer):
            plant.send(range(40))
            assert consumer.wait(40) == list(range(40))
            plant.send(range(40, 50))
            assert consumer.wait(50) == list(range(50))
            assert consumer.bad == []

    def test_messages_are_what_a_gateway_expects(self, tmp_path: Path) -> None:
        with self.running(tmp_path, acknowledging=False) as (plant, consumer):
            plant.send([1])
            consumer.wait(1)
            topic, payload, token, flags = consumer.messages[0]
            assert topic
            assert isinstance(payload, bytes)
            assert token is None or isinstance(token, int)
            assert isinstance(flags, int)

    def test_a_pause_holds_back_and_loses_nothing(self, tmp_path: Path) -> None:
        with self.running(tmp_path) as (plant, consumer):
            plant.send(range(10))
            consumer.wait(10)
            consumer.source.pause()
            plant.send(range(10, 30))
            consumer.source.resume()
            assert consumer.wait(30) == list(range(30))

    def test_it_stops_at_once_and_delivers_nothing_afterwards(self, tmp_path: Path) -> None:
        with self.running(tmp_path) as (plant, consumer):
            plant.send(range(5))
            consumer.wait(5)
            assert consumer.source.stop(STOP_MS)
            after = len(consumer.messages)
            assert consumer.source.stop(STOP_MS)
            assert len(consumer.messages) == after

    def test_it_stops_while_it_is_paused(self, tmp_path: Path) -> None:
        with self.running(tmp_path) as (_, consumer):
            consumer.source.pause()
            assert consumer.source.stop(STOP_MS)

    def test_acknowledgements_of_an_earlier_life_are_ignored(self, tmp_path: Path) -> None:
        with self.running(tmp_path) as (plant, consumer):
            consumer.source.acknowledge([123_456, 123_456])
            plant.send(range(3))
            assert consumer.wait(3) == [0, 1, 2]

    def test_its_counters_are_numbers(self, tmp_path: Path) -> None:
        with self.running(tmp_path) as (plant, consumer):
            plant.send([1])
            consumer.wait(1)
            assert consumer.source.stats["connected"] == 1
            assert all(isinstance(value, int) for value in consumer.source.stats.values())

    def test_what_was_not_acknowledged_comes_again(self, tmp_path: Path) -> None:
        with self.running(tmp_path, acknowledging=False) as (plant, consumer):
            if not plant.rewinds:
                return
            plant.send(range(10))
            consumer.wait(10)
            consumer.source.acknowledge(
                [token for _, _, token, _ in consumer.messages[:4] if token is not None]
            )
            assert consumer.source.stop(STOP_MS)
            again = ContractConsumer(plant.make()).start()
            try:
                eventually(lambda: again.numbers[-6:] == [4, 5, 6, 7, 8, 9])
                repeated = again.messages[:-6]  # those whose acknowledgement a broker has not read in time
                assert all(flags & DUPLICATE for _, _, _, flags in repeated)
            finally:
                again.source.stop(STOP_MS)

"""The streams that memory topics feed: their rows enter the stream in the step in which
an action publishes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from edge.gateway import Gateway
from edge.intake.streams import ChainedRows
from sinks import MemoryBus
from sinks.memory_bus import Subscriber
from sql.rows import from_topic


class MemoryStreams:
    """The subscriptions of streams to memory topics."""

    def __init__(self, gateway: Gateway, memory: MemoryBus) -> None:
        self._gateway = gateway
        self._memory = memory
        self._leave: dict[tuple[str, str], Callable[[], None]] = {}
        """How to end each subscription, by stream and topic."""
        self._meta: Collection[str] = ()
        """The streams whose rows carry their topic."""

    @property
    def is_empty(self) -> bool:
        """True if no stream has rows of a memory topic."""
        return not self._leave

    def follow(self, wanted: Iterable[tuple[str, str]], meta: Collection[str]) -> None:
        """Subscribe these streams to these topics, and no others."""
        self._meta = meta
        kept = set(wanted)
        for key in [key for key in self._leave if key not in kept]:
            self._leave.pop(key)()
        for stream, topic in kept - self._leave.keys():
            self._leave[stream, topic] = self._memory.subscribe(topic, self._subscriber(stream))

    def _subscriber(self, stream: str) -> Subscriber:
        chained = self._gateway.chained

        def take(topic: str, rows: Sequence[Mapping[str, object]], at_ms: int) -> bool:
            """Called by memory actions, in the loop."""
            has_meta = stream in self._meta
            taken = [from_topic(row, topic) if has_meta else dict(row) for row in rows]
            chained.append(ChainedRows(stream, taken))
            return True

        return take

"""The sources that run: what they hand over enters the intake, and they pause together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

from edge.base.message import BadMessage, Message
from edge.intake.backlog import Arrival
from edge.intake.queue import Intake
from edge.intake.sources.base import Source

log = logging.getLogger("penstock.gateway")


class OpenSources(Mapping[str, Source]):
    """The sources by name. Used by the gateway loop only.

    paused   they take in nothing, until `resume`
    pauses   the times that they were paused
    closing  they take in nothing any more, because the gateway stops
    """

    def __init__(self, intake: Intake[Arrival]) -> None:
        self.paused = False
        self.pauses = 0
        self.closing = False
        self._intake = intake
        self._sources: dict[str, Source] = {}

    def __getitem__(self, name: str) -> Source:
        return self._sources[name]

    def acknowledgement(self, name: str) -> Callable[[Iterable[int]], None] | None:
        """The function that acknowledges messages of a source; None once it is gone."""
        source = self._sources.get(name)
        return None if source is None else source.acknowledge

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def add(self, name: str, source: Source) -> None:
        """Own a source and start it; its batches come by way of the intake."""
        self._sources[name] = source

        def on_batch(messages: list[Message]) -> None:
            self._intake.put(Arrival(name, messages, []))

        def on_bad(bad: list[BadMessage]) -> None:
            self._intake.put(Arrival(name, [], bad))

        source.start(on_batch, on_bad)
        if self.paused:
            source.pause()

    def remove(self, name: str, timeout_ms: int) -> None:
        """End a source that no rule reads any more; what it has handed over is still processed."""
        source = self._sources.pop(name)
        if not source.stop(timeout_ms):
            log.warning("source.stop_timeout", extra={"source": name})

    def pause(self) -> None:
        """Take in nothing until `resume`."""
        self.paused = True
        self.pauses += 1
        for source in self._sources.values():
            source.pause()

    def resume(self) -> None:
        """Take in messages again."""
        self.paused = False
        for source in self._sources.values():
            source.resume()

    def close(self) -> None:
        """Take in nothing more. What the sources have already handed over is still processed."""
        self.closing = True
        for source in self._sources.values():
            source.pause()

    def stop(self, timeout_ms: int) -> None:
        """Stop the sources; each sends its last acknowledgements."""
        for name in list(self._sources):
            self.remove(name, timeout_ms)

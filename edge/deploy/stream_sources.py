"""The sources that belong to single streams: started and ended as the rules that read them come and go.

Streams of files begin when the files of tables have been read: their rows are joined with whole tables.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial

from edge.deploy.feeds import Feeds, SourceFeed
from edge.deploy.lookup_stores import Stores
from edge.deploy.stream_types import FILE, stream_type
from edge.gateway import Gateway
from edge.intake.sources.registry import BadSource, SourceEnvironment, source_kind
from rules.problems import in_words

log = logging.getLogger("penstock.sources")

STOP_MS = 500
"""The time for which the loop waits for a source that is removed."""


class StreamSources:
    """Used by the gateway loop only."""

    def __init__(self, environment: SourceEnvironment, stores: Stores | None = None) -> None:
        """`stores`: those of the lookup tables."""
        self._environment = environment
        self.stores = stores
        self._running: dict[str, SourceFeed] = {}
        """The feed from which each running source was made, by stream."""
        self._late: list[SourceFeed] = []
        """Streams of files that begin when the tables are there."""
        self.failed: dict[str, str] = {}
        """Streams whose source could not be made, and why."""

    def apply(self, gateway: Gateway, wanted: Feeds, fresh: Collection[str]) -> None:
        """Run the sources that are wanted, and no others; one that is the same goes on.

        `fresh`: rules that began with empty tables, and read them from the beginning.
        """
        made_of = {source.stream.name: source for source in wanted.sources}
        for name in [name for name, known in self._running.items() if made_of.get(name) != known]:
            gateway.sources.remove(name, STOP_MS)
            del self._running[name]
        self.failed = {}
        for name, reason in wanted.failed.items():
            self._note_failure(name, reason)
        missing = [source for name, source in made_of.items() if name not in self._running]
        self._late = [source for source in missing if _is_file(source) and source.stream.kind == "stream"]
        for source in missing:
            if source not in self._late:
                self._begin(gateway, source, fresh)
        self._begin_late(gateway)
        if self.stores is not None:
            self.stores.apply(wanted.stores, gateway)
        gateway.consult = partial(self._consult, gateway) if wanted.stores or self._late else None

    def _consult(self, gateway: Gateway, now_ms: int) -> None:
        """In each turn of the loop: begin what waits for tables; take answers of stores, send requests."""
        if self._late:
            self._begin_late(gateway)
        if self.stores is not None and (self.stores.answers or gateway.engine.catalog.requests):
            self.stores.consult(gateway, now_ms)

    def _begin_late(self, gateway: Gateway) -> None:
        """Begin the streams of files, if the rows of all tables in files have been taken in."""
        if self._environment.unread or gateway.intake.items or gateway.sources.closing:
            return
        if any(_is_file(source) and gateway.backlog.holds(name) for name, source in self._running.items()):
            return
        late, self._late = self._late, []
        for source in late:
            self._begin(gateway, source, ())

    def close(self) -> None:
        """Stop the requests to stores; the sources end with the gateway."""
        if self.stores is not None:
            self.stores.stop()

    def _begin(self, gateway: Gateway, source: SourceFeed, fresh: Collection[str]) -> None:
        """Start a source, or note why it cannot be made."""
        stream = source.stream
        kind = source_kind(stream_type(stream))
        assert kind is not None
        if source.reader is not None and source.reader[0] in fresh:
            from edge.intake.sources.files.settings import forget_position  # few gateways read files

            forget_position(stream.name, self._environment)
        if stream.name in gateway.sources:  # a connection to a broker is called so
            reason = f"the name '{stream.name}' is taken by another source: rename the stream"
            self._note_failure(stream.name, reason)
            return
        try:
            gateway.sources.add(stream.name, kind.make(stream, source.settings, self._environment))
        except BadSource as error:
            self._note_failure(stream.name, f"{error.option}: {error}")
        except OSError as error:  # the port of httpPush is taken
            self._note_failure(stream.name, in_words(error))
        else:
            self._running[stream.name] = source

    def _note_failure(self, stream: str, reason: str) -> None:
        self.failed[stream] = reason
        log.error("source.failed", extra={"stream": stream, "error": reason})


def _is_file(source: SourceFeed) -> bool:
    return stream_type(source.stream) == FILE

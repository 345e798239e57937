"""The sources that belong to single streams: started and ended as the rules that read them come and go."""

from __future__ import annotations

import logging
from collections.abc import Collection

from edge.deploy.feeds import Feeds, SourceFeed
from edge.deploy.lookup_stores import Stores
from edge.deploy.stream_types import stream_type
from edge.gateway import Gateway
from edge.intake.sources.registry import BadSource, SourceEnvironment, source_kind

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
        self.failed = dict(wanted.failed)
        for name, source in made_of.items():
            if name not in self._running and self._begin(gateway, source, fresh):
                self._running[name] = source
        for name, reason in self.failed.items():
            log.error("source.failed", extra={"stream": name, "error": reason})
        if self.stores is not None:
            self.stores.apply(wanted.stores, gateway)

    def close(self) -> None:
        """Stop the requests to stores; the sources end with the gateway."""
        if self.stores is not None:
            self.stores.stop()

    def _begin(self, gateway: Gateway, source: SourceFeed, fresh: Collection[str]) -> bool:
        """Start a source; FALSE where it cannot be made."""
        stream = source.stream
        kind = source_kind(stream_type(stream))
        assert kind is not None
        if source.reader is not None and source.reader[0] in fresh:
            from edge.intake.sources.file import forget_position  # few gateways read files

            forget_position(stream.name, self._environment)
        if stream.name in gateway.sources:  # a connection to a broker is called so
            self.failed[stream.name] = (
                f"the name '{stream.name}' is taken by another source: rename the stream"
            )
            return False
        try:
            gateway.sources.add(stream.name, kind.make(stream, source.settings, self._environment))
        except BadSource as error:
            self.failed[stream.name] = f"{error.option}: {error}"
            return False
        except OSError as error:  # the port of httpPush is taken
            self.failed[stream.name] = str(error)
            return False
        return True

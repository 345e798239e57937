"""The sources that belong to single streams: started and ended as the rules that read them come and go."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from edge.deploy.stream_types import Feeds, stream_type
from edge.gateway import Gateway
from edge.intake.sources.registry import BadSource, SourceEnvironment, source_kind

log = logging.getLogger("penstock.sources")

STOP_MS = 500
"""How long the loop waits for a source that is removed."""


class StreamSources:
    """Used by the gateway loop only."""

    def __init__(self, environment: SourceEnvironment) -> None:
        self._environment = environment
        self._running: dict[str, Any] = {}
        """What each running source was made of, by stream."""
        self.failed: dict[str, str] = {}
        """Streams whose source could not be made, and why."""

    @property
    def sections(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        return self._environment.sections

    def apply(self, gateway: Gateway, wanted: Feeds) -> None:
        """Run the sources that are wanted, and no others; one that is the same goes on."""
        made_of = {stream.name: (stream, settings) for stream, settings in wanted.sources}
        for name in [name for name, known in self._running.items() if made_of.get(name) != known]:
            gateway.remove_source(name, STOP_MS)
            del self._running[name]
        self.failed = dict(wanted.failed)
        for name, (stream, settings) in made_of.items():
            if name in self._running:
                continue
            kind = source_kind(stream_type(stream))
            assert kind is not None
            try:
                gateway.add_source(name, kind.make(stream, settings, self._environment))
            except BadSource as error:
                self.failed[name] = f"{error.option}: {error}"
                continue
            except OSError as error:  # the port of httpPush is taken
                self.failed[name] = str(error)
                continue
            self._running[name] = (stream, settings)
        for name, reason in self.failed.items():
            log.error("source.failed", extra={"stream": name, "error": reason})

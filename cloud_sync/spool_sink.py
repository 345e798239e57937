"""The sink of actions whose rows the daemon puts into a spool in its loop."""

from __future__ import annotations

from collections.abc import Sequence

from sinks.base import Fatal, Message, SinkContext
from sinks.settings import SinkSettings

NO_SPOOL = "this process has no spool; run the rule in the daemon"


class SpoolSink:
    """Refuses: a process without a spool, such as one for a dry run, has no place for the rows."""

    def __init__(self, settings: SinkSettings, context: SinkContext) -> None:
        """Nothing is opened yet."""

    def open(self) -> None:
        """Raise Fatal."""
        raise Fatal(NO_SPOOL)

    def send(self, messages: Sequence[Message]) -> None:
        """Raise Fatal, as `open` does."""
        raise Fatal(NO_SPOOL)

    def close(self) -> None:
        """Do nothing."""

"""The `nop` sink: discard results."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from sinks.base import Message, SinkContext, register_sink
from sinks.settings import CACHE, SinkSettings

LOG = logging.getLogger("penstock.sinks.nop")


class NopSettings(SinkSettings):
    """Discard results; for measuring a rule and for trying one out."""

    unsupported: ClassVar[frozenset[str]] = CACHE

    log: bool = Field(False, description="say in the debug log how many messages were discarded")


class NopSink:
    """A sink that counts every message as delivered, and sends it nowhere."""

    def __init__(self, settings: NopSettings, context: SinkContext) -> None:
        self._log = settings.log
        self._rule_id = context.rule_id

    def open(self) -> None:
        """Do nothing."""

    def send(self, messages: Sequence[Message]) -> None:
        """Discard the messages."""
        if self._log:
            LOG.debug("nop.discarded", extra={"rule": self._rule_id, "messages": len(messages)})

    def close(self) -> None:
        """Do nothing."""


register_sink("nop", NopSettings, NopSink)

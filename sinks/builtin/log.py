"""The `log` sink: results as lines of the daemon's log."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from sinks.base import Message, SinkContext, register_sink
from sinks.settings import CACHE, SinkSettings

LOG = logging.getLogger("penstock.results")
"""A logger of its own: these lines are results, so no limit on repeated log lines may apply to them."""

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class LogSettings(SinkSettings):
    """Write results to the log, one line per message."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"compression", *CACHE})

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="the level of the lines")


class LogSink:
    """A sink that writes one structured log record `rule.result` per message."""

    def __init__(self, settings: LogSettings, context: SinkContext) -> None:
        self._level = _LEVELS[settings.level]
        self._rule_id = context.rule_id

    def open(self) -> None:
        """Do nothing: the process sets up logging."""

    def send(self, messages: Sequence[Message]) -> None:
        """Log each message."""
        for message in messages:
            payload = message.payload.decode(errors="replace")
            LOG.log(
                self._level,
                "rule.result",
                extra={"rule": self._rule_id, "at": message.at_ms, "payload": payload},
            )

    def close(self) -> None:
        """Do nothing."""


register_sink("log", LogSettings, LogSink)

"""A question at the prompt over live streams: a gateway with one rule in a temporary
directory, until it is stopped."""

from __future__ import annotations

import json
import queue
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from edge.config import Config
from edge.daemon import Daemon
from edge.deploy.reading.reader import RuleReader
from sinks.base import Message, SinkContext, register_sink, sink_kinds
from sinks.settings import SinkSettings
from sql.catalog.stream_text import declaration
from sql.catalog.streams import Stream

SINK = "prompt"

_lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
"""The lines that the rule emitted; None ends them."""


class PromptSettings(SinkSettings):
    """Show results at the prompt of `penstock sql`."""


class PromptSink:
    """Hands messages to the prompt of this process."""

    def __init__(self, settings: PromptSettings, context: SinkContext) -> None: ...

    def open(self) -> None:
        """Do nothing: there is nothing to open."""

    def send(self, messages: Sequence[Message]) -> None:
        """Queue the messages for the prompt."""
        for message in messages:
            _lines.put(message.payload.decode())

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def lines(text: str, streams: Sequence[Stream], server: str | None, for_ms: int | None) -> Iterator[str]:
    """The results of a query, one line each, for some time or until SIGINT."""
    if SINK not in {kind.name for kind in sink_kinds()}:
        register_sink(SINK, PromptSettings, PromptSink)
    with tempfile.TemporaryDirectory(prefix="penstock-sql-") as folder:
        rules = Path(folder, "rules")
        rules.mkdir()
        Path(rules, "streams.sql").write_text(";\n".join(map(declaration, streams)), "utf-8")
        rule = {"id": "query", "sql": text, "actions": [{SINK: {}}], "error": [{SINK: {}}]}
        Path(rules, "query.json").write_text(json.dumps(rule), "utf-8")
        config = _config(folder, server)
        daemon = Daemon(config, RuleReader(config, rules))
        daemon.start()
        timer = None if for_ms is None else threading.Timer(for_ms / 1_000, daemon.request_stop)
        if timer is not None:
            timer.start()
        worker = threading.Thread(target=_run, args=(daemon,), name="prompt-gateway")
        worker.start()
        while (line := _lines.get()) is not None:
            yield line
        worker.join()


def _run(daemon: Daemon) -> None:
    try:
        daemon.run()
    finally:
        _lines.put(None)


def _config(folder: str, server: str | None) -> Config:
    values: dict[str, Any] = {
        "gateway": {"id": f"prompt-{Path(folder).name[-8:]}"},
        "data": {"dir": str(Path(folder, "data"))},
        "http": {"bind": "off"},
        "mqtt": {"server": server, "sessionExpiryS": 0, "statusPrefix": None},
    }
    return Config.model_validate(values)

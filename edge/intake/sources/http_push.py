"""The `httppush` source: clients send the stream's messages by HTTP.

The gateway answers 200 when the effect of a message is durable, so that a sender without such an answer may
send it again; 503 means that this took too long, or that the gateway takes in nothing now.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from edge.intake.sources.base import OnBad, OnBatch
from edge.intake.sources.http_push_server import PushServers
from edge.intake.sources.registry import BadSource, SourceEnvironment, SourceKind, register_source, topic_of
from rules.base import Model
from sql.catalog.streams import Stream

ACKNOWLEDGED_WITHIN_S = 10.0
"""The longest time that a sender waits for its answer."""


class HttpPushSettings(Model):
    """Take the stream's messages from HTTP requests to `httpPush.bind`, at the path of DATASOURCE."""

    method: Literal["post", "put", "POST", "PUT"] = Field("post", description="the method that senders use")


class PushSource:
    """One path. Requests wait in threads of the server until their message is acknowledged."""

    def __init__(self, stream: str, path: str, method: str, servers: PushServers) -> None:
        self.stream = stream
        self.path = path
        self.method = method.upper()
        self._servers = servers
        self._tokens = itertools.count(1)
        self._waiting: dict[int, threading.Event] = {}
        self._on_batch: OnBatch | None = None
        self._is_paused = False
        self._counts = {"messages": 0, "refused": 0}

    def start(self, on_batch: OnBatch, on_bad: OnBad | None = None) -> None:
        self._on_batch = on_batch
        self._servers.add(self)

    def acknowledge(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            if (event := self._waiting.pop(token, None)) is not None:
                event.set()

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False

    def stop(self, timeout_ms: int) -> bool:
        self._servers.remove(self)
        return True

    @property
    def stats(self) -> dict[str, int]:
        is_on = int(self._servers.address is not None)
        return {"connected": is_on, "epoch": 1, **self._counts, "waiting": len(self._waiting)}

    def take(self, payload: bytes) -> bool:
        """Hand a message on and wait until it is safe; FALSE when it is not, or nothing is taken in."""
        if self._is_paused or self._on_batch is None:
            self._counts["refused"] += 1
            return False
        token, safe = next(self._tokens), threading.Event()
        self._waiting[token] = safe
        self._counts["messages"] += 1
        self._on_batch([(topic_of(self.stream), payload, token, 0)])
        if safe.wait(ACKNOWLEDGED_WITHIN_S):
            return True
        self._waiting.pop(token, None)
        return False


def _make(stream: Stream, settings: HttpPushSettings, environment: SourceEnvironment) -> PushSource:
    if not environment.push.is_on:
        raise BadSource("TYPE", "the gateway takes nothing by HTTP: set httpPush.bind")
    return PushSource(
        stream.name, f"/{stream.datasource.removeprefix('/')}", settings.method, environment.push
    )


register_source(SourceKind("httppush", HttpPushSettings, _make))

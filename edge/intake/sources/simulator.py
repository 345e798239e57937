"""The `simulator` source: rows of the stream's own settings, for trying out rules."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from pydantic import Field, field_validator

from edge.clock import Clock
from edge.intake.sources.registry import SourceEnvironment, SourceKind, register_source, topic_of
from edge.intake.sources.worker import WorkerSource
from rules.base import Model
from rules.durations import DurationMs
from sql.catalog.streams import Stream


class SimulatorSettings(Model):
    """Send rows that are written down in the settings, one after the other."""

    data: list[dict[str, Any]] = Field(
        default_factory=lambda: [
            {"temperature": 22.5, "humidity": 50},
            {"temperature": 23.1, "humidity": 48},
        ],
        min_length=1,
        description="the rows, as a list or as its JSON text",
    )
    interval: DurationMs = Field(1000, ge=1, description="time between two rows")
    loop: bool = Field(True, description="begin again after the last row")

    @field_validator("data", mode="before")
    @classmethod
    def _from_text(cls, data: object) -> Any:
        return json.loads(data) if isinstance(data, str) else data


class SimulatorSource(WorkerSource):
    """Counts through its rows."""

    def __init__(self, stream: str, settings: SimulatorSettings, clock: Clock) -> None:
        super().__init__(stream, clock)
        self._settings = settings

    def run(self) -> None:
        topic, payloads = topic_of(self.name), [msgspec.json.encode(row) for row in self._settings.data]
        while True:
            for payload in payloads:
                if not self._goes_on(self._settings.interval):
                    return
                self._deliver([(topic, payload, None, 0)])
            if not self._settings.loop:
                return


def _make(stream: Stream, settings: SimulatorSettings, environment: SourceEnvironment) -> SimulatorSource:
    return SimulatorSource(stream.name, settings, environment.clock)


register_source(SourceKind("simulator", SimulatorSettings, _make, lambda settings: "json"))

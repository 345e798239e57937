"""TYPE="weather": so many readings of the weather, one after the other."""

from __future__ import annotations

import json

from pydantic import Field

from edge.clock import Clock
from edge.intake.sources.registry import SourceEnvironment, SourceKind, register_source, topic_of
from edge.intake.sources.worker import WorkerSource
from rules.base import Model
from sql.catalog.streams import Stream


class WeatherSettings(Model):
    """Send readings of the weather."""

    readings: int = Field(3, ge=1, description="how many")


class WeatherSource(WorkerSource):
    """Counts."""

    def __init__(self, stream: str, settings: WeatherSettings, clock: Clock) -> None:
        super().__init__(stream, clock)
        self._readings = settings.readings

    def run(self) -> None:
        for number in range(self._readings):
            if not self._goes_on():
                return
            self._deliver([(topic_of(self.name), json.dumps({"celsius": 10 * number}).encode(), None, 0)])


def _make(stream: Stream, settings: WeatherSettings, environment: SourceEnvironment) -> WeatherSource:
    return WeatherSource(stream.name, settings, environment.clock)


register_source(SourceKind("weather", WeatherSettings, _make, lambda settings: "json"))

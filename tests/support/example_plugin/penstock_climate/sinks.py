"""The sink `shout`: each message in capitals, appended to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from sinks.base import Message, Retry, SinkContext, register_sink
from sinks.settings import SinkSettings


class ShoutSettings(SinkSettings):
    """Append each message in capitals to a file."""

    path: str = Field(min_length=1, description="the file")


class ShoutSink:
    """Opens the file for each batch."""

    def __init__(self, settings: ShoutSettings, context: SinkContext) -> None:
        self._path = Path(settings.path)

    def open(self) -> None:
        """Nothing to open."""

    def send(self, messages: Sequence[Message]) -> None:
        """Append the messages."""
        try:
            with self._path.open("ab") as file:
                file.writelines(message.payload.upper() + b"\n" for message in messages)
        except OSError as error:
            raise Retry(str(error)) from error

    def close(self) -> None:
        """Nothing to close."""


register_sink("shout", ShoutSettings, ShoutSink)

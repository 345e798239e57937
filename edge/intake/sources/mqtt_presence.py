"""What a gateway tells on its status topic, retained: that it is there and what it runs. The broker tells its end.

{"state": "online", "version": "0.1.0", "rules": {"hot": {"hash": "0d07dc1d", "began": "kept"}}}
{"state": "offline"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from paho.mqtt.client import Client

OFFLINE = b'{"state":"offline"}'
"""The last will, and the last word of an orderly end."""


class Presence:
    """What is told, and whether the broker has heard it. `tell` may be called on any thread."""

    def __init__(self, topic: str | None) -> None:
        """`topic`: None where nothing is to be told."""
        self._topic = topic
        self._text: bytes | None = None
        self._told: bytes | None = None
        self.tell({})

    def tell(self, about: Mapping[str, Any]) -> None:
        """From now on the gateway says this of itself, in JSON values."""
        text = None if self._topic is None else msgspec.json.encode({"state": "online", **about})
        if text != self._text:
            self._text = text

    def is_behind(self) -> bool:
        """Whether there is something that the broker has not been told."""
        return self._told is not self._text

    def begin(self) -> None:
        """A new connection: the broker may have published the last will."""
        self._told = None

    def follow(self, client: Client) -> None:
        """Tell what is to be told."""
        self._told = self._text
        if self._topic is not None:
            client.publish(self._topic, self._text, qos=1, retain=True)

    def end(self, client: Client) -> None:
        """Say that the gateway is going."""
        if self._topic is not None:
            client.publish(self._topic, OFFLINE, qos=0, retain=True)

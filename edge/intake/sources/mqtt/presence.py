"""The retained status of a gateway: that it is online and the rules it runs. The broker publishes its end.

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
    """The text of the status, and whether it was published. `tell` may be called on any thread."""

    def __init__(self, topic: str | None) -> None:
        """`topic`: None if no status is published."""
        self._topic = topic
        self._text: bytes | None = None
        self._told: bytes | None = None
        self.tell({})

    def tell(self, about: Mapping[str, Any]) -> None:
        """Replace the status by these JSON values."""
        text = None if self._topic is None else msgspec.json.encode({"state": "online", **about})
        if text != self._text:
            self._text = text

    def is_behind(self) -> bool:
        """True if the status has changed since it was published."""
        return self._told is not self._text

    def begin(self) -> None:
        """A new connection: the broker may have published the last will."""
        self._told = None

    def follow(self, client: Client) -> None:
        """Publish the status."""
        self._told = self._text
        if self._topic is not None:
            client.publish(self._topic, self._text, qos=1, retain=True)

    def end(self, client: Client) -> None:
        """Publish that the gateway stops."""
        if self._topic is not None:
            client.publish(self._topic, OFFLINE, qos=0, retain=True)

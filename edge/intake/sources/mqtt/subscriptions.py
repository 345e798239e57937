"""The subscriptions of one connection: those wanted, those requested, and those the broker granted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from edge.config.mqtt_options import Version
from edge.intake.sources.mqtt.client import subscribe

if TYPE_CHECKING:
    from paho.mqtt.client import Client

log = logging.getLogger("penstock.mqtt")

FILTERS_PER_PACKET = 100


class Subscriptions:
    """Follows what is wanted.

    granted   filters the broker confirmed, with the QoS it gave;
              outlives the connection as the broker's session does
    refused   filters the broker did not accept, and its reason
    """

    def __init__(self, granted: dict[str, int], version: Version, on_change: Callable[[], None]) -> None:
        """`on_change` is called when the broker has answered, or something was given up."""
        self.granted = granted
        self.refused: dict[str, str] = {}
        self._version = version
        self._on_change = on_change
        self._asked: dict[str, int] = {}
        self._waiting: dict[int, list[tuple[str, int]]] = {}
        self._known: dict[str, int] | None = None

    def begin(self, session_present: bool) -> None:
        """The broker has accepted the connection, and keeps the session of an earlier one or not."""
        if not session_present:
            self.granted = {}
        self._asked = dict(self.granted)

    def are_behind(self, wanted: dict[str, int]) -> bool:
        """True if a request to the broker is due; `wanted` is replaced as a whole, never changed."""
        return wanted is not self._known

    def follow(self, client: Client, wanted: dict[str, int]) -> None:
        """Subscribe to new filters of `wanted`, and unsubscribe from those that it no longer holds."""
        self._known = wanted
        gone = [name for name in self._asked if name not in wanted]
        new = [(name, qos) for name, qos in wanted.items() if self._asked.get(name) != qos]
        # First the new ones: a message that matches an old filter and a new one must not be missed.
        for chunk in chunks(new):
            self._waiting[subscribe(client, chunk, self._version)] = chunk
        for chunk in chunks(gone):
            client.unsubscribe(chunk)
        for name in gone:
            self.granted.pop(name, None)
            self.refused.pop(name, None)
        if gone:
            self._on_change()
        self._asked = dict(wanted)

    def answered(self, mid: int, reasons: list[Any]) -> None:
        """The broker's answer to one packet of filters."""
        for (name, qos), reason in zip(self._waiting.pop(mid, ()), reasons, strict=False):
            if reason.is_failure:
                self.refused[name] = str(reason)
                log.error("mqtt.subscription_refused", extra={"filter": name, "reason": str(reason)})
                continue
            self.refused.pop(name, None)
            self.granted[name] = qos
            if reason.value < qos:
                self.refused[name] = f"granted QoS {reason.value} only; QoS {qos} was asked for"
                log.warning(
                    "mqtt.subscription_weaker", extra={"filter": name, "granted": reason.value, "asked": qos}
                )
        self._on_change()

    def are_answered(self, wanted: dict[str, int]) -> bool:
        """True if the broker has answered every subscription that is wanted."""
        return all(name in self.granted or name in self.refused for name in wanted)


def chunks(items: list[Any]) -> Iterator[list[Any]]:
    """`items` in lists that fit into one packet each."""
    for start in range(0, len(items), FILTERS_PER_PACKET):
        yield items[start : start + FILTERS_PER_PACKET]

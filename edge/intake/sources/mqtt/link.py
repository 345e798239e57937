"""The link to a broker: paho's client, its socket and the reader, from CONNECT to the end."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from edge.config.mqtt_options import MqttOptions, Version
from edge.intake.sources.mqtt.client import connect, make_client
from sinks.tcp import end_in_order, send_at_once

if TYPE_CHECKING:
    from paho.mqtt.client import Client

    from edge.clock import Clock
    from edge.intake.sources.mqtt.readers import BufferedReader, Reader

PINGREQ, DISCONNECT = b"\xc0\x00", b"\xe0\x00"

CLOSED_WITHIN_MS = 2_000
"""The time that a broker gets to close the connection after DISCONNECT."""

SESSION_TAKEN_OVER = 0x8E
"""MQTT 5's reason of a broker that closes a connection because another client came with the same id."""


class Link:
    """One socket to the broker.

    wanted_reader   auto, buffered or stock
    refusal         the broker's answer to CONNECT where it refused
    lost_because    the reason for the end that the broker, or paho, gave
    client, socket  made by `open`
    reader          reads and acknowledges
    sender          the reader, where it sends too
    """

    client: Client
    reader: Reader

    def __init__(self, options: MqttOptions, version: Version, epoch: int) -> None:
        self.options, self.version, self.epoch = options, version, epoch
        self.wanted_reader = "auto"
        self.refusal = self.lost_because = ""
        self.socket: Any = None
        self.descriptor = -1
        self.sender: BufferedReader | None = None
        self._is_open = False

    def open(
        self,
        on_connect: Callable[..., None],
        on_subscribe: Callable[[int, Any], None],
        confirmed: Callable[[int, int], bool],
    ) -> None:
        """Connect the socket and send CONNECT; blocks, on any thread. Raises `OSError`.

        confirmed   called with the packet id and the reason of each PUBACK; whether it was one of ours
        """
        self.client = client = make_client(self.options, self.version)
        client.on_connect = on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = lambda _, __, mid, reasons, ___: on_subscribe(mid, reasons)
        self._choose_reader(confirmed)
        self._is_open = True
        connect(client, self.options, self.version)
        self._take_socket()

    def _choose_reader(self, confirmed: Callable[[int, int], bool]) -> None:
        """Read by the buffered reader, which also sends, or else by paho's own loop."""
        from edge.intake.sources.mqtt.readers import BufferedReader, StockReader, fits

        client, size, wanted = self.client, self.options.packet_bytes_max, self.wanted_reader
        if wanted == "buffered" or (wanted == "auto" and fits(client)):
            self.sender = BufferedReader(client, self.epoch, size, self.version == "5", confirmed)
        self.reader = self.sender or StockReader(client, self.epoch, size)

    def _take_socket(self) -> None:
        """Set up the socket that paho has connected."""
        self.socket = self.client.socket()
        self.descriptor = self.socket.fileno()
        if self.sender is not None:
            self.sender.attach(self.socket)
        # Each turn sends its acknowledgements at once; holding them back would only make
        # the broker wait for them.
        send_at_once(self.socket)
        # While we do not read we cannot see answers to pings; the kernel then notices a dead peer.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            self.socket.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 2_000 * self.options.keepalive_s
            )

    @property
    def reader_kind(self) -> str:
        """The kind of reader in use: buffered or stock; empty before `open`."""
        return "" if not self._is_open else "buffered" if self.sender else "stock"

    def cut_off_id(self) -> int | None:
        """The packet id of a message whose first transmission broke off with the connection."""
        return self.reader.cut_off_id() if self._is_open else None

    def ping(self) -> None:
        """Send PINGREQ, unless there is no room."""
        with suppress(BlockingIOError):
            self.socket.send(PINGREQ)

    def abandon(self) -> None:
        """Close the socket without goodbye: the broker publishes the last will. Does nothing after
        `farewell`."""
        left = self.client.socket() if self._is_open else None
        if left is not None:
            left.close()

    def farewell(self, clock: Clock, timeout_ms: int) -> None:
        """Send what waits, and DISCONNECT. Raises `OSError`."""
        client, until_ms = self.client, clock.monotonic_ms() + timeout_ms // 2
        while client.want_write():
            left_ms = until_ms - clock.monotonic_ms()
            if left_ms <= 0:
                return
            waiting = select.poll()
            waiting.register(self.socket, select.POLLOUT)
            waiting.poll(left_ms)
            client.loop_write()
        self.socket.send(DISCONNECT)  # where paho sends it, it closes the socket
        end_in_order(self.socket, clock, min(CLOSED_WITHIN_MS, timeout_ms // 2))

    def _on_disconnect(
        self, client: object, userdata: object, flags: Any, reason: Any, properties: object
    ) -> None:
        if flags.is_disconnect_packet_from_server:
            advice = f"; {taken_over(self.options.client_id)}" if reason.value == SESSION_TAKEN_OVER else ""
            self.lost_because = f"broker closed the connection: {reason}{advice}"
        elif reason.is_failure:
            self.lost_because = f"connection lost: {reason}"


def taken_over(client_id: str) -> str:
    """The remedy for two clients with one client id: the broker keeps the one that came last."""
    return (
        f"another client connects as '{client_id}': "
        "give each gateway a gateway.id or mqtt.clientId of its own"
    )

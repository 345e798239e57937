"""One connection to a broker, from CONNECT to its end: session, subscriptions, and its turns in a loop.

It is a member of the loop (`edge.base.poller`): it reads and hands on in its turns, and acknowledges and
publishes when it settles. Once the connection is open, everything that touches paho happens on the thread of
the loop; other threads put their orders into `Orders` and wake it.

While the consumer is paused the connection is not read, unless something is published on it: then it reads on
for the confirmations, and holds the messages between them (`edge.intake.handover`).
"""

from __future__ import annotations

import logging
import select
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from operator import and_
from typing import TYPE_CHECKING, Any

from edge.base.message import BadMessage, Message
from edge.base.poller import AT_ONCE, Interest
from edge.config.mqtt_options import MqttOptions, Version
from edge.intake.handover import Counters, HandOver
from edge.intake.sources.base import ConnectionLost
from edge.intake.sources.mqtt_client import connect, make_client
from edge.intake.sources.mqtt_presence import Presence
from edge.intake.sources.mqtt_subscriptions import Subscriptions
from edge.intake.sources.publishing import PACKET_BYTES_MAX, Publishing
from sinks.base import refusal_of
from sinks.tcp import acknowledge_at_once, end_in_order, send_at_once

if TYPE_CHECKING:
    from paho.mqtt.client import Client

    from edge.clock import Clock
    from edge.intake.sources.mqtt_readers import BufferedReader, Reader

log = logging.getLogger("penstock.mqtt")

BUFFERS_PER_TURN = 16
"""Buffers read in one turn: a payload of a megabyte comes in one or two turns, and
keepalive is never far away."""

PINGREQ, DISCONNECT = b"\xc0\x00", b"\xe0\x00"

CLOSED_WITHIN_MS = 2_000
"""The time that a broker gets to close the connection after DISCONNECT."""

SESSION_TAKEN_OVER = 0x8E
"""MQTT 5's reason of a broker that closes a connection because another client came with the same id."""


@dataclass(slots=True)
class Orders:
    """The requests of other threads to the loop."""

    presence: Presence
    wanted: dict[str, int] = field(default_factory=dict)
    """Topic filters and their QoS. Replaced as a whole, never changed."""

    tokens: deque[int] = field(default_factory=deque)
    paused: bool = False
    stopping: bool = False


class Connection:
    """A single connection: `open`, then the loop serves it until `on_lost` is called, or until `farewell`."""

    def __init__(
        self,
        options: MqttOptions,
        version: Version,
        epoch: int,
        orders: Orders,
        counters: Counters,
        clock: Clock,
        publishing: Publishing,
    ) -> None:
        """`publishing`: the messages that go out on this connection, if the reader is the buffered one."""
        self.options, self.version, self.epoch = options, version, epoch
        self.subscriptions = Subscriptions(
            {}, version, lambda: self.on_session(dict(self.subscriptions.granted), False)
        )
        self.hand_over = HandOver(counters, options.held_bytes_max, is_kept=options.session_expiry_s > 0)
        self.publishing = publishing
        self.accepted = False
        self.wanted_reader = "auto"
        self.reader = ""
        """The kind of reader in use: buffered or stock."""
        self._orders, self._counters, self._clock = orders, counters, clock
        self.refusal = ""
        """The broker's answer to CONNECT where it refused."""
        self.lost_because = ""
        """The reason for the end that the broker, or paho, gave."""
        self._socket: Any = None
        self._descriptor = -1
        self._more = False
        self._behind = False
        self._is_prompted = False
        """True if the kernel was set to acknowledge at once since the last turn."""
        self._pinged_ms = 0
        self._looked_ms = 0
        """The time of the last check of the keepalive."""
        self._answer_by_ms = 0
        self._client: Client
        """Made by `open`."""
        self._is_open = False
        self._reader: Reader | None = None
        self._sender: BufferedReader | None = None
        """The reader, where it sends too."""
        self.on_session: Callable[[dict[str, int], bool], None] = lambda granted, is_new: None
        """Called with the subscriptions that the broker keeps, and True if its session is new, before
        any message of it."""
        self.on_window: Callable[[int], Publishing] = lambda window: publishing
        """Called with the number of unconfirmed messages that the broker takes; what is published then."""
        self.on_lost: Callable[[Exception], None] = lambda error: None
        """Called when the connection has failed; it has no further turn then."""

    def open(self, granted: dict[str, int], answer_ms: int) -> None:
        """Connect the socket and send CONNECT; blocks, on any thread. Raises `OSError`.

        granted     subscriptions that an earlier connection of the session left
        answer_ms   how long the broker may take to accept or refuse
        """
        self.subscriptions.granted = granted
        self._client = make_client(self.options, self.version)
        self._is_open = True
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_subscribe = lambda _, __, mid, reasons, ___: self.subscriptions.answered(mid, reasons)
        self._choose_reader()
        connect(self._client, self.options, self.version)
        self._take_socket()
        self._answer_by_ms = self._clock.monotonic_ms() + answer_ms

    def _choose_reader(self) -> None:
        """Read by the buffered reader, which also sends, or else by paho's own loop."""
        from edge.intake.sources.mqtt_readers import BufferedReader, StockReader, fits

        size, wanted, confirmed = self.options.packet_bytes_max, self.wanted_reader, self.publishing.confirmed
        if wanted == "buffered" or (wanted == "auto" and fits(self._client)):
            self._sender = BufferedReader(self._client, self.epoch, size, self.version == "5", confirmed)
        self.reader = "buffered" if self._sender else "stock"
        self._reader = self._sender or StockReader(self._client, self.epoch, size)

    def _take_socket(self) -> None:
        """Set up the socket that paho has connected."""
        self._socket = self._client.socket()
        self._descriptor = self._socket.fileno()
        if self._sender is not None:
            self._sender.attach(self._socket)
        # Each turn sends its acknowledgements at once; holding them back would only make
        # the broker wait for them.
        send_at_once(self._socket)
        # While we do not read we cannot see answers to pings; the kernel then notices a dead peer.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            self._socket.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 2_000 * self.options.keepalive_s
            )

    def cut_off_ids(self) -> list[int]:
        """The packet ids of messages whose first transmission broke off with the connection, or had no
        room."""
        cut_off = None if self._reader is None else self._reader.cut_off_id()
        return [*self.hand_over.left_out, *(() if cut_off is None else (cut_off,))]

    def abandon(self) -> None:
        """Close the socket without goodbye: the broker publishes the last will. Does nothing after
        `farewell`."""
        left = self._client.socket() if self._is_open else None
        if left is not None:
            left.close()

    def farewell(self, timeout_ms: int) -> None:
        """Send the last acknowledgements, "offline" and DISCONNECT. Raises `OSError`."""
        if not self.accepted:
            return
        until_ms = self._clock.monotonic_ms() + timeout_ms // 2
        if self._orders.tokens:
            self._acknowledge()
        self._orders.presence.end(self._client)
        while self._client.want_write():
            left_ms = until_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                return
            waiting = select.poll()
            waiting.register(self._socket, select.POLLOUT)
            waiting.poll(left_ms)
            self._client.loop_write()
        self._socket.send(DISCONNECT)  # where paho sends it, it closes the socket
        end_in_order(self._socket, self._clock, min(CLOSED_WITHIN_MS, timeout_ms // 2))

    # The loop.

    def settle(self) -> Interest:
        """Acknowledge, tell the broker what has changed, and publish. To wait for then: bytes, and room to
        write where something waits; and the next turn, at once where more waits to be read."""
        client = self._client
        try:
            if self.accepted:
                self._send(client)
            if client.socket() is None:
                raise ConnectionLost("connection closed")
        except Exception as error:  # noqa: BLE001 - as in `turn`
            self._give_up(error)
            return self._descriptor, 0, None
        is_reading = self._is_reading()
        is_writing = client.want_write()
        mask = (select.POLLIN if is_reading else 0) | (select.POLLOUT if is_writing else 0)
        at_once = (
            (is_reading and self._more)
            or self._is_resumed()
            or (self.accepted and not is_writing and self.publishing.can_send)
        )
        return self._descriptor, mask, AT_ONCE if at_once else self._due_ms()

    def _is_reading(self) -> bool:
        """False in a pause, in which nothing is to be confirmed either."""
        return not (self._orders.paused and self.accepted) or self.publishing.is_busy

    def _is_resumed(self) -> bool:
        """True if messages are held that may be handed on."""
        return self.hand_over.is_holding and not self._orders.paused

    def _give_up(self, error: Exception) -> None:
        """Report the loss of the connection, behind the messages that came before it."""
        try:
            self.hand_over.hand_on_held()
        except Exception as worse:  # noqa: BLE001 - as in `turn`
            error = worse
        self.on_lost(error)

    def prompt(self) -> bool:
        """Take what is there of the subscriptions: brokers hold back small packets until the kernel has
        acknowledged the ones before. Whether there was anything."""
        orders, reader = self._orders, self._sender
        if not orders.wanted or orders.paused or reader is None:
            return False
        self._is_prompted = True
        has_read = reader.read_ahead()
        acknowledge_at_once(self._socket)
        return has_read

    def turn(self, is_ready: bool) -> bool:
        """Read where the socket is ready, else do what is due; whether to settle again."""
        was_open = self.accepted and not self._more
        was_prompted, self._is_prompted = self._is_prompted, False
        try:
            if not self._is_reading():
                self._behind = True
            elif is_ready or self._more or self._is_resumed() or self._is_overdue():
                self._read()
            if not is_ready:
                self._keep_alive()
            if self._client.want_write():
                self._client.loop_write()
                return True
        except Exception as error:  # noqa: BLE001 - the consumer's as well: the messages must come again
            self._give_up(error)
            return True
        if is_ready and not was_prompted:
            acknowledge_at_once(self._socket)
        return not was_open or self._more or self.publishing.can_send or self._orders.paused

    def _due_ms(self) -> int:
        """When the broker's answers are overdue, or the keepalive is to be checked."""
        due_ms = self._looked_ms + self.options.keepalive_s * 250
        if not self.accepted:
            return min(due_ms, self._answer_by_ms + 1)
        overdue_ms = self.publishing.overdue_ms()
        return due_ms if overdue_ms is None else min(due_ms, overdue_ms)

    def _is_overdue(self) -> bool:
        """True if a confirmation has not been read in time."""
        overdue_ms = self.publishing.overdue_ms() if self.accepted else None
        return overdue_ms is not None and overdue_ms <= self._clock.monotonic_ms()

    def _read(self) -> None:
        """Read, and hand on or hold, also what came before the connection broke."""
        batch: list[Message] = []
        bad: list[BadMessage] = []
        reader = self._reader
        assert reader is not None, "open() comes first"
        before = reader.duplicates
        try:
            for _ in range(BUFFERS_PER_TURN):
                self._more = reader.read(batch, bad)
                if not self._more:
                    self._behind = False
                    break
        finally:
            self._counters.duplicates += reader.duplicates - before
            is_short = self.hand_over.take(batch, bad, is_paused=self._orders.paused)
        if is_short:
            raise ConnectionLost("messages had no room while intake was paused; the broker sends them again")

    def _send(self, client: Client) -> None:
        """Send acknowledgements, subscriptions, the status, and what waits to be published unless the broker
        is slow to read or to confirm."""
        orders, publishing = self._orders, self.publishing
        if orders.tokens:
            self._acknowledge()
        if self.subscriptions.are_behind(orders.wanted):
            self.subscriptions.follow(client, orders.wanted)
        if orders.presence.is_behind():
            orders.presence.follow(client)
        if publishing.can_send and not client.want_write():
            packets = publishing.packets(self._clock.monotonic_ms())
            if packets and self._sender is not None:
                self._sender.send(packets)

    def _acknowledge(self) -> None:
        """Send the acknowledgements so far, of which there are some.

        A packet id of an earlier connection would mean another message here.
        """
        tokens = self._orders.tokens
        waiting = [tokens.popleft() for _ in range(len(tokens))]
        epoch = self.epoch
        ids = waiting
        if not min(waiting) >> 16 == epoch == max(waiting) >> 16:
            ids = [token for token in waiting if token >> 16 == epoch]
        if ids and self._reader is not None:
            self._reader.acknowledge([*map(and_, ids, repeat(0xFFFF))])
        self._counters.acknowledged += len(ids)
        self._counters.stale_acknowledgements += len(waiting) - len(ids)

    def _keep_alive(self) -> None:
        """Give a broker up that does not answer or confirm in time, and do paho's housekeeping; not where it
        would hang up because we have not read what the broker answered."""
        now_ms = self._clock.monotonic_ms()
        if not self.accepted and now_ms > self._answer_by_ms:
            raise ConnectionLost("the broker did not answer CONNECT in time")
        if self._is_overdue() and not self._more:  # else the confirmation may be in what is still to be read
            raise ConnectionLost("the broker did not confirm in time")
        if now_ms - self._looked_ms < self.options.keepalive_s * 250:
            return
        self._looked_ms = now_ms
        if not self._behind:
            self._client.loop_misc()
        elif now_ms - self._pinged_ms >= self.options.keepalive_s * 500 and not self._client.want_write():
            self._pinged_ms = now_ms
            with suppress(BlockingIOError):
                self._socket.send(PINGREQ)

    # Session and subscriptions.

    def _on_connect(self, client: object, userdata: object, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.refusal = f"broker refused the connection: {refusal_of(str(reason))}"
            return
        self.accepted = True
        self.subscriptions.begin(flags.session_present)
        self.on_session(dict(self.subscriptions.granted), not flags.session_present)
        self._counters.connects += 1
        told = {} if properties is None else properties.json()
        window, size = told.get("ReceiveMaximum", 65_535), told.get("MaximumPacketSize", PACKET_BYTES_MAX)
        self.publishing = self.on_window(window)
        self.publishing.begin(window, size, has_properties=self.version == "5")
        self._orders.presence.begin()
        log.info(
            "mqtt.connected",
            extra={
                "server": self.options.server,
                "client": self.options.client_id,
                "version": self.version,
                "epoch": self.epoch,
                "session": flags.session_present,
                "intake": self.reader,
            },
        )

    def _on_disconnect(
        self, client: object, userdata: object, flags: Any, reason: Any, properties: object
    ) -> None:
        if flags.is_disconnect_packet_from_server:
            advice = f"; {taken_over(self.options.client_id)}" if reason.value == SESSION_TAKEN_OVER else ""
            self.lost_because = f"broker closed the connection: {reason}{advice}"
        elif reason.is_failure:
            self.lost_because = f"connection lost: {reason}"

    def subscribed(self) -> bool:
        """True if the broker has answered every subscription that is wanted now."""
        return self.accepted and self.subscriptions.are_answered(self._orders.wanted)


def taken_over(client_id: str) -> str:
    """The remedy for two clients with one client id: the broker keeps the one that came last."""
    return (
        f"another client connects as '{client_id}': "
        "give each gateway a gateway.id or mqtt.clientId of its own"
    )

"""One connection to a broker, from CONNECT to its end: session, subscriptions, and its turns in a loop.

It is a member of the loop (`edge.base.poller`): it reads and hands on in its turns, and acknowledges and
publishes when it settles. Once the connection is open, everything that touches paho happens on the thread of
the loop; other threads put their orders into `Orders` and wake it.

While the consumer is paused the connection is not read, unless something is published on it: then it reads on
for the confirmations, and holds the messages between them (`edge.intake.sources.mqtt.handover`).
"""

from __future__ import annotations

import logging
import select
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat
from operator import and_
from typing import TYPE_CHECKING, Any

from edge.base.message import BadMessage, Message
from edge.base.poller import AT_ONCE, Interest
from edge.intake.sources.base import ConnectionLost
from edge.intake.sources.mqtt.handover import Consumer, Counters, HandOver
from edge.intake.sources.mqtt.link import Link
from edge.intake.sources.mqtt.presence import Presence
from edge.intake.sources.mqtt.publishing import PACKET_BYTES_MAX, Publishing
from edge.intake.sources.mqtt.subscriptions import Subscriptions
from sinks.base import refusal_of
from sinks.tcp import acknowledge_at_once

if TYPE_CHECKING:
    from edge.clock import Clock

log = logging.getLogger("penstock.mqtt")

BUFFERS_PER_TURN = 16
"""Buffers read in one turn: a payload of a megabyte comes in one or two turns, and
keepalive is never far away."""


@dataclass(slots=True)
class Orders:
    """The requests of other threads to the loop."""

    presence: Presence
    wanted: dict[str, int] = field(default_factory=dict)
    """Topic filters and their QoS. Replaced as a whole, never changed."""

    tokens: deque[int] = field(default_factory=deque)
    stopping: bool = False


class Connection:
    """A single connection: `open`, then the loop serves it until `on_lost` is called, or until `farewell`."""

    def __init__(
        self,
        link: Link,
        orders: Orders,
        consumer: Consumer,
        counters: Counters,
        clock: Clock,
        publishing: Publishing,
    ) -> None:
        """`publishing`: the messages that go out on this connection, if the reader is the buffered one."""
        options = link.options
        self.link = link
        self.subscriptions = Subscriptions(
            {}, link.version, lambda: self.on_session(dict(self.subscriptions.granted), False)
        )
        self.hand_over = HandOver(
            consumer, counters, options.held_bytes_max, is_kept=options.session_expiry_s > 0
        )
        self.publishing = publishing
        self.accepted = False
        self._orders, self._consumer, self._counters, self._clock = orders, consumer, counters, clock
        self._check_ms = options.keepalive_s * 250
        """The interval at which the keepalive is checked."""
        self._more = False
        """True if more may wait to be read that the socket does not show."""
        self._behind = False
        """True if answers of the broker may wait behind messages that were not read in a pause."""
        self._is_prompted = False
        """True if the kernel was set to acknowledge at once since the last turn."""
        self._pinged_ms = 0
        self._looked_ms = 0
        """The time of the last check of the keepalive."""
        self._answer_by_ms = 0
        self.on_session: Callable[[dict[str, int], bool], None] = lambda granted, is_new: None
        """Called with the subscriptions that the broker keeps, and True if its session is new, before
        any message of it."""
        self.on_window: Callable[[int], Publishing] = lambda window: publishing
        """Called with the number of unconfirmed messages that the broker takes; what is published then."""
        self.on_lost: Callable[[Exception], None] = lambda error: None
        """Called when the connection has failed; it has no further turn then."""

    def open(self, granted: dict[str, int], answer_ms: int) -> None:
        """Connect; blocks, on any thread. Raises `OSError`.

        granted     subscriptions that an earlier connection of the session left
        answer_ms   how long the broker may take to accept or refuse
        """
        self.subscriptions.granted = granted
        self.link.open(self._on_connect, self.subscriptions.answered, self.publishing.confirmed)
        self._answer_by_ms = self._clock.monotonic_ms() + answer_ms

    def cut_off_ids(self) -> list[int]:
        """The packet ids of messages whose first transmission broke off with the connection, or had no
        room."""
        cut_off = self.link.cut_off_id()
        return [*self.hand_over.left_out, *(() if cut_off is None else (cut_off,))]

    def farewell(self, timeout_ms: int) -> None:
        """Send the last acknowledgements, "offline" and DISCONNECT. Raises `OSError`."""
        if not self.accepted:
            return
        if self._orders.tokens:
            self._acknowledge()
        self._orders.presence.end(self.link.client)
        self.link.farewell(self._clock, timeout_ms)

    # The loop.

    def settle(self) -> Interest:
        """Acknowledge, tell the broker what has changed, and publish. To wait for then: bytes, and room to
        write where something waits; and the next turn, at once where more waits to be read."""
        link = self.link
        client = link.client
        try:
            if self.accepted:
                self._send()
            if client.socket() is None:
                raise ConnectionLost("connection closed")
        except Exception as error:  # noqa: BLE001 - as in `turn`
            self._give_up(error)
            return link.descriptor, 0, None
        is_reading = self._is_reading()
        is_writing = client.want_write()
        mask = (select.POLLIN if is_reading else 0) | (select.POLLOUT if is_writing else 0)
        at_once = (
            (is_reading and self._more)
            or self.hand_over.is_due
            or (self.accepted and not is_writing and self.publishing.can_send)
        )
        return link.descriptor, mask, AT_ONCE if at_once else self._due_ms()

    def _is_reading(self) -> bool:
        """False in a pause, in which nothing is to be confirmed either."""
        return not (self._consumer.is_paused and self.accepted) or self.publishing.is_busy

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
        reader = self.link.sender
        if not self._orders.wanted or self._consumer.is_paused or reader is None:
            return False
        self._is_prompted = True
        has_read = reader.read_ahead()
        acknowledge_at_once(self.link.socket)
        return has_read

    def turn(self, is_ready: bool) -> bool:
        """Read where the socket is ready, else do what is due; whether to settle again."""
        was_open = self.accepted and not self._more
        was_prompted, self._is_prompted = self._is_prompted, False
        try:
            if not self._is_reading():
                self._behind = True
            elif is_ready or self._more or self.hand_over.is_due or self._is_overdue():
                self._read()
            if not is_ready:
                self._keep_alive()
            if self.link.client.want_write():
                self.link.client.loop_write()
                return True
        except Exception as error:  # noqa: BLE001 - the consumer's as well: the messages must come again
            self._give_up(error)
            return True
        if is_ready and not was_prompted:
            acknowledge_at_once(self.link.socket)
        return not was_open or self._more or self.publishing.can_send or self._consumer.is_paused

    def _due_ms(self) -> int:
        """When the broker's answers are overdue, or the keepalive is to be checked."""
        due_ms = self._looked_ms + self._check_ms
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
        reader = self.link.reader
        before = reader.duplicates
        try:
            for _ in range(BUFFERS_PER_TURN):
                self._more = reader.read(batch, bad)
                if not self._more:
                    self._behind = False
                    break
        finally:
            self._counters.duplicates += reader.duplicates - before
            is_short = self.hand_over.take(batch, bad)
        if is_short:
            raise ConnectionLost("messages had no room while intake was paused; the broker sends them again")

    def _send(self) -> None:
        """Send acknowledgements, subscriptions, the status, and what waits to be published unless the broker
        is slow to read or to confirm."""
        orders, publishing, client = self._orders, self.publishing, self.link.client
        if orders.tokens:
            self._acknowledge()
        if self.subscriptions.are_behind(orders.wanted):
            self.subscriptions.follow(client, orders.wanted)
        if orders.presence.is_behind():
            orders.presence.follow(client)
        if publishing.can_send and not client.want_write():
            packets = publishing.packets(self._clock.monotonic_ms())
            if packets and self.link.sender is not None:
                self.link.sender.send(packets)

    def _acknowledge(self) -> None:
        """Send the acknowledgements so far, of which there are some.

        A packet id of an earlier connection would mean another message here.
        """
        tokens = self._orders.tokens
        waiting = [tokens.popleft() for _ in range(len(tokens))]
        epoch = self.link.epoch
        ids = waiting
        if not min(waiting) >> 16 == epoch == max(waiting) >> 16:
            ids = [token for token in waiting if token >> 16 == epoch]
        if ids:
            self.link.reader.acknowledge([*map(and_, ids, repeat(0xFFFF))])
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
        if now_ms - self._looked_ms < self._check_ms:
            return
        self._looked_ms = now_ms
        if not self._behind:
            self.link.client.loop_misc()
        elif now_ms - self._pinged_ms >= 2 * self._check_ms and not self.link.client.want_write():
            self._pinged_ms = now_ms
            self.link.ping()

    # Session and subscriptions.

    def _on_connect(self, client: object, userdata: object, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.link.refusal = f"broker refused the connection: {refusal_of(str(reason))}"
            return
        self.accepted = True
        self.subscriptions.begin(flags.session_present)
        self.on_session(dict(self.subscriptions.granted), not flags.session_present)
        self._counters.connects += 1
        told = {} if properties is None else properties.json()
        window, size = told.get("ReceiveMaximum", 65_535), told.get("MaximumPacketSize", PACKET_BYTES_MAX)
        self.publishing = self.on_window(window)
        link = self.link
        self.publishing.begin(window, size, has_properties=link.version == "5")
        self._orders.presence.begin()
        log.info(
            "mqtt.connected",
            extra={
                "server": link.options.server,
                "client": link.options.client_id,
                "version": link.version,
                "epoch": link.epoch,
                "session": flags.session_present,
                "intake": link.reader_kind,
            },
        )

    def subscribed(self) -> bool:
        """True if the broker has answered every subscription that is wanted now."""
        return self.accepted and self.subscriptions.are_answered(self._orders.wanted)

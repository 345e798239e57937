"""Reading MQTT fast: one receive call for hundreds of packets, one send call for hundreds of
acknowledgements.

paho keeps the connection, the session, the subscriptions and all that is sent. Its own reader makes about
five system calls and a dozen objects per message. `BufferedReader` takes what the socket has, up to 64 KiB,
turns PUBLISH packets of QoS 0 and 1 straight into tuples, and hands every other packet to paho's handlers.
For that it touches private parts of paho; where they are not as expected (`fits`), `StockReader` does the
same by paho's public loop, packet by packet.

Neither waits for a batch to fill. A turn ends after one buffer, or `STOCK_PACKETS_PER_TURN` packets, so that
acknowledgements, keepalive and outgoing packets are never far away.
"""

from __future__ import annotations

import ssl
import struct
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import or_
from typing import Any, Protocol

from paho.mqtt import MQTTException
from paho.mqtt import __version__ as paho_version
from paho.mqtt import client as paho

from edge.base.message import DUPLICATE, RETAINED, BadMessage, Message
from edge.intake.sources.base import ConnectionLost
from edge.intake.sources.mqtt.publish_parser import PublishParser, escaped, too_large, why_bad
from rules.problems import in_words

RECEIVE_BYTES = 65_536
STOCK_PACKETS_PER_TURN = 500

_NOTHING_THERE = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_PUBACK_WITHOUT_ID = 0x4002_0000
_HOOKS: dict[str, Any] = {
    "_packet_handle": Callable,
    "_packet_queue": Callable,
    "_in_packet": dict,
    "_last_bytes_received": float,
}
_IN_PACKET_KEYS = {"command", "remaining_length", "packet", "pos"}


class Reader(Protocol):
    """Reads one connection, and acknowledges on it."""

    duplicates: int
    """Messages so far that were marked as sent before."""

    def read(self, batch: list[Message], bad: list[BadMessage]) -> bool:
        """Append what has arrived; whether more may wait that the socket does not show. Raises
        `ConnectionLost`."""

    def acknowledge(self, ids: Sequence[int]) -> None:
        """Send PUBACKs for these packet ids, in this order."""

    def cut_off_id(self) -> int | None:
        """The packet id of a message whose first transmission has not come to its end;
        None where none is known."""


def fits(client: paho.Client) -> bool:
    """True if the private parts of paho that `BufferedReader` needs are there and have the expected form."""
    return (
        paho_version.startswith("2.")
        and all(isinstance(getattr(client, name, None), kind) for name, kind in _HOOKS.items())
        and client._in_packet.keys() >= _IN_PACKET_KEYS
        and callable(getattr(paho, "time_func", None))
    )


class StockReader:
    """Reads by paho's public loop.

    epoch              of the connection; it is part of each token,
                       so that an acknowledgement finds its connection
    packet_bytes_max   a longer PUBLISH is reported as bad, its payload left out
    """

    def __init__(self, client: paho.Client, epoch: int, packet_bytes_max: int) -> None:
        self.duplicates = 0
        self._client = client
        self._epoch_bits = epoch << 16
        self._packet_bytes_max = packet_bytes_max
        self._batch: list[Message] = []
        self._bad: list[BadMessage] = []
        client.on_message = self._on_message

    def read(self, batch: list[Message], bad: list[BadMessage]) -> bool:
        self._batch, self._bad = batch, bad
        for _ in range(STOCK_PACKETS_PER_TURN):
            seen = len(batch) + len(bad)
            code = self._client.loop_read()
            if code > 0:
                raise ConnectionLost(paho.error_string(code))
            sock = self._client.socket()
            if sock is None:
                raise ConnectionLost("connection closed by the broker")
            if len(batch) + len(bad) == seen:
                return buffered_by_tls(sock)
        return True

    def acknowledge(self, ids: Sequence[int]) -> None:
        for packet_id in ids:
            self._client.ack(packet_id, 1)

    def cut_off_id(self) -> int | None:
        return None  # paho does not report it

    def _on_message(self, client: paho.Client, userdata: object, message: paho.MQTTMessage) -> None:
        token = self._epoch_bits | message.mid if message.qos == 1 else None
        if message.qos == 2:  # allowed only where loss is: from here on the message is in memory only
            client.ack(message.mid, 2)
        self.duplicates += message.dup
        try:
            topic, raw = message.topic, b""
        except UnicodeDecodeError as error:
            topic, raw = "", error.object
        payload = bytes(message.payload)
        length = 2 + len(raw or topic.encode()) + (2 if message.qos else 0) + len(payload)
        if length > self._packet_bytes_max:
            self._bad.append((topic or escaped(raw), b"", token, too_large(length, self._packet_bytes_max)))
        elif not topic:
            self._bad.append((escaped(raw), payload, token, why_bad(raw)))
        else:
            flags = (DUPLICATE if message.dup else 0) | message.qos << 1 | (RETAINED if message.retain else 0)
            self._batch.append((topic, payload, token, flags))


class BufferedReader(StockReader):
    """Reads many packets at once; see the module. What it does not read itself, paho delivers as in
    `StockReader`."""

    def __init__(
        self,
        client: paho.Client,
        epoch: int,
        packet_bytes_max: int,
        has_properties: bool,
        confirmed: Callable[[int, int], bool] = lambda packet_id, code: False,
    ) -> None:
        """`confirmed` takes packet id and reason code of each PUBACK; True keeps it from paho."""
        super().__init__(client, epoch, packet_bytes_max)
        self._confirmed = confirmed
        self._ahead = b""
        self._socket: Any = None
        self._decrypted: Callable[[], int] | None = None
        self._parser = PublishParser(epoch, has_properties, packet_bytes_max, self._hand_to_paho)

    def attach(self, connection: Any) -> None:
        """Use a socket, which paho has connected."""
        self._socket = connection
        self._decrypted = connection.pending if isinstance(connection, ssl.SSLSocket) else None

    def read(self, batch: list[Message], bad: list[BadMessage]) -> bool:
        self._batch, self._bad = batch, bad
        ahead, self._ahead = self._ahead, b""
        try:
            data: bytes = self._socket.recv(RECEIVE_BYTES)
        except _NOTHING_THERE:
            data = b""
        except OSError as error:
            data = self._ended(ahead, f"receiving failed: {in_words(error)}")
        else:
            if not data:
                self._ended(ahead, "connection closed by the broker")
        if not (data or ahead):
            return False
        # paho sends pings, and gives a connection up, by this time stamp.
        self._client._last_bytes_received = paho.time_func()
        parser = self._parser
        parser.feed(ahead + data if ahead else data, batch, bad)
        self.duplicates = parser.duplicates
        return len(data) == RECEIVE_BYTES or (self._decrypted is not None and self._decrypted() > 0)

    def read_ahead(self) -> bool:
        """Take bytes off the socket for the next `read`; whether there were any."""
        if not self._ahead:
            try:
                self._ahead = self._socket.recv(RECEIVE_BYTES)
            except OSError:  # nothing is there, or the next read reports the fault
                return False
        return bool(self._ahead)

    def _ended(self, ahead: bytes, why: str) -> bytes:
        """Nothing more comes: raises `ConnectionLost` unless something was read ahead; the next read does."""
        if not ahead:
            raise ConnectionLost(why)
        return b""

    def acknowledge(self, ids: Sequence[int]) -> None:
        packets = struct.pack(f">{len(ids)}I", *map(or_, ids, repeat(_PUBACK_WITHOUT_ID)))
        self.send(packets)

    def send(self, packets: bytes) -> None:
        """Send whole packets."""
        sock: Any = self._client.socket()
        if sock is not None and not self._client.want_write():
            try:
                packets = packets[sock.send(packets) :]
            except _NOTHING_THERE:
                pass
            except OSError as error:
                raise ConnectionLost(f"sending failed: {in_words(error)}") from error
        if packets:  # as PUBACK: paho keeps no record of those
            self._client._packet_queue(paho.PUBACK, packets, 0, 1)

    def cut_off_id(self) -> int | None:
        return self._parser.cut_off_id()

    def _hand_to_paho(self, command: int, body: bytes) -> None:
        """Let paho handle a packet as if it had read it, except confirmations of what paho did not send."""
        code = body[2] if len(body) > 2 else 0
        if command == paho.PUBACK and len(body) >= 2 and self._confirmed(body[0] << 8 | body[1], code):
            return
        packet = self._client._in_packet
        packet["command"], packet["remaining_length"], packet["packet"] = command, len(body), bytearray(body)
        packet["pos"] = 0
        try:
            code = self._client._packet_handle()
        except MQTTException as error:
            raise ConnectionLost(f"malformed packet: {error}") from error
        if code > 0:
            raise ConnectionLost(paho.error_string(code))
        if self._client.socket() is None:
            raise ConnectionLost("connection closed by the broker")


def buffered_by_tls(sock: object) -> bool:
    """True if decrypted bytes are waiting that the socket itself does not show."""
    return bool(getattr(sock, "pending", int)())

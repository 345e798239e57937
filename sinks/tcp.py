"""Small packets without delay: avoid the interplay of Nagle's algorithm and delayed acknowledgements.

A sender holds back a small packet while an earlier one is unacknowledged (Nagle's algorithm); a receiver
holds back its acknowledgement for up to 40 ms, in case it has something to send along. Brokers write message
by message and leave the first on: with delayed acknowledgements here, every second message would be 40 ms
late.

These functions ignore a broken connection: the next read or write raises a better error.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sinks.base import Clock

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


def send_at_once(connection: Any) -> None:
    """Switch Nagle's algorithm off for this socket; lasts as long as the connection."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def acknowledge_at_once(connection: Any) -> None:
    """Let the kernel acknowledge what was received. Linux resets the option, so it is set after each read;
    other systems lack it."""
    if _QUICKACK is not None:
        try:  # a context manager would take as long as the call
            connection.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        except OSError:
            return


def end_in_order(connection: socket.socket, clock: Clock, timeout_ms: int) -> None:
    """Send no more, and read until the other side has closed, or for so long: a socket that is closed with
    something unread resets the connection, and the other side loses what it has not read. Raises `OSError`.
    """
    until_ms = clock.monotonic_ms() + timeout_ms
    connection.shutdown(socket.SHUT_WR)
    while (left_ms := until_ms - clock.monotonic_ms()) > 0:
        connection.settimeout(left_ms / 1000)
        if not connection.recv(65_536):
            return

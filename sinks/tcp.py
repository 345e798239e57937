"""Small packets without delay: what keeps the two economies of TCP from waiting for each other.

A sender holds back a small packet while an earlier one is unacknowledged (Nagle's algorithm); a receiver
holds back its acknowledgement for up to 40 ms, in case it has something to send along. Brokers write message
by message and leave the first of the two on: if we waited as well, every second message would be 40 ms late.

A connection that is broken is left to the next read or write, which can say more about it.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


def send_at_once(connection: Any) -> None:
    """Never hold back what is written to this socket; lasts as long as the connection."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def acknowledge_at_once(connection: Any) -> None:
    """Let the kernel acknowledge what was received. Linux forgets the wish, so it is told after each read;
    other systems cannot be told."""
    if _QUICKACK is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

"""Sockets with TLS: none stays open when it cannot be encrypted."""

from __future__ import annotations

import select
import socket
import ssl
import struct

import pytest

from sinks.builtin.rest import RestSettings
from tests.support.waiting import PATIENCE_MS

CLOSE_WITH_RESET = struct.pack("ii", 1, 0)


def test_a_server_that_has_gone_before_the_handshake_leaves_no_socket_open() -> None:
    context = RestSettings.model_validate({"url": "https://localhost/"}).tls_context()
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, CLOSE_WITH_RESET)
        accepted.close()
        waiting = select.poll()
        waiting.register(client, select.POLLHUP)
        assert waiting.poll(PATIENCE_MS)
        descriptor = client.fileno()
        # The error keeps the frames of `wrap_socket`, and so a socket that is not closed.
        with pytest.raises(OSError, match="the server has closed the connection"):
            context.wrap_socket(client, server_hostname="localhost")
        with pytest.raises(OSError, match="Bad file descriptor"):
            socket.socket(fileno=descriptor)


def test_a_failed_handshake_leaves_no_socket_open() -> None:
    context = RestSettings.model_validate({"url": "https://localhost/"}).tls_context()
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        descriptor = ours.fileno()
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(ours, server_hostname="localhost")
        with pytest.raises(OSError, match="Bad file descriptor"):
            socket.socket(fileno=descriptor)

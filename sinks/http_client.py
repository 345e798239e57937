"""Requests to HTTP servers that settings name: the connection, the exchange, the meaning of a status."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

PASSING = (408, 425, 429)
"""Statuses from 400 to 499 that a later request may not get."""
ANSWER_BYTES_MAX = 64 * 1024
"""The bytes of an answer that a sink reads; behind a longer one it makes a new connection."""
REASON_CHARS_MAX = 200
"""The characters of an error answer that are kept as the reason."""


def is_passing(status: int) -> bool:
    """True if the same request may succeed later: the server is overloaded, or has a defect."""
    return status >= 500 or status in PASSING


def reason_in(body: bytes) -> str:
    """The beginning of an error answer, on one line."""
    return " ".join(body[:REASON_CHARS_MAX].decode(errors="replace").split())


def connection_to(url: str, timeout_ms: int, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    """A connection to the server of an address; its first request opens it. `tls`: the context for https."""
    parts = urlsplit(url)
    assert parts.hostname, "addresses are checked with the settings"
    seconds = timeout_ms / 1000
    if parts.scheme == "https":
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=seconds, context=tls)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=seconds)


def target_of(url: str) -> str:
    """The path and query of an address, which a request names.

    >>> target_of("http://host/a?b=1"), target_of("http://host")
    ('/a?b=1', '/')
    """
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None,
    bytes_max: int,
) -> tuple[int, bytes]:
    """Send a request; the status and at most `bytes_max` bytes of the answer. Raises OSError and
    HTTPException."""
    connection.request(method, target_of(url), body=body, headers={"User-Agent": "penstock", **headers})
    answer = connection.getresponse()
    return answer.status, answer.read(bytes_max)

"""Rows that an HTTP server gives as JSON."""

from __future__ import annotations

import http.client
import re
import ssl
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from pydantic import Field

from edge.intake.lookups.base import (
    KeyRefused,
    LookupEnvironment,
    LookupKind,
    LookupSettings,
    Refused,
    Rows,
    Unanswered,
)
from edge.intake.sources.registry import http_address
from rules.secrets import reveal
from sinks.base import Fatal, failure_at
from sinks.http_client import connection_to, exchange, is_passing
from sinks.settings import Text
from sinks.tls import TlsSettings
from sql.catalog.streams import Stream

PLACE = re.compile(r"\{([^{}]+)\}")
"""The placeholder of a key's value in the address."""


REMEDIES = {
    401: "check the credentials in headers",
    405: "check method",
    407: "check the credentials of the proxy",
}
"""Statuses by which a server refuses every request, and what to do."""


class HttpLookupSettings(LookupSettings, TlsSettings):
    """Get JSON from an HTTP server: an object is a row, an array of objects are rows, 404 and 204 are none.

    The address is `url` with DATASOURCE behind it; DATASOURCE alone may be the whole address.
    `{column}` in it stands for that column's value of the key. Rows with other values in the columns of the
    key are left out, so an address without `{column}` may give a whole list.
    """

    url: Text = Field("", description="http or https")
    method: Literal["get", "post", "GET", "POST"] = Field("get")
    body: str = Field("", description="what is sent, in JSON, with '{column}' as in the address")
    headers: dict[str, Text] = Field(default_factory=dict, description="further request headers")


class HttpLookup:
    """One connection, which is kept open between requests."""

    def __init__(self, address: str, settings: HttpLookupSettings, bytes_max: int) -> None:
        self._address = address
        self._settings = settings
        self._bytes_max = bytes_max
        self._headers = {name: reveal(value) for name, value in settings.headers.items()}
        self._tls: ssl.SSLContext | None = None
        self._connection: http.client.HTTPConnection | None = None

    def find(self, columns: tuple[str, ...], key: tuple[Any, ...], timeout_ms: int) -> Rows:
        wanted = dict(zip(columns, key, strict=True))
        places = set(PLACE.findall(self._address + self._settings.body))
        if places - wanted.keys():
            missing = ", ".join(sorted(places - wanted.keys()))
            raise Refused(f"the address has {{{missing}}}, which ON does not name; add it to ON")
        try:
            status, text = self._exchange(wanted, timeout_ms)
        except (ssl.SSLCertVerificationError, Fatal) as error:
            self.close()
            raise Refused(f"{error}; check the settings of TLS") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unanswered(failure_at(self._address, error)) from None
        if status in (204, 404):
            return []
        if not 200 <= status < 300:
            raise _failure(status)
        return self._rows(text, wanted, places)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, wanted: dict[str, Any], timeout_ms: int) -> tuple[int, bytes]:
        settings = self._settings
        url = PLACE.sub(lambda place: quote(_text(wanted[place[1]]), safe=""), self._address)
        body = PLACE.sub(lambda place: msgspec.json.encode(wanted[place[1]]).decode(), settings.body).encode()
        headers = {"Accept": "application/json", **self._headers}
        if body:
            headers = {"Content-Type": "application/json", **headers}
        connection = self._connected(timeout_ms)
        method, bytes_max = settings.method.upper(), self._bytes_max
        status, text = exchange(connection, method, url, headers, body or None, bytes_max + 1)
        if len(text) > bytes_max:
            self.close()
            raise KeyRefused(f"the answer is longer than {bytes_max} bytes (limits.payloadBytesMax)")
        return status, text

    def _connected(self, timeout_ms: int) -> http.client.HTTPConnection:
        if self._connection is None:
            if self._tls is None and self._address.lower().startswith("https:"):
                self._tls = self._settings.tls_context()
            self._connection = connection_to(self._address, timeout_ms, self._tls)
        self._connection.timeout = timeout_ms / 1000
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout_ms / 1000)
        return self._connection

    def _rows(self, text: bytes, wanted: dict[str, Any], places: set[str]) -> Rows:
        try:
            found = msgspec.json.decode(text) if text.strip() else []
        except msgspec.DecodeError as error:
            raise KeyRefused(f"the answer is no JSON: {error}; check the address") from None
        items = found if isinstance(found, list) else [] if found is None else [found]
        if not all(isinstance(item, dict) for item in items):
            raise KeyRefused("the answer is neither an object nor an array of objects; check the address")
        rows = [
            {**{name: value for name, value in wanted.items() if name in places}, **item} for item in items
        ]
        rows = [row for row in rows if all(_is(row.get(name), value) for name, value in wanted.items())]
        if len(rows) > self._settings.rows_max:
            raise KeyRefused(f"more than {self._settings.rows_max} rows for one key (rowsMax)")
        return rows


def _failure(status: int) -> Exception:
    """The error for a status other than success, 204 and 404."""
    if is_passing(status):
        return Unanswered(f"HTTP {status}")
    if status in REMEDIES:
        return Refused(f"HTTP {status}; {REMEDIES[status]}")
    return KeyRefused(f"HTTP {status}; check the address")


def _is(found: object, wanted: object) -> bool:
    """True if a server's value equals the key's; servers write numbers as texts; keys come from addresses."""
    return bool(found == wanted) or (found is not None and _text(found) == _text(wanted))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _make(stream: Stream, settings: HttpLookupSettings, environment: LookupEnvironment) -> HttpLookup:
    address = http_address(stream.datasource, reveal(settings.url), "http", "headers")
    return HttpLookup(address, settings, environment.bytes_max)


KIND = LookupKind("http", HttpLookupSettings, _make)

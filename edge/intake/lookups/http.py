"""Rows that an HTTP server gives as JSON."""

from __future__ import annotations

import http.client
import re
import ssl
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
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
from sinks.base import Fatal, Retry, failure_at
from sinks.http_client import connection_to, exchange, is_passing
from sinks.oauth import Headers, OAuth, TokenRefused, Tokens, template_of
from sinks.settings import Text
from sinks.tls import TlsSettings
from sql.catalog.streams import Stream

if TYPE_CHECKING:
    from edge.clock import Clock

PLACE = re.compile(r"\{([^{}]+)\}")
"""The placeholder of a key's value in the address."""


REMEDIES = {
    401: "check the credentials in headers or oAuth",
    405: "check method",
    407: "check the credentials of the proxy",
}
"""Statuses by which a server refuses every request, and what to do."""


class HttpLookupSettings(LookupSettings, TlsSettings):
    """Get JSON from an HTTP server: an object is a row, an array of objects are rows, 404 and 204 are none.

    The address is `url` with DATASOURCE behind it; DATASOURCE alone may be the whole address.
    `{column}` in it stands for that column's value of the key. Rows with other values in the columns of the
    key are left out, so an address without `{column}` may give a whole list. Where the answer is 401 and
    there is `oAuth`, a new token is asked for, and the request repeated at once.
    """

    url: Text = Field("", description="http or https")
    method: Literal["get", "post", "GET", "POST"] = Field("get")
    body: str = Field("", description="what is sent, in JSON, with '{column}' as in the address")
    headers: Headers = Field(
        default_factory=dict, description="further request headers, with fields of the token"
    )
    o_auth: OAuth | None = Field(None, description="get a token first, and a new one when it expires")


class HttpLookup:
    """One connection, which is kept open between requests."""

    def __init__(self, address: str, settings: HttpLookupSettings, bytes_max: int, clock: Clock) -> None:
        """`clock`: tokens grow old by it."""
        self._address = address
        self._settings = settings
        self._bytes_max = bytes_max
        self._headers = {name: template_of(value) for name, value in settings.headers.items()}
        self._tokens = None if settings.o_auth is None else Tokens(settings.o_auth, clock, self._post)
        self._timeout_ms = settings.timeout_ms
        self._tls: ssl.SSLContext | None = None
        self._connection: http.client.HTTPConnection | None = None

    def find(self, columns: tuple[str, ...], key: tuple[Any, ...], timeout_ms: int) -> Rows:
        wanted = dict(zip(columns, key, strict=True))
        places = set(PLACE.findall(self._address + self._settings.body))
        if places - wanted.keys():
            missing = ", ".join(sorted(places - wanted.keys()))
            raise Refused(f"the address has {{{missing}}}, which ON does not name; add it to ON")
        self._timeout_ms = timeout_ms
        request = partial(self._request, wanted)
        try:
            status, text = request({}) if self._tokens is None else self._tokens.exchange(request)
        except Retry as error:
            raise Unanswered(str(error)) from None
        except TokenRefused as error:
            raise Refused(f"{error}; check oAuth") from None
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

    def _request(self, wanted: dict[str, Any], token: dict[str, Any]) -> tuple[int, bytes]:
        settings = self._settings
        url = PLACE.sub(lambda place: quote(_text(wanted[place[1]]), safe=""), self._address)
        body = PLACE.sub(lambda place: msgspec.json.encode(wanted[place[1]]).decode(), settings.body).encode()
        filled = {name: template.render(token) for name, template in self._headers.items()}
        headers = {"Accept": "application/json", **filled}
        if body:
            headers = {"Content-Type": "application/json", **headers}
        connection = self._connected()
        method, bytes_max = settings.method.upper(), self._bytes_max
        status, text = exchange(connection, method, url, headers, body or None, bytes_max + 1)
        if len(text) > bytes_max:
            self.close()
            raise KeyRefused(f"the answer is longer than {bytes_max} bytes (limits.payloadBytesMax)")
        return status, text

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = self._new_connection(self._address)
        self._connection.timeout = self._timeout_ms / 1000
        if self._connection.sock is not None:
            self._connection.sock.settimeout(self._timeout_ms / 1000)
        return self._connection

    def _new_connection(self, url: str) -> http.client.HTTPConnection:
        if self._tls is None and url.lower().startswith("https:"):
            self._tls = self._settings.tls_context()
        return connection_to(url, self._timeout_ms, self._tls)

    def _post(self, url: str, headers: dict[str, str], body: str) -> tuple[int, bytes]:
        """Request a token, on a connection of its own."""
        with closing(self._new_connection(url)) as connection:
            headers = {"Content-Type": "application/json", **headers}
            return exchange(connection, "POST", url, headers, body.encode(), self._bytes_max)

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
    address = http_address(stream.datasource, reveal(settings.url), "http")
    return HttpLookup(address, settings, environment.bytes_max, environment.clock)


KIND = LookupKind("http", HttpLookupSettings, _make)

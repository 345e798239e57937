"""The `httppull` source: a server is polled at an interval, and its answers are the stream's messages."""

from __future__ import annotations

import hashlib
import http.client
import ssl
from typing import Any, Literal

import msgspec
from pydantic import Field, field_validator

from edge.clock import Clock
from edge.intake.sources.registry import (
    BadSource,
    SourceEnvironment,
    SourceKind,
    http_address,
    register_source,
    topic_of,
)
from edge.intake.sources.worker import WorkerSource
from rules.durations import DurationMs
from rules.secrets import reveal
from sinks.base import SinkFailure, failure_at
from sinks.http_client import connection_to, exchange
from sinks.oauth import Headers, OAuth, Tokens, template_of
from sinks.settings import Text
from sinks.tls import TlsSettings
from sql.catalog.streams import Stream
from sql.errors import DataError

_CONTENT_TYPES = {
    "json": "application/json",
    "text": "text/plain",
    "html": "text/html",
    "xml": "application/xml",
    "javascript": "application/javascript",
    "form": "application/x-www-form-urlencoded",
}


class HttpPullSettings(TlsSettings):
    """Request the stream's messages from a server at an interval.

    The address is `url` with the stream's DATASOURCE behind it; DATASOURCE alone may be the whole address. An
    answer other than 2xx is counted and logged, and the request is repeated at the next interval. If it is
    401 and there is `oAuth`, a new token is asked for, and the request repeated at once.

    The address behind its host, `body` and `headers` may hold fields of the token, and two instants in
    milliseconds since the epoch: `{{.PullTime}}` of this request, `{{.LastPullTime}}` of the last one that
    was answered, one interval before the first.
    """

    url: Text = Field("", description="http or https")
    method: Literal["get", "post", "put", "patch", "delete", "head", "GET", "POST", "PUT"] = Field("get")
    interval: DurationMs = Field(10_000, ge=1, description="time between two requests")
    timeout: DurationMs = Field(5000, ge=1, description="time for connecting and for the answer")
    incremental: bool = Field(False, description="leave out an answer that is the same as the one before")
    body: str = Field("", description="what is sent with the request; a template like the address")
    body_type: Literal["none", "json", "text", "html", "xml", "javascript", "form"] = Field("json")
    headers: Headers = Field(default_factory=dict, description="further headers, with fields of the token")
    o_auth: OAuth | None = Field(None, description="get a token first, and a new one when it expires")
    response_type: Literal["code", "body"] = Field(
        "code", description="body: each object of an answer has a `code`, and fails outside of 200 to 299"
    )

    @field_validator("url", "body")
    @classmethod
    def _is_a_template(cls, text: object) -> Any:
        template_of(text)
        return text


class HttpPullSource(WorkerSource):
    """One request after the other, each on a connection of its own: intervals are
    long, and servers forget."""

    def __init__(
        self, stream: str, url: str, settings: HttpPullSettings, clock: Clock, bytes_max: int
    ) -> None:
        super().__init__(stream, clock)
        self._url = url
        self._address = template_of(url)
        self._body = template_of(settings.body)
        self._settings = settings
        self._answered_ms: int | None = None
        self._bytes_max = bytes_max
        self._tls: ssl.SSLContext | None = None
        self._last = b""
        self._headers = {name: template_of(value) for name, value in settings.headers.items()}
        self._tokens = None if settings.o_auth is None else Tokens(settings.o_auth, clock, self._post)

    def run(self) -> None:
        wait_ms = 0
        while self._goes_on(wait_ms):
            began_ms = self._clock.monotonic_ms()
            try:
                self._pull()
            except (OSError, http.client.HTTPException) as error:
                self._failed(failure_at(self._url, error))
            except (SinkFailure, DataError, ValueError) as error:
                self._failed(str(error) or type(error).__name__)
            wait_ms = max(1, self._settings.interval - (self._clock.monotonic_ms() - began_ms))

    def _pull(self) -> None:
        settings, now_ms = self._settings, self._clock.now_ms()
        before_ms = now_ms - settings.interval if self._answered_ms is None else self._answered_ms
        times = {"PullTime": now_ms, "LastPullTime": before_ms}

        def request(token: dict[str, Any]) -> tuple[int, bytes]:
            return self._request({**token, **times})

        status, answer = request({}) if self._tokens is None else self._tokens.exchange(request)
        if not 200 <= status < 300:
            self._failed(f"HTTP {status}")
            return
        if settings.response_type == "body" and (fault := _fault_in(answer)):
            self._failed(fault)
            return
        self._answered_ms = now_ms
        digest = hashlib.sha256(answer).digest()
        if answer and not (settings.incremental and digest == self._last):
            self._deliver([(topic_of(self.name), answer, None, 0)])
        self._last = digest

    def _request(self, values: dict[str, Any]) -> tuple[int, bytes]:
        settings = self._settings
        headers = {name: template.render(values) for name, template in self._headers.items()}
        sends = settings.body and settings.body_type != "none"
        body = self._body.render(values).encode() if sends else None
        if body is not None:
            headers = {"Content-Type": _CONTENT_TYPES[settings.body_type], **headers}
        return self._exchange(self._address.render(values), settings.method.upper(), headers, body)

    def _exchange(
        self, url: str, method: str, headers: dict[str, str], body: bytes | None
    ) -> tuple[int, bytes]:
        if self._tls is None and url.lower().startswith("https:"):
            self._tls = self._settings.tls_context()
        connection = connection_to(url, self._settings.timeout, self._tls)
        try:
            status, text = exchange(connection, method, url, headers, body, self._bytes_max + 1)
        finally:
            connection.close()
        if len(text) > self._bytes_max:
            raise ValueError(
                f"the answer is longer than the {self._bytes_max} bytes allowed (limits.payloadBytesMax)"
            )
        return status, text

    def _post(self, url: str, headers: dict[str, str], body: str) -> tuple[int, bytes]:
        return self._exchange(url, "POST", {"Content-Type": "application/json", **headers}, body.encode())


def _fault_in(answer: bytes) -> str | None:
    """Why an answer is no success by its own words: each of its objects has a code from 200 to 299."""
    try:
        found = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return "the answer is no JSON, so it has no code"
    for item in found if isinstance(found, list) else [found]:
        code = item.get("code") if isinstance(item, dict) else None
        if isinstance(code, bool) or not isinstance(code, int | float):
            return "the answer has no code"
        if not 200 <= code < 300:
            return f"the answer has code {code}"
    return None


def _address(stream: Stream, settings: HttpPullSettings) -> str:
    """The address of the stream's requests; a template behind the host. Raises `BadSource`."""
    url = http_address(stream.datasource, reveal(settings.url), "httppull")
    try:
        template_of(url)
    except ValueError as error:
        raise BadSource("DATASOURCE", f"is no template: {error}") from None
    return url


def _make(stream: Stream, settings: HttpPullSettings, environment: SourceEnvironment) -> HttpPullSource:
    url = _address(stream, settings)
    return HttpPullSource(stream.name, url, settings, environment.clock, environment.bytes_max)


register_source(SourceKind("httppull", HttpPullSettings, _make, check=_address))

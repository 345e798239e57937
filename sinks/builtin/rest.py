"""The `rest` sink: results as HTTP requests."""

from __future__ import annotations

import contextlib
import http.client
import logging
import ssl
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, Literal
from urllib.parse import urlencode, urlsplit

from pydantic import Field, field_validator

from rules.durations import DurationMs
from rules.secrets import reveal
from sinks.base import (
    Clock,
    Fatal,
    Message,
    Reject,
    Retry,
    Row,
    SinkContext,
    SinkFailure,
    failure_at,
    register_sink,
)
from sinks.dynamic import Target
from sinks.formats.json_text import json_text
from sinks.http_client import ANSWER_BYTES_MAX, connection_to, exchange, is_passing, reason_in, target_of
from sinks.kuiper_keys import REPLACED
from sinks.oauth import Headers, OAuth, Tokens, template_of
from sinks.settings import SinkSettings, Text
from sinks.tls import TLS_WITHOUT_EFFECT, TlsSettings
from sql.errors import DataError

log = logging.getLogger("penstock.sinks.rest")

_CONTENT_TYPES = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "xml": "application/xml; charset=utf-8",
    "javascript": "application/javascript; charset=utf-8",
    "form": "application/x-www-form-urlencoded",
}
_METHODS = ("POST", "PUT", "PATCH", "DELETE", "GET", "HEAD")
_ENCODINGS = {"gzip": "gzip", "zlib": "deflate"}


class RestSettings(SinkSettings, TlsSettings):
    """Send each message as an HTTP request.

    2xx is delivered; 408, 425, 429, 5xx and connection errors are tried again, after `Retry-After` if the
    server says so; any other answer makes the message a dead letter. Redirects are not followed.
    """

    address: ClassVar[str | None] = "url"
    target: ClassVar[str | None] = "url"
    target_kind: ClassVar[Literal["topic", "url", "path"]] = "url"
    without_effect: ClassVar[Mapping[str, str]] = TLS_WITHOUT_EFFECT
    replaced: ClassVar[Mapping[str, str]] = {
        **REPLACED,
        "responseType": "the status code of an answer decides",
        "formData": "use 'bodyType: form', which sends the columns of a row as form fields",
        "fileFieldName": "use 'bodyType: form', which sends the columns of a row as form fields",
    }

    url: Text = Field(description="http or https; may hold '{{.field}}' after the host")
    method: str = Field(
        "post",
        description="post, put, patch, delete, get or head; may be '{{.field}}' of the message's first row",
    )
    body_type: Literal["none", "json", "text", "html", "xml", "javascript", "form"] = Field(
        "json",
        description="the content type; form sends the columns of one row as form fields; none sends no body",
    )
    headers: Headers = Field(
        default_factory=dict,
        description=(
            "further request headers; with '{{.field}}' of the message's first row, or of the oAuth answer"
        ),
    )
    o_auth: OAuth | None = Field(None, description="get a token first, and a new one when it expires")
    debug_resp: bool = Field(False, description="log each answer of the server")
    timeout: DurationMs = Field(5000, ge=1, description="time for connecting and for each answer")

    def addresses(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """The server, and the servers that issue tokens."""
        yield from super().addresses()
        for url in () if self.o_auth is None else self.o_auth.urls():
            yield ("oAuth", "url"), url

    @field_validator("url")
    @classmethod
    def _url_is_http(cls, url: object) -> Any:
        text = reveal(url)
        parts = urlsplit(text)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or any(char.isspace() for char in text.strip())
        ):
            raise ValueError("url must look like 'http://host/path' or 'https://host/path'")
        if parts.username or parts.password:
            raise ValueError("url must not hold a password; use 'headers' with an Authorization header")
        _ = parts.port  # raises ValueError when it is no number
        Target(text, "url")
        return url

    @field_validator("method")
    @classmethod
    def _method_is_known(cls, method: str) -> str:
        if "{{" in method:
            template_of(method)
        elif method.upper() not in _METHODS:
            raise ValueError(f"unknown method {method!r}; use post, put, patch, delete, get or head")
        return method

    def faults(self) -> Iterator[str]:
        """A form has one row."""
        yield from super().faults()
        if self.body_type == "form" and not self.send_single:
            yield "'bodyType: form' sends one row per request; add 'sendSingle: true'"
        if self.body_type == "form" and (self.data_template or self.format != "json" or self.compression):
            yield "'dataTemplate', 'format' and 'compression' have no effect with 'bodyType: form'"


class RestSink:
    """A sink with one kept-alive connection to one host; sends requests one by one, to keep their order."""

    def __init__(self, settings: RestSettings, context: SinkContext) -> None:
        self._settings = settings
        self._clock: Clock = context.environment.clock
        self._rule_id = context.rule_id
        self._headers = self._request_headers()
        self._method = template_of(settings.method)
        self._dynamic = {
            name: template_of(value) for name, value in settings.headers.items() if "{{" in reveal(value)
        }
        self._tokens = None if settings.o_auth is None else Tokens(settings.o_auth, self._clock, self._post)
        self._tls: ssl.SSLContext | None = None
        self._connection: http.client.HTTPConnection | None = None

    def _request_headers(self) -> dict[str, str]:
        settings = self._settings
        headers = {"User-Agent": "penstock"}
        if settings.body_type != "none":
            csv = settings.format == "delimited" and settings.body_type == "json"
            headers["Content-Type"] = "text/csv; charset=utf-8" if csv else _CONTENT_TYPES[settings.body_type]
        if settings.compression and settings.body_type not in ("none", "form"):
            headers["Content-Encoding"] = _ENCODINGS[settings.compression]
        return headers | {
            name: reveal(value) for name, value in settings.headers.items() if "{{" not in reveal(value)
        }

    def _headers_of(self, message: Message) -> dict[str, str]:
        """The headers of one request: the constant ones, and those that depend on the row and the token."""
        if not self._dynamic:
            return self._headers
        values = {**_first_row(message), **(self._tokens.answer() if self._tokens else {})}
        filled = {name: template.render(values, message.at_ms) for name, template in self._dynamic.items()}
        if wrong := next(
            (name for name, text in filled.items() if any(char in "\r\n\0" for char in text)), None
        ):
            raise Reject(f"header {wrong!r} would hold a line break")
        return self._headers | filled

    def _method_of(self, message: Message) -> str:
        method = self._method.render(_first_row(message), message.at_ms).upper()
        if method not in _METHODS:
            raise Reject(f"{method!r} is no method")
        return method

    def _post(self, url: str, headers: dict[str, str], body: str) -> tuple[int, bytes]:
        """The status and answer of a request for a token."""
        connection = connection_to(url, self._settings.timeout, self._tls)
        try:
            headers = {"Content-Type": _CONTENT_TYPES["json"]} | headers
            return exchange(connection, "POST", url, headers, body.encode(), ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException) as failure:
            raise Retry(f"token: {failure_at(url, failure)}") from failure
        finally:
            connection.close()

    def open(self) -> None:
        """Read the TLS files. The connection is made by the first request."""
        urls = [reveal(self._settings.url), *(self._settings.o_auth.urls() if self._settings.o_auth else ())]
        if any(url.lower().startswith("https:") for url in urls):
            self._tls = self._settings.tls_context()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def send(self, messages: Sequence[Message]) -> None:
        """One request per message."""
        for done, message in enumerate(messages):
            try:
                self._deliver(message)
            except SinkFailure as failure:
                failure.done = done
                raise

    def _deliver(self, message: Message) -> None:
        try:
            status, reason, retry_after = self._request(message)
        except ssl.SSLCertVerificationError as failure:
            self.close()
            raise Fatal(
                f"certificate of the server is not trusted: {failure.verify_message}; check rootCaPath"
            ) from failure
        except (OSError, http.client.HTTPException) as failure:
            self.close()
            raise Retry(failure_at(reveal(self._settings.url), failure)) from failure
        except (ValueError, DataError) as failure:
            self.close()
            raise Reject(f"request cannot be made: {failure}") from failure
        if self._settings.debug_resp:
            log.info("answer of the server", extra={"rule": self._rule_id, "status": status, "text": reason})
        if 200 <= status < 300:
            if self._tokens is not None:
                self._tokens.accepted()
            return
        if status == 401 and self._tokens is not None:
            self._tokens.refused()
            raise Retry(f"HTTP 401: {reason}", after_ms=0)
        if is_passing(status):
            raise Retry(f"HTTP {status}: {reason}", after_ms=self._after_ms(retry_after))
        raise Reject(f"HTTP {status}: {reason}")

    def _request(self, message: Message) -> tuple[int, str, str | None]:
        """The status, text and Retry-After of the answer."""
        reused = self._connection is not None
        try:
            return self._exchange(message)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # The server closed the kept-alive connection between two requests: not an
            # error, send it on a new one.
            self.close()
            if not reused:
                raise
            return self._exchange(message)

    def _exchange(self, message: Message) -> tuple[int, str, str | None]:
        headers = self._headers_of(message)
        settings = self._settings
        connection = self._connection = self._connection or connection_to(
            reveal(settings.url), settings.timeout, self._tls
        )
        connection.request(
            self._method_of(message), target_of(message.target), body=self._body(message), headers=headers
        )
        answer = connection.getresponse()
        text = answer.read(ANSWER_BYTES_MAX)
        if not answer.isclosed():
            self.close()
        return answer.status, reason_in(text) or answer.reason, answer.getheader("Retry-After")

    def _body(self, message: Message) -> bytes | None:
        if self._settings.body_type == "none":
            return None
        if self._settings.body_type != "form":
            return message.payload
        fields = {
            name: value if isinstance(value, str) else json_text(value)
            for name, value in message.rows[0].items()
        }
        return urlencode(fields).encode()

    def _after_ms(self, header: str | None) -> int | None:
        """Milliseconds to wait, from seconds or an HTTP date; None without a usable header."""
        if header is None:
            return None
        with contextlib.suppress(ValueError, TypeError):
            if header.strip().isdigit():
                return int(header) * 1000
            return max(0, round(parsedate_to_datetime(header).timestamp() * 1000) - self._clock.now_ms())
        return None


def _first_row(message: Message) -> Row:
    return message.rows[0] if message.rows and isinstance(message.rows[0], dict) else {}


register_sink("rest", RestSettings, RestSink)

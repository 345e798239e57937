"""The `influx` and `influx2` sinks: results as points of an InfluxDB, by its line protocol over HTTP."""

from __future__ import annotations

import base64
import http.client
import ssl
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal
from urllib.parse import urlencode, urlsplit

from pydantic import Field, field_validator

from rules.durations import DurationMs
from rules.secrets import reveal
from sinks.base import Fatal, Message, Reject, Retry, SinkContext, SinkFailure, failure_at, register_sink
from sinks.formats.line_protocol import line
from sinks.http_client import ANSWER_BYTES_MAX, connection_to, exchange, is_passing, reason_in
from sinks.oauth import template_of
from sinks.settings import SinkSettings, Text, Texts, fault_of
from sinks.tls import TLS_WITHOUT_EFFECT, TlsSettings
from sql.errors import DataError

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class _InfluxSettings(SinkSettings, TlsSettings):
    """The settings that both versions have in common."""

    address: ClassVar[str | None] = "addr"
    encodes: ClassVar[bool] = False
    takes_whole_rows: ClassVar[bool] = True
    without_effect: ClassVar[Mapping[str, str]] = TLS_WITHOUT_EFFECT
    unsupported: ClassVar[frozenset[str]] = frozenset({"format", "schemaId", "delimiter", "hasHeader"})

    addr: Text = Field(description="the server, such as 'http://127.0.0.1:8086'")
    measurement: Text = Field(description="the measurement; may hold '{{.field}}'")
    tags: Texts = Field(default_factory=dict, description="tags; their values may hold '{{.field}}'")
    ts_field_name: str | None = Field(
        None,
        min_length=1,
        description="the column with the point's time, in `precision`; default: the result's instant",
    )
    precision: Literal["s", "ms", "us", "ns"] = Field("ms", description="unit of time stamps")
    timeout: DurationMs = Field(5000, ge=1, description="time for connecting and for the answer")

    @classmethod
    def _in_own_terms(cls, data: dict[Any, Any]) -> dict[Any, Any]:
        """eKuiper 1 has one tag: `tagKey` is its name, `tagValue` its value."""
        names = {key.lower(): key for key in data if isinstance(key, str)}
        if "tagkey" not in names or "tags" in data:
            return data
        value = data.get(names.get("tagvalue"), "")
        others = {key: held for key, held in data.items() if str(key).lower() not in ("tagkey", "tagvalue")}
        return {**others, "tags": {data[names["tagkey"]]: value}}

    @field_validator("addr")
    @classmethod
    def _addr_is_http(cls, addr: object) -> Any:
        parts = urlsplit(reveal(addr))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
            raise ValueError("addr looks like 'http://host:8086', without a password in it")
        return addr

    def faults(self) -> Iterator[str]:
        """The templates can be read."""
        yield from super().faults()
        for key, text in (("measurement", self.measurement), *(("tags", tag) for tag in self.tags.values())):
            yield from fault_of(template_of, text, key)
        if not reveal(self.measurement):
            yield "'measurement' is empty"
        if self.compression not in (None, "gzip"):
            yield "'compression' must be gzip or absent: InfluxDB reads no other"

    @property
    @abstractmethod
    def path(self) -> str:
        """The path that points are posted to."""

    @property
    @abstractmethod
    def authorization(self) -> str | None:
        """The `Authorization` header; None without a user or token."""


class InfluxSettings(_InfluxSettings):
    """Write each row as a point of an InfluxDB 1.

    All waiting points are written by one request. A point that is sent again overwrites itself. A row that
    the server refuses is a dead letter.
    """

    database: str = Field(min_length=1, description="the database")
    username: Text = Field("", description="user name")
    password: Text = Field("", description="password")

    @property
    def path(self) -> str:
        # Version 1 has `u` for microseconds.
        unit = {"us": "u"}.get(self.precision, self.precision)
        return "/write?" + urlencode({"db": self.database, "precision": unit})

    @property
    def authorization(self) -> str | None:
        who = f"{reveal(self.username)}:{reveal(self.password)}"
        return None if who == ":" else "Basic " + base64.b64encode(who.encode()).decode()


class Influx2Settings(_InfluxSettings):
    """Write each row as a point of an InfluxDB 2.

    All waiting points are written by one request. A point that is sent again overwrites itself. A row that
    the server refuses is a dead letter.
    """

    org: str = Field(min_length=1, description="the organisation")
    bucket: str = Field(min_length=1, description="the bucket")
    token: Text = Field("", description="the token")
    use_line_protocol: bool = Field(
        False, description="without effect, as points are always lines; not with `dataTemplate`"
    )

    def faults(self) -> Iterator[str]:
        """No template writes lines: it writes the JSON of a point's fields."""
        yield from super().faults()
        if self.use_line_protocol and self.data_template is not None:
            yield "'useLineProtocol' makes lines of fields, measurement and tags: remove 'dataTemplate'"

    @property
    def path(self) -> str:
        words = {"org": self.org, "bucket": self.bucket, "precision": self.precision}
        return "/api/v2/write?" + urlencode(words)

    @property
    def authorization(self) -> str | None:
        return f"Token {reveal(self.token)}" if reveal(self.token) else None


class InfluxSink:
    """A sink that sends one request per batch; if the server refuses it, one per message."""

    def __init__(self, settings: _InfluxSettings, context: SinkContext) -> None:
        self._settings = settings
        self._measurement = template_of(settings.measurement)
        self._tags = {name: template_of(value) for name, value in settings.tags.items()}
        self._tls: ssl.SSLContext | None = None

    def open(self) -> None:
        """Read the TLS files. Each request has a connection of its own: batches are seconds apart."""
        if reveal(self._settings.addr).startswith("https:"):
            self._tls = self._settings.tls_context()

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    def send(self, messages: Sequence[Message]) -> None:
        """Write all points."""
        points: list[str] = []
        for done, message in enumerate(messages):
            try:
                points += [self._point(dict(row), message.at_ms) for row in message.rows]
            except (ValueError, DataError) as failure:
                if done:
                    self.send(messages[:done])
                raise Reject(str(failure), done=done) from None
        try:
            self._write(points)
        except Reject as failure:
            if len(messages) == 1:
                raise
            self._one_by_one(messages, failure)

    def _one_by_one(self, messages: Sequence[Message], failure: Reject) -> None:
        for done, message in enumerate(messages):
            try:
                self.send([message])
            except SinkFailure as refused:
                refused.done = done
                raise refused from failure

    def _point(self, row: dict[str, Any], at_ms: int) -> str:
        settings = self._settings
        at: Any = at_ms * _PER_SECOND[settings.precision] // 1000
        fields = settings.chosen(row)
        if settings.ts_field_name is not None:
            at = row.get(settings.ts_field_name)
            fields.pop(settings.ts_field_name, None)
            if at.__class__ is not int:
                raise ValueError(
                    f"column '{settings.ts_field_name}' holds no time stamp: a whole number is needed"
                )
        tags = {name: template.render(row, at_ms) for name, template in self._tags.items()}
        return line(
            self._measurement.render(row, at_ms), {k: v for k, v in tags.items() if v != "null"}, fields, at
        )

    def _write(self, points: list[str]) -> None:
        if not points:
            return
        settings = self._settings
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        if settings.authorization is not None:
            headers["Authorization"] = settings.authorization
        body = "\n".join(points).encode()
        if settings.compression == "gzip":
            import gzip

            body, headers = gzip.compress(body, mtime=0), headers | {"Content-Encoding": "gzip"}
        status, text = self._exchange(body, headers)
        if 200 <= status < 300:
            return
        if status in (401, 403):
            raise Fatal(f"HTTP {status}: {text}")
        if is_passing(status):
            raise Retry(f"HTTP {status}: {text}")
        raise Reject(f"HTTP {status}: {text}")

    def _exchange(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        server = reveal(self._settings.addr)
        connection = connection_to(server, self._settings.timeout, self._tls)
        try:
            url = server.rstrip("/") + self._settings.path
            status, text = exchange(connection, "POST", url, headers, body, ANSWER_BYTES_MAX)
            return status, reason_in(text)
        except ssl.SSLCertVerificationError as failure:
            raise Fatal(
                f"certificate of the server is not trusted: {failure.verify_message}; check rootCaPath"
            ) from failure
        except (OSError, http.client.HTTPException) as failure:
            raise Retry(failure_at(server, failure)) from failure
        finally:
            connection.close()


register_sink("influx", InfluxSettings, InfluxSink)
register_sink("influx2", Influx2Settings, InfluxSink)

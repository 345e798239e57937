"""The `kafka` sink: results as records of a Kafka topic, delivered when its brokers
have acknowledged them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from rules.durations import DurationMs
from rules.secrets import reveal
from sinks.base import Client, Fatal, Message, Reject, Retry, SinkContext, register_sink
from sinks.connections import SYNONYMS, ConnectionSettings, connected
from sinks.dynamic import Target, check_topic
from sinks.settings import SinkSettings, Text, Texts, fault_of
from sinks.tls import TLS_WITHOUT_EFFECT, TlsSettings
from sql.errors import DataError

_SASL = {"plain": "PLAIN", "scram_sha_256": "SCRAM-SHA-256", "scram_sha_512": "SCRAM-SHA-512"}

_QUIET = logging.getLogger("penstock.sinks.kafka")

LOG_LEVEL = 2
"""The log level of the client library: critical errors. The delivery reports an unreachable broker, once."""

_HOPELESS = frozenset(
    {
        "MSG_SIZE_TOO_LARGE",
        "INVALID_MSG",
        "INVALID_MSG_SIZE",
        "INVALID_RECORD",
        "RECORD_LIST_TOO_LARGE",
        "TOPIC_EXCEPTION",
        "_BAD_MSG",
    }
)
"""Errors of the record itself."""

_UNUSABLE = frozenset(
    {
        "_AUTHENTICATION",
        "SASL_AUTHENTICATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "_SSL",
    }
)
"""Errors of the sink's settings."""


class KafkaSettings(SinkSettings, TlsSettings, ConnectionSettings):
    """Write each message as a record of a Kafka topic (extra penstock[kafka]).

    A message is delivered when the brokers that `requiredACKs` names have it. The producer is idempotent with
    all of them: a record that it sends again after a broken connection is stored once.
    """

    address: ClassVar[str | None] = "brokers"
    target: ClassVar[str | None] = "topic"
    compresses: ClassVar[bool] = True
    synonyms: ClassVar[Mapping[str, str]] = {**SYNONYMS, "password": "saslPassword"}
    without_effect: ClassVar[Mapping[str, str]] = {
        **TLS_WITHOUT_EFFECT,
        "kafkaBatchSize": "what waits is produced as one batch",
        "batchBytes": "what waits is produced as one batch",
        "kafkaBatchTimeout": "what waits is produced at once",
        "maxAttempts": "retryCount says how often a record is tried again",
        "tlsMinVersion": "the client library chooses the version of TLS",
    }

    brokers: Text | None = Field(None, description="host:port of brokers, separated by commas")
    topic: Text = Field(description="the topic; may hold '{{.field}}' after its beginning")
    key: str | None = Field(
        None, description="key of the record; may hold '{{.field}}' of the message's first row"
    )
    headers: Texts = Field(
        default_factory=dict,
        description="headers of the record; with '{{.field}}' of the message's first row",
    )
    required_acks: Literal[-1, 0, 1] = Field(
        -1,
        alias="requiredACKs",
        description="confirmations to wait for: -1 of all replicas in sync, 1 of the leader, 0 none",
    )
    compression: Literal["gzip", "snappy", "lz4", "zstd"] | None = Field(  # type: ignore[assignment]
        None, description="compress batches of records"
    )
    sasl_auth_type: Literal["none", "plain", "scram_sha_256", "scram_sha_512"] = Field(
        "none", description="how the gateway authenticates"
    )
    sasl_user_name: Text = Field("", description="user name")
    sasl_password: Text = Field("", alias="saslPassword", description="password")
    tls: bool = Field(False, description="encrypt; follows from a certificate among the settings")
    timeout: DurationMs = Field(10_000, ge=1000, description="time for connecting and for a batch")

    @field_validator("sasl_auth_type", mode="before")
    @classmethod
    def _spellings(cls, kind: object) -> Any:
        return kind.lower().replace("-", "_") if isinstance(kind, str) else kind

    @field_validator("brokers", mode="before")
    @classmethod
    def _brokers_as_text(cls, brokers: object) -> Any:
        return (
            ",".join(brokers)
            if isinstance(brokers, list) and all(isinstance(item, str) for item in brokers)
            else brokers
        )

    def faults(self) -> Iterator[str]:
        """A cluster and a user are named, and the templates can be read."""
        yield from super().faults()
        if self.brokers is None and self.connection_selector is None:
            yield "'brokers' or 'connectionSelector' says which cluster"
        if (self.sasl_auth_type != "none") != bool(reveal(self.sasl_user_name)):
            yield "'saslAuthType' and 'saslUserName' belong together"
        yield from fault_of(check_topic, reveal(self.topic), "topic")
        for key, text in (("key", self.key or ""), *(("headers", each) for each in self.headers.values())):
            yield from fault_of(lambda text: Target(text, "path"), text, key)

    @property
    def client_settings(self) -> dict[str, Any]:
        """The settings of the client library."""
        secure = self.tls or any(
            (self.root_ca_path, self.root_ca_raw, self.certification_path, self.certification_raw)
        )
        protocol = ("SASL_" if self.sasl_auth_type != "none" else "") + ("SSL" if secure else "PLAINTEXT")
        found: dict[str, Any] = {
            "bootstrap.servers": reveal(self.brokers),
            "security.protocol": protocol,
            "acks": self.required_acks,
            "enable.idempotence": self.required_acks == -1,
            "compression.type": self.compression or "none",
            "linger.ms": 0,
            "log_level": LOG_LEVEL,
            "message.timeout.ms": self.timeout,
            "socket.timeout.ms": self.timeout,
            "enable.ssl.certificate.verification": not self.insecure_skip_verify,
        }
        if self.sasl_auth_type != "none":
            found |= {
                "sasl.mechanism": _SASL[self.sasl_auth_type],
                "sasl.username": reveal(self.sasl_user_name),
                "sasl.password": reveal(self.sasl_password),
            }
        files = {
            "ssl.ca.location": self.root_ca_path,
            "ssl.ca.pem": self.root_ca_raw,
            "ssl.certificate.location": self.certification_path,
            "ssl.certificate.pem": self.certification_raw,
            "ssl.key.location": self.private_key_path,
            "ssl.key.pem": self.private_key_raw,
        }
        return found | {name: reveal(value) for name, value in files.items() if value is not None}


class KafkaSink:
    """A sink that produces a batch, then waits for the reports of the whole batch.

    After a failure the producer is closed, so that nothing of the batch can arrive late and out of order.
    """

    def __init__(self, settings: KafkaSettings, context: SinkContext) -> None:
        self._written = self._settings = settings
        self._context = context
        self._key = Target(settings.key, "path") if settings.key else None
        self._headers = {name: Target(text, "path") for name, text in settings.headers.items()}
        self._producer: Any = None
        self._errors: type[Exception] = RuntimeError
        """The library's own error; it is known when the sink is opened."""

    def open(self) -> None:
        """Connect, and request the list of brokers."""
        self.close()
        try:
            from confluent_kafka import KafkaException, Producer
        except ImportError:
            raise Fatal("this needs the Kafka client: install penstock[kafka]") from None
        self._errors = KafkaException
        settings = self._settings = connected(self._written, self._context)
        try:
            self._producer = Producer(settings.client_settings, logger=_QUIET)
            self._producer.list_topics(timeout=settings.timeout / 1000)
        except KafkaException as failure:
            self.close()
            raise _failure(failure.args[0], 0) from None

    def close(self) -> None:
        """Close the producer and discard the records that it holds."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.flush(0)

    def send(self, messages: Sequence[Message]) -> None:
        """Produce all records, and wait until all are acknowledged."""
        if self._producer is None:
            self.open()
        errors: dict[int, Any] = {}
        hopeless: Reject | None = None
        sent = 0
        for message in messages:
            try:
                self._produce(message, sent, errors)
            except Reject as failure:
                hopeless = failure
                break
            sent += 1
        self._producer.flush(self._settings.timeout / 1000 + 1)
        for done in range(sent):
            if errors.get(done, "") is not None:  # no report at all, or one with an error
                self.close()
                raise _failure(errors.get(done), done)
        if hopeless is not None:
            raise Reject(hopeless.reason, done=sent)

    def _produce(self, message: Message, number: int, errors: dict[int, Any]) -> None:
        row = message.rows[0] if message.rows and isinstance(message.rows[0], dict) else {}
        try:
            key = None if self._key is None else self._key.fill(row)
            headers = {name: text.fill(row) for name, text in self._headers.items()}
        except DataError as failure:
            raise Reject(str(failure)) from None

        def report(error: object, _record: object) -> None:
            errors[number] = error

        while True:
            try:
                self._producer.produce(
                    message.target, message.payload, key, headers=headers or None, on_delivery=report
                )
            except BufferError:  # its queue is full: let it send
                self._producer.poll(0.1)
            except self._errors as failure:
                raise Reject(f"cannot be produced: {failure}") from None
            else:
                return


def _failure(error: Any, done: int) -> Retry | Reject | Fatal:
    """The failure that corresponds to an error of the library."""
    if error is None:
        return Retry("the brokers did not acknowledge in time", done=done)
    text = f"Kafka: {error.str()}"
    if error.name() in _HOPELESS:
        return Reject(text, done=done)
    return Fatal(text, done=done) if error.name() in _UNUSABLE else Retry(text, done=done)


register_sink("kafka", KafkaSettings, KafkaSink, client=Client("confluent_kafka", "kafka"))

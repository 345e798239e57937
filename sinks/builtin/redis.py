"""The `redis` and `redisPub` sinks: results as keys of a Redis server, or as messages of its channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from pydantic import Field, field_validator

from rules.durations import DurationMs, Seconds
from rules.secrets import reveal
from sinks.base import Client, Fatal, Message, Reject, Retry, SinkContext, failure_at, register_sink
from sinks.connections import SYNONYMS, ConnectionSettings, connected
from sinks.databases.base import Refused, kind_of
from sinks.dynamic import check_topic
from sinks.formats.json_text import json_bytes
from sinks.settings import SinkSettings, Text, fault_of

if TYPE_CHECKING:
    from redis.client import Pipeline


class Account(Protocol):
    """The settings of a server, and of a user there."""

    addr: Any
    username: Any
    password: Any


def host_and_port(addr: str) -> tuple[str, int]:
    """The parts of an address. Raises ValueError.

    >>> host_and_port("[::1]:6379")
    ('::1', 6379)
    """
    host, _, port = addr.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError("the address of a Redis server is host:port")
    return host.strip("[]"), int(port)


def client_of(account: Account, database: int, timeout_ms: int) -> Any:
    """A client, which repeats nothing: deliveries and lookups pause and try again themselves. Raises
    ImportError."""
    import redis

    host, port = host_and_port(reveal(account.addr))
    return redis.Redis(
        host,
        port,
        database,
        reveal(account.password) or None,
        username=reveal(account.username) or None,
        socket_timeout=timeout_ms / 1000,
        socket_connect_timeout=timeout_ms / 1000,
        retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
    )


class _Server(SinkSettings, ConnectionSettings):
    """The settings of the connection to a Redis server."""

    address: ClassVar[str | None] = "addr"
    synonyms: ClassVar[Mapping[str, str]] = {**SYNONYMS, "address": "addr", "expire": "expiration"}

    addr: Text | None = Field(None, alias="addr", description="host:port of the server")
    username: Text = Field("", description="user name")
    password: Text = Field("", description="password")
    db: int = Field(0, ge=0, description="number of the database")
    timeout: DurationMs = Field(5000, ge=1, description="time for connecting and for each batch")

    @field_validator("db", mode="before")
    @classmethod
    def _number(cls, db: object) -> Any:
        return int(db) if isinstance(db, str) and db.isdecimal() else db

    @field_validator("addr")
    @classmethod
    def _is_host_and_port(cls, addr: object) -> Any:
        if addr is not None:
            host_and_port(reveal(addr))
        return addr

    def faults(self) -> Iterator[str]:
        """A server is named."""
        yield from super().faults()
        if self.addr is None and self.connection_selector is None:
            yield "'addr' or 'connectionSelector' says which server"


class RedisSettings(_Server):
    """Store each message under a key of a Redis server (extra penstock[redis]).

    A message is delivered when the server has it; one that is sent again overwrites itself, but is a second
    element of a list. A row whose `rowkindField` says delete removes its key, or the front of its list.
    """

    target: ClassVar[str | None] = "key"

    key: Text | None = Field(None, description="the key; may hold '{{.field}}' after its beginning")
    field: str | None = Field(None, min_length=1, description="the column whose value is the key")
    key_type: Literal["single", "multiple"] = Field(
        "single", description="multiple: each column of a row is a key with its value"
    )
    data_type: Literal["string", "list"] = Field(
        "string", description="string sets the key, list pushes to its front"
    )
    expiration: Seconds = Field(0, description="the time until a key is forgotten; 0 or -1: never")

    @field_validator("expiration", mode="before")
    @classmethod
    def _never(cls, expiration: object) -> object:
        return 0 if expiration == -1 else expiration

    @classmethod
    def _in_own_terms(cls, data: dict[Any, Any]) -> dict[Any, Any]:
        """A key that is a row's column, and a column that says what is done with it,
        take the rows one by one."""
        single = {"sendSingle": True} if data.keys() & {"field", "rowkindField"} else {}
        return {**single, **data}

    def faults(self) -> Iterator[str]:
        """The key is said, once."""
        yield from super().faults()
        said = (self.key is not None) + (self.field is not None) + (self.key_type == "multiple")
        if not said:
            yield "'key', 'field' or 'keyType: multiple' must say where a message is stored"
        if said > 1:
            yield "only one of 'key', 'field' and 'keyType: multiple' says where a message is stored"
        if self.field is not None and not self.send_single:
            yield "'field' takes the key from a row; add 'sendSingle: true'"
        if self.rowkind_field is not None and not self.send_single:
            yield "'rowkindField' says what is done with one row; add 'sendSingle: true'"
        if self.data_type == "list" and self.expiration > 0:
            yield "'expiration' has no effect on lists"
        if self.key is not None:
            yield from fault_of(check_topic, reveal(self.key), "key")

    @property
    def target_text(self) -> str:
        return "" if self.key is None else reveal(self.key)


class RedisPubSettings(_Server):
    """Publish each message to a channel of a Redis server (extra penstock[redis]).

    A message is delivered when the server has it, with or without subscribers.
    """

    target: ClassVar[str | None] = "channel"

    channel: Text = Field(description="the channel; may hold '{{.field}}' after its beginning")

    @field_validator("channel")
    @classmethod
    def _channel_is_one(cls, channel: object) -> Any:
        check_topic(reveal(channel))
        return channel


class RedisSink:
    """A sink that sends a batch as one pipeline: one write, one read."""

    def __init__(self, settings: _Server, context: SinkContext) -> None:
        self._settings = settings
        self._url = ""
        self._context = context
        self._client: Any = None
        self._put: Callable[[Any, Message], None] = self._publish
        if isinstance(settings, RedisSettings):
            self._put = self._store

    def open(self) -> None:
        """Connect and log in."""
        self.close()
        try:
            import redis
        except ImportError:
            raise Fatal("this needs the Redis client: install penstock[redis]") from None
        settings = connected(self._settings, self._context)
        self._url = f"redis://{reveal(settings.addr)}"
        self._client = client_of(settings, settings.db, settings.timeout)
        try:
            self._client.ping()
        except redis.AuthenticationError as failure:
            said = str(failure).rstrip(".")
            raise Fatal(f"the server refused the connection: {said}; check username and password") from None
        except (redis.RedisError, OSError) as failure:
            raise Retry(f"server cannot be reached: {self._failure(failure)}") from None

    def _failure(self, failure: Exception) -> str:
        """The failure in words; the client's own sentence has the number that the system gave."""
        cause = failure.__context__
        return failure_at(self._url, cause if isinstance(cause, OSError) else failure)

    def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def send(self, messages: Sequence[Message]) -> None:
        """Send all in one pipeline; the error names the first message that the server refused."""
        if self._client is None:
            self.open()
        import redis

        pipeline = self._client.pipeline(transaction=False)
        counts = []
        for done, message in enumerate(messages):
            try:
                self._put(pipeline, message)
            except (ValueError, Refused) as failure:
                if done:
                    self.send(messages[:done])
                raise Reject(str(failure), done=done) from None
            counts.append(len(pipeline))
        try:
            answers = pipeline.execute(raise_on_error=False)
        except (redis.RedisError, OSError) as failure:
            self.close()
            raise Retry(f"connection lost: {self._failure(failure)}") from None
        for number, answer in enumerate(answers):
            if isinstance(answer, redis.RedisError):
                done = next(index for index, count in enumerate(counts) if number < count)
                raise Reject(f"the server refused it: {answer}", done=done)

    def _publish(self, pipeline: Pipeline, message: Message) -> None:
        pipeline.publish(message.target, message.payload)

    def _store(self, pipeline: Pipeline, message: Message) -> None:
        settings = self._settings
        assert isinstance(settings, RedisSettings)
        kind = kind_of(message.rows[0] if message.rows else {}, settings.rowkind_field, "insert")
        for key, value in self._pairs(settings, message):
            if kind == "delete":
                (pipeline.lpop if settings.data_type == "list" else pipeline.delete)(key)
            elif settings.data_type == "list":
                pipeline.lpush(key, value)
            else:
                pipeline.set(key, value, ex=settings.expiration if settings.expiration > 0 else None)

    def _pairs(self, settings: RedisSettings, message: Message) -> list[tuple[str, bytes]]:
        if settings.key_type == "multiple":
            return [
                (name, _text(value))
                for row in message.rows
                for name, value in row.items()
                if name != settings.rowkind_field and (value is not None or settings.send_nil_field)
            ]
        if settings.field is None:
            return [(message.target, message.payload)]
        key = message.rows[0].get(settings.field) if message.rows else None
        if key is None or key == "":
            raise ValueError(f"column '{settings.field}', which is the key, is absent or NULL")
        return [(str(key), message.payload)]


def _text(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else json_bytes(value)


CLIENT = Client("redis", "redis")

register_sink("redis", RedisSettings, RedisSink, client=CLIENT)
register_sink("redisPub", RedisPubSettings, RedisSink, client=CLIENT)

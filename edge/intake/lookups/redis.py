"""Rows that stand as JSON under the keys of a Redis server."""

from __future__ import annotations

from typing import Any, Literal

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
from edge.intake.sources.registry import BadSource
from rules.secrets import reveal
from sinks.builtin.redis import client_of, host_and_port
from sinks.settings import Text
from sql.catalog.streams import Stream


class RedisLookupSettings(LookupSettings):
    """Query a Redis server for the JSON under a key (extra penstock[redis]); DATASOURCE is the number of the
    database. ON names one column, whose value is the key."""

    addr: Text = Field("", description="host:port of the server")
    username: Text = Field("", description="user name")
    password: Text = Field("", description="password")
    data_type: Literal["string", "list"] = Field(
        "string", description="string: the key has one row; list: each element is one"
    )


class RedisLookup:
    """One connection; each request reads one key."""

    def __init__(self, settings: RedisLookupSettings, database: int) -> None:
        self._settings = settings
        self._database = database
        self._client: Any = None

    def find(self, columns: tuple[str, ...], key: tuple[Any, ...], timeout_ms: int) -> Rows:
        if len(columns) != 1:
            raise Refused("Redis has one key: let ON name one column of the table")
        try:
            import redis
        except ImportError:
            raise Refused("this needs a package: install penstock[redis]") from None
        try:
            self._client = self._client or client_of(self._settings, self._database, timeout_ms)
            texts = self._read(self._client, str(key[0]))
            found = [msgspec.json.decode(text) for text in texts]
        except redis.RedisError as error:
            self.close()
            raise _failure(error) from None
        except msgspec.DecodeError as error:
            raise KeyRefused(f"key '{key[0]}' holds no JSON: {error}; correct the value") from None
        if not all(isinstance(row, dict) for row in found):
            raise KeyRefused(f"key '{key[0]}' holds no JSON object; correct the value")
        return [{columns[0]: key[0], **row} for row in found]

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _read(self, client: Any, key: str) -> list[bytes]:
        if self._settings.data_type == "list":
            rows: list[bytes] = client.lrange(key, 0, self._settings.rows_max)
            if len(rows) > self._settings.rows_max:
                raise KeyRefused(f"more than {self._settings.rows_max} rows under one key (rowsMax)")
            return rows
        text: bytes | None = client.get(key)
        return [] if text is None else [text]


def _failure(error: Exception) -> Exception:
    """The error of a lookup for an error of the client."""
    import redis

    if isinstance(error, redis.AuthenticationError):
        return Refused(f"{str(error).rstrip('.')}; check username and password")
    if isinstance(error, redis.ResponseError) and "DB index" in str(error):
        return Refused(f"{error}; check DATASOURCE, the number of the database")
    if isinstance(error, redis.ResponseError | redis.exceptions.AuthorizationError):
        return KeyRefused(f"{error}; check dataType, and the rights of the user")
    return Unanswered(str(error))


def _make(stream: Stream, settings: RedisLookupSettings, environment: LookupEnvironment) -> RedisLookup:
    try:
        host_and_port(reveal(settings.addr))
    except ValueError:
        where = "write it there, or in sources.redis"
        raise BadSource("EXTRA", f"addr is host:port of the Redis server: {where}") from None
    database = str(stream.options.get("DATASOURCE", "0"))
    if not database.isdecimal():
        raise BadSource(
            "DATASOURCE", f"'{database}' is no number of a Redis database; write 0 for the first one"
        )
    return RedisLookup(settings, int(database))


KIND = LookupKind("redis", RedisLookupSettings, _make)

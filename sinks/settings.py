"""The properties that every sink has, under eKuiper's names, and the types of sinks' own settings.

A property that would have no effect is refused, never ignored: `unsupported` of a settings class names those
that have none on its sink, and the error for an eKuiper property that penstock replaces names the substitute.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import parse_qsl

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from rules.base import Model, refused, yaml_keys
from rules.durations import DurationMs, format_duration
from rules.protobuf import message_type
from rules.secrets import Secret, reveal, secrets_in
from rules.validation import describe
from sinks.kuiper_keys import REPLACED, WITHOUT_EFFECT, is_unset
from sinks.template import Template, TemplateError


def fault_of(check: Callable[[str], object], text: str, key: str = "") -> Iterator[str]:
    """Why a check refuses a text, with the key that it is about."""
    try:
        check(text)
    except ValueError as failure:
        yield f"'{key}': {failure}" if key else str(failure)


_OF_DELIMITED = ("delimiter", "has_header")

_IN_QUERY = ("host", "hostaddr", "server")
"""The parameters that name hosts in the query of a database's URL."""

_HIDING = ("service", "dsn", "odbc_connect")
"""The parameters of a database's URL that hide its host."""


def server_addresses(address: str) -> Iterator[str]:
    """The servers of an address: those of a list with commas, and those in a database URL's query."""
    scheme, separator, rest = address.partition("://")
    rest = rest if separator else address
    servers, _, path = rest.partition("/")
    user, at, hosts = servers.rpartition("@")
    named = dict(parse_qsl(path.partition("?")[2], keep_blank_values=True)) if separator else {}
    given = [host for key in _IN_QUERY if key in named for host in named[key].split(",")]
    if any(key in named for key in _HIDING):
        given.append("unnamed.invalid")
    if not hosts and not given and not scheme.startswith("sqlite"):
        given.append("localhost")
    yield from given
    yield from (
        f"{scheme}{separator}{user}{at}{host}" if separator else host for host in hosts.split(",") if host
    )


def _check_text(value: object) -> Any:
    if isinstance(value, str | Secret):
        return value
    raise ValueError(f"must be text, not {describe(value)}")


Text = Annotated[Any, PlainValidator(_check_text), WithJsonSchema({"type": "string"})]
"""A text that may come from `${env:NAME}` or `${file:path}`; read it with `reveal`."""


def _read_mapping(value: object) -> Any:
    """eKuiper also writes a mapping as the text of a JSON object."""
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError("must be a mapping, or the text of a JSON object")
    return found


Texts = Annotated[dict[str, Text], BeforeValidator(_read_mapping)]
"""A mapping of names to texts, or its JSON text."""

CACHE = frozenset(
    [
        "enableCache",
        "memoryCacheThreshold",
        "maxDiskCache",
        "bufferPageSize",
        "cleanCacheAtStop",
        "resendInterval",
        "resendIndicatorField",
    ]
)
"""The properties of the file in front of a delivery."""


class SinkSettings(Model):
    """The common properties of all sinks."""

    address: ClassVar[str | None] = None
    """The setting that names the server."""
    target: ClassVar[str | None] = None
    """The setting that may hold `{{.field}}`: the topic, URL or path."""
    target_kind: ClassVar[Literal["topic", "url", "path"]] = "topic"
    """The kind of escaping of values in the target."""
    unsupported: ClassVar[frozenset[str]] = frozenset()
    """Common properties, by their YAML name, that have no effect on this sink."""
    without_effect: ClassVar[Mapping[str, str]] = WITHOUT_EFFECT
    replaced: ClassVar[Mapping[str, str]] = REPLACED
    """Properties of eKuiper that cannot be honoured, with what to write instead."""
    synonyms: ClassVar[Mapping[str, str]] = {}
    """Other names of properties, as earlier versions of eKuiper write them."""
    takes_whole_rows: ClassVar[bool] = False
    """True if the sink itself leaves columns out with `chosen`, for it reads others."""
    appends: ClassVar[bool] = False
    """True if messages are appended to one another: the sink itself writes the header and compresses."""
    compresses: ClassVar[bool] = False
    """True if the sink compresses by the means of its own protocol, so that messages stay uncompressed."""
    encodes: ClassVar[bool] = True
    """True if the sink takes payloads; otherwise it takes `Message.rows` and nothing is encoded."""

    send_single: bool = Field(False, description="one message per row instead of one array per result")
    omit_if_empty: bool = Field(
        False, description="no message for a result without rows, nor with sendSingle for a row of NULLs"
    )
    fields: list[str] | None = Field(
        None, min_length=1, description="the columns to send, in this order; one that a row lacks is null"
    )
    exclude_fields: list[str] = Field(default_factory=list, description="columns left out")
    data_field: str | None = Field(
        None, min_length=1, description="send the value of this column instead of the row"
    )
    data_template: Text | None = Field(None, description="a Go template that makes the message")
    send_nil_field: bool = Field(False, description="send NULL columns as null instead of leaving them out")
    rowkind_field: str | None = Field(
        None,
        min_length=1,
        description=(
            "this column says insert, update, upsert or delete; for rules with a remove stream it is added"
        ),
    )
    format: Literal["json", "delimited", "protobuf"] = Field("json", description="how messages are encoded")
    schema_id: str | None = Field(
        None,
        min_length=1,
        description="format protobuf: FILE.Message of a schema file beside the rules",
    )
    delimiter: str = Field(
        ",", min_length=1, max_length=1, description="between the columns of the delimited format"
    )
    has_header: bool = Field(False, description="begin the delimited format with a line of column names")
    compression: Literal["zlib", "gzip", "flate", "zstd"] | None = Field(
        None, description="compress each message"
    )

    batch_size: int = Field(1, ge=1, le=100_000, description="join this many rows into one message")
    linger_interval: DurationMs = Field(
        1000,
        ge=1,
        description="the time after which an unfilled batch is sent; alone, it batches by time",
    )
    buffer_length: int = Field(1024, ge=1, le=1_000_000, description="results that may wait for this sink")
    disable_buffer_full_discard: bool = Field(
        True,
        description=(
            "hold back the source when the queue is full; false drops the oldest result and counts it"
        ),
    )
    retry_interval: DurationMs = Field(
        1000, ge=1, description="time before the first retry; doubles each time"
    )
    retry_max_interval: DurationMs = Field(60_000, ge=1, description="the longest wait between retries")
    retry_count: int = Field(
        0, ge=0, description="retries before a message becomes a dead letter; 0 means no limit"
    )

    enable_cache: bool = Field(
        False,
        description="keep results in a file while the destination is away, and send them when it is back",
    )
    memory_cache_threshold: int = Field(
        1024,
        ge=1,
        le=1_000_000,
        description="enableCache: results that may be in memory, on the way to the file or out",
    )
    max_disk_cache: int = Field(
        1_024_000, ge=1, description="enableCache: results in the file; then disableBufferFullDiscard decides"
    )
    buffer_page_size: int = Field(
        256, ge=1, le=100_000, description="enableCache: results read from the file at once"
    )
    clean_cache_at_stop: bool = Field(
        False, description="enableCache: forget the results in the file at a stop"
    )
    resend_interval: DurationMs = Field(
        0,
        ge=0,
        description="enableCache: time between results that came while the destination was away",
    )
    resend_indicator_field: str | None = Field(
        None, min_length=1, description="enableCache: this column is true in results that are sent late"
    )

    def addresses(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """The servers of this sink: the path of the setting by its YAML names, and the address, which may be
        a secret."""
        if self.address is not None and (value := dict(self)[self.address]) is not None:
            yield from (((self.address,), each) for each in server_addresses(reveal(value)))

    @model_validator(mode="wrap")
    @classmethod
    def _names_in_any_case(cls, data: object, validated: ModelWrapValidatorHandler[Self]) -> Self:
        """Accept names in any case, as eKuiper does: `clientId` and `clientid` are the same. Report what this
        sink cannot honour together with all other errors."""
        if not isinstance(data, dict):
            return validated(data)
        names = (*yaml_keys(cls), *cls.unsupported, *cls.without_effect, *cls.replaced)
        known = {name.lower(): name for name in names}
        known |= {other.lower(): name for other, name in cls.synonyms.items()}
        found: dict[Any, Any] = {}
        reasons: list[str] = []
        for key, value in data.items():
            name = known.get(key.lower(), key) if isinstance(key, str) else key
            if name in found:
                reasons.append(f"{key!r} is the same property as another one; remove it")
            if not cls.counts_as_absent(name, value):
                found.setdefault(name, value)
        chosen = cls._without_what_has_no_effect(cls._in_own_terms(found), reasons)
        try:
            settings = validated(chosen)
        except ValidationError as error:
            raise (refused(reasons, error) if reasons else error) from None
        if reasons:
            raise refused(reasons)
        return settings

    @classmethod
    def _in_own_terms(cls, data: dict[Any, Any]) -> dict[Any, Any]:
        """The settings with those of eKuiper's that are written in another way here."""
        return data

    @classmethod
    def counts_as_absent(cls, key: object, value: object) -> bool:
        """True if a property says nothing. `enableCache: false` says something to a sink that can have a
        cache: the other properties of the cache are of no account, and no mistake."""
        return is_unset(key, value) and (key != "enableCache" or key in cls.unsupported)

    @classmethod
    def _without_what_has_no_effect(cls, data: dict[Any, Any], reasons: list[str]) -> dict[Any, Any]:
        """Leave out what changes nothing, and what this sink cannot honour, with the reason."""
        found = {}
        for key, value in data.items():
            if key in cls.unsupported:
                reasons.append(f"{key!r} has no effect on this sink; remove it")
            elif key in cls.replaced:
                reasons.append(f"{key!r} is not supported; {cls.replaced[key]}")
            elif key not in cls.without_effect:
                found[key] = value
        return found

    @field_validator("compression")
    @classmethod
    def _compression_is_installed(cls, method: str | None) -> str | None:
        if method == "zstd" and find_spec("zstandard") is None:
            raise ValueError("'zstd' needs the extra penstock[zstd]; install it, or use gzip")
        return method

    @field_validator("data_template")
    @classmethod
    def _template_parses(cls, text: Any) -> Any:
        if isinstance(text, Secret):
            try:
                Template(text.reveal())
            except TemplateError as failure:  # the full error shows the template
                raise ValueError(failure.problem.message) from None
        elif text is not None:
            Template(text)
        return text

    def faults(self) -> Iterator[str]:
        """Why the properties of all sinks do not fit together."""
        yield from super().faults()
        given = self.model_fields_set
        names = {name: field.alias for name, field in type(self).model_fields.items()}
        if self.format == "protobuf":
            yield from self._faults_of_schema()
        elif self.schema_id:
            yield "'schemaId' needs 'format: protobuf'"
        if self.format != "delimited":
            yield from (f"'{names[key]}' needs 'format: delimited'" for key in _OF_DELIMITED if key in given)
        if self.format == "delimited" and self.data_template and not (self.fields or self.data_field):
            yield "'dataTemplate' makes the message itself; remove 'format: delimited'"
        if self.fields and (both := set(self.fields) & set(self.exclude_fields)):
            yield f"'excludeFields' names columns that 'fields' has too: {', '.join(sorted(both))}"
        if "enable_cache" not in given:
            alone = sorted(str(names[key]) for key in given if names[key] in CACHE)
            yield from (f"'{key}' needs 'enableCache: true'" for key in alone)
        if self.retry_max_interval < self.retry_interval:
            longest, first = map(format_duration, (self.retry_max_interval, self.retry_interval))
            yield f"'retryMaxInterval' ({longest}) is below 'retryInterval' ({first})"

    def _faults_of_schema(self) -> Iterator[str]:
        if self.schema_id is None:
            yield "'format: protobuf' needs 'schemaId'"
        else:
            yield from fault_of(message_type, self.schema_id)
        if not self.send_single or self.batch_size > 1 or self.data_template:
            yield (
                "'format: protobuf' encodes single rows: add 'sendSingle: true', no batchSize or dataTemplate"
            )
        if self.appends:
            yield "'format: protobuf' has no separators; use a sink that sends messages one by one"

    @property
    def row_fields(self) -> list[str] | None:
        """The columns to send of the rule's rows; None for all."""
        return self.fields

    def chosen(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of a row that are sent: `fields` and `rowkindField`, or all but `excludeFields`."""
        if self.row_fields is None:
            return {name: value for name, value in row.items() if name not in self.exclude_fields}
        names = [*self.row_fields, *([self.rowkind_field] if self.rowkind_field else [])]
        return {name: row.get(name) for name in names}

    @property
    def batches(self) -> bool:
        """True if rows of several results are joined."""
        return self.batch_size > 1 or "linger_interval" in self.model_fields_set

    @property
    def target_text(self) -> str:
        """The topic, URL or path as written; empty for sinks without one. May be secret."""
        return reveal(getattr(self, self.target)) if self.target else ""

    def secrets(self) -> Iterator[str]:
        """The characters of all secret settings, for removing them from messages."""
        for name in type(self).model_fields:
            yield from secrets_in(getattr(self, name))

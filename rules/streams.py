"""Streams in YAML. A mapping is translated to a CREATE STREAM statement, so that one parser and one set of
checks serve both forms; `Statement` maps each part of the text to its path in the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field, JsonValue

from rules.base import Model
from rules.durations import DurationMs
from rules.source.document import Path
from sql.catalog.topics import OPTION, part_declared
from sql.errors import Span


class Column(Model):
    """A column with its details."""

    type: str = Field(
        description="bigint, float, string, boolean, datetime, bytea, array(type) or struct(name type, …)"
    )
    default: bool | int | float | str | None = Field(
        None, description="value of the column where a message lacks it; not with `strictValidation: false`"
    )


class Stream(Model):
    """The source and the columns of events."""

    name: str | None = Field(
        None, min_length=1, description="what rules call the stream; not needed in a mapping by name"
    )
    datasource: str | None = Field(
        None,
        min_length=1,
        description="the MQTT topic filter, such as plant/+/temperature, or the file or address",
    )
    columns: dict[str, str | Column] | None = Field(
        None,
        description="columns by name, with their types, or topic(2) for the second part of the topic; "
        "without them the stream is schemaless: any name is legal",
    )
    type: str | None = Field(
        None,
        min_length=1,
        description="kind of source: mqtt (default), memory, file, httppull, httppush, simulator",
    )
    format: str | None = Field(None, min_length=1, description="how messages are encoded; default json")
    timestamp: str | None = Field(
        None, min_length=1, description="the column with the event's time, for event time"
    )
    timestamp_format: str | None = Field(None, description="pattern of time stamps that are text")
    strict_validation: bool | None = Field(
        None,
        description="default true: a message whose value does not fit the declared type "
        "of a column that some rule reads becomes a dead letter; "
        "false lets it in, and rules that cannot use the value report it",
    )
    shared: bool | None = Field(
        None, description="one source for all rules on the stream; here that is always so"
    )
    conf_key: str | None = Field(
        None,
        description=(
            "settings of the source in the gateway's configuration; of mqtt: the connection to its broker"
        ),
    )
    schema_id: str | None = Field(
        None, description="format protobuf: FILE.Message of a schema file beside the rules"
    )
    delimiter: str | None = Field(
        None, min_length=1, description="between the columns of the delimited format"
    )
    extra: dict[str, JsonValue] | str | None = Field(
        None, description="settings of the source; no effect on mqtt"
    )
    kind: Literal["scan", "lookup"] | None = Field(
        None, description="makes a table of the stream: scan or lookup"
    )
    retain_size: int | None = Field(None, ge=1, description="makes a table of the stream: rows kept")
    payload_bytes_max: int | None = Field(
        None,
        ge=1,
        description=(
            "longest payload of its messages; a longer one becomes a dead letter without being decoded"
        ),
    )
    max_keys: int | None = Field(
        None,
        ge=1,
        description="groups that a rule may keep of this stream, where its maxGroups is not smaller",
    )
    latency_ms: DurationMs | None = Field(
        None,
        ge=0,
        description="how long a message may wait for others on a busy line; default gateway.latencyMs",
    )
    message_key: str | None = Field(
        None,
        min_length=1,
        description="JSON field that identifies a message; one whose value was seen before is dropped",
    )
    key: str | None = Field(None, description="the column that rows of a lookup table are found by")
    version: str | int | None = Field(None, description="of the definition; for people only")
    temp: bool | None = Field(
        None, description="eKuiper's mark for streams that are not stored; nothing is stored here"
    )

    def plain(self) -> Stream:
        """The declaration as a stream, without the settings of tables."""
        return self


SYNONYMS = {
    "fields": "columns",
    "schema": "columns",
    "topic": "datasource",
    "source": "datasource",
    "topics": "datasource",
    "options": None,
    "sql": None,
}
"""Wrong keys that people try, and the right key."""

_KEYWORDS = {
    "datasource": "DATASOURCE", "type": "TYPE", "format": "FORMAT", "timestamp": "TIMESTAMP",
    "timestampFormat": "TIMESTAMP_FORMAT", "strictValidation": "STRICT_VALIDATION", "shared": "SHARED",
    "confKey": "CONF_KEY", "schemaId": "SCHEMAID", "delimiter": "DELIMITER", "extra": "EXTRA", "kind": "KIND",
    "retainSize": "RETAIN_SIZE", "key": "KEY", "version": "VERSION", "temp": "TEMP",
    "payloadBytesMax": "PAYLOAD_BYTES_MAX", "latencyMs": "LATENCY_MS", "messageKey": "MESSAGE_KEY",
    "maxKeys": "MAX_KEYS",
}  # fmt: skip


@dataclass(slots=True)
class Statement:
    """A CREATE STREAM text written for a mapping, with the paths of its parts."""

    text: str = ""
    parts: list[tuple[Span, Path]] = field(default_factory=list)

    def add(self, text: str, path: Path | None = None) -> None:
        """Append text; with a path, record that it stands for the value there."""
        start = len(self.text)
        self.text += text
        if path is not None:
            self.parts.append((Span(start, len(self.text)), path))

    def path_at(self, offset: int) -> Path | None:
        """The path of the smallest part that covers an offset; between two parts that of the first, which
        lacks what would have to stand there."""
        covering = [
            (span.end - span.start, path) for span, path in self.parts if span.start <= offset < span.end
        ]
        if covering:
            return min(covering)[1]
        before = [(span.end, path) for span, path in self.parts if span.end <= offset]
        return max(before)[1] if before else None


def as_statement(stream: Stream, name: str, path: Path) -> Statement:
    """The CREATE STREAM text of a mapping at `path` of the file."""
    made = Statement()
    is_table = stream.kind is not None or stream.retain_size is not None
    made.add("CREATE TABLE " if is_table else "CREATE STREAM ")
    made.add(_identifier(name), (*path, "name"))
    made.add(" (")
    for number, (column, declared) in enumerate((stream.columns or {}).items()):
        at = (*path, "columns", column)
        made.add(", " if number else "")
        made.add(_column(column, declared), at)
    made.add(") WITH (")
    separator = ""
    for field_name, info in Stream.model_fields.items():
        value = getattr(stream, field_name)
        if info.alias in _KEYWORDS and value is not None and info.alias != "strictValidation":
            made.add(separator)
            made.add(f"{_KEYWORDS[info.alias]}={_text(value)}", (*path, info.alias))
            separator = ", "
    parts = {
        name: part for name, declared in (stream.columns or {}).items() if (part := _topic_part(declared))
    }
    if stream.strict_validation is not False and len(parts) < len(stream.columns or {}):
        made.add(f'{separator}STRICT_VALIDATION="intake"', (*path, "strictValidation"))
        separator = ", "
    if parts:
        text = _text(",".join(f"{name}={part}" for name, part in parts.items()))
        made.add(f"{separator}{OPTION}={text}", (*path, "columns"))
    made.add(")")
    return made


def _topic_part(declared: str | Column) -> int | None:
    return part_declared(declared if isinstance(declared, str) else declared.type)


def _column(name: str, declared: str | Column) -> str:
    if _topic_part(declared) is not None:
        return f"{_identifier(name)} string"
    if isinstance(declared, str):
        return f"{_identifier(name)} {declared}"
    default = "" if declared.default is None else f" DEFAULT {_literal(declared.default)}"
    return f"{_identifier(name)} {declared.type}{default}"


def _identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(value: object) -> str:
    return _text(value) if isinstance(value, str) else str(value).upper()


def _text(value: object) -> str:
    """A quoted text; with eKuiper's DDL every option is one."""
    if isinstance(value, bool):
        value = "true" if value else "false"
    if isinstance(value, dict):
        import json

        value = json.dumps(value)
    text = str(value)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

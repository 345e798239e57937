"""The kinds of sources beside MQTT and memory topics: what `TYPE` of a stream may say,
and the settings of each.

Settings come from the gateway's configuration, `sources.<type>.<CONF_KEY>` (`default` where the stream names
none), and from the stream's EXTRA, which wins. A source delivers under a topic of its own,
`topic_of(stream)`, that no broker's message can have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from edge.clock import Clock
from edge.intake.sources.base import Source
from rules.base import Model, yaml_keys
from sql.catalog.streams import Stream
from sql.errors import did_you_mean

if TYPE_CHECKING:
    from edge.intake.sources.http_push import PushServers

DEFAULT = "default"
"""The section of a stream without CONF_KEY."""


class BadSource(ValueError):
    """A stream asks for what its source cannot do; `option` is what is wrong about it."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option


@dataclass(frozen=True, slots=True)
class SourceEnvironment:
    """What sources get from the process around them.

    input_dir   folder of files that streams read; positions are kept in `state_dir`
    sections    settings by type and CONF_KEY, from the gateway's configuration
    """

    clock: Clock
    input_dir: Path
    state_dir: Path
    push: PushServers
    sections: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    bytes_max: int = 1_048_576


Make = Callable[[Stream, Any, SourceEnvironment], Source]
"""Makes a source that has not been started. Raises `BadSource`."""


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source. `row_format`: how it encodes rows, whatever the stream's FORMAT; None
    where FORMAT decides."""

    name: str
    settings: type[Model]
    make: Make
    row_format: Callable[[Any], str | None] = lambda settings: None

    @property
    def summary(self) -> str:
        return (self.settings.__doc__ or "").strip().split("\n", 1)[0]


_kinds: dict[str, SourceKind] = {}


def register_source(kind: SourceKind) -> None:
    """Make a kind known as the TYPE of streams."""
    assert kind.name not in _kinds, f"source {kind.name!r} is registered twice"
    _kinds[kind.name] = kind


def source_kind(name: str) -> SourceKind | None:
    """The kind called so, or None."""
    return _kinds.get(name.lower())


def source_kinds() -> tuple[SourceKind, ...]:
    """All kinds, by name."""
    return tuple(_kinds[name] for name in sorted(_kinds))


def topic_of(stream: str) -> str:
    """The topic under which the source of a stream delivers."""
    return f"$source/{stream}"


def settings_of(
    kind: SourceKind, stream: Stream, sections: Mapping[str, Mapping[str, Any]] | None = None
) -> Any:
    """The settings of a stream's source. `sections` None: the gateway's are not known,
    so any CONF_KEY is right.

    Raises `BadSource` with the option that is wrong.
    """
    extra = _extra(stream)
    section: Mapping[str, Any] = {}
    if sections is not None:
        key = str(stream.options.get("CONF_KEY", DEFAULT))
        if key not in sections and key != DEFAULT:
            hint = (
                did_you_mean(key, sections)
                or f"sources.{kind.name} has {', '.join(sorted(sections)) or 'none'}"
            )
            raise BadSource("CONF_KEY", f"'{key}' is no section of the gateway's sources.{kind.name}: {hint}")
        section = sections.get(key, {})
    known = {name.lower(): name for name in yaml_keys(kind.settings)}
    values = {known.get(name.lower(), name): value for name, value in {**section, **extra}.items()}
    try:
        return kind.settings.model_validate(values)
    except ValidationError as error:
        reasons = (f"{'.'.join(map(str, item['loc']))}: {_reason(item)}" for item in error.errors())
        raise BadSource("EXTRA", f"settings of the {kind.name} source: {'; '.join(reasons)}") from None


def _reason(item: Any) -> str:
    return (
        "is not known"
        if item["type"] == "extra_forbidden"
        else str(item["msg"]).removeprefix("Value error, ")
    )


def _extra(stream: Stream) -> dict[str, Any]:
    written = stream.options.get("EXTRA")
    if written is None:
        return {}
    try:
        found = json.loads(str(written))
    except ValueError as error:
        raise BadSource("EXTRA", f"is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadSource("EXTRA", "is a JSON object of settings")
    return found

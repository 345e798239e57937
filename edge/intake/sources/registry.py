"""The kinds of sources beside MQTT and memory topics: what `TYPE` of a stream may say,
and the settings of each.

Settings come from the gateway's configuration, `sources.<type>.<CONF_KEY>` (`default` where the stream names
none), and from the stream's EXTRA, which wins. A source delivers under a topic of its own,
`topic_of(stream)`, that no broker's message can have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urljoin, urlsplit

from pydantic import ValidationError

from edge.clock import Clock
from edge.config import Config
from edge.config.brokers import DEFAULT, SELECTOR, BrokerNames, brokers_of
from edge.config.unset import set_ones
from edge.intake.sources.base import Source
from rules.base import Model, reasons_of, yaml_keys
from sinks.connections import named
from sql.catalog.streams import Stream
from sql.errors import did_you_mean
from sql.record import Record, field

if TYPE_CHECKING:
    from edge.intake.sources.http_push_server import PushServers


class BadSource(ValueError):
    """A stream sets an option that its source cannot fulfil; `option` names it."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option


Section = Mapping[str, Any]


class Configured(Record):
    """The settings of sources and lookups in the gateway's configuration.

    sections      settings by type and CONF_KEY
    connections   settings that several share, by the name that `connectionSelector` gives
    brokers       the connections of MQTT streams
    takes_pushes  messages may come in HTTP requests
    """

    sections: Mapping[str, Mapping[str, Section]] = field(default_factory=dict)
    connections: Mapping[str, Section] = field(default_factory=dict)
    brokers: BrokerNames = BrokerNames()
    takes_pushes: bool = True

    def section(self, kind: str, stream: Stream) -> Section:
        """The settings that CONF_KEY of a stream names. Raises `BadSource`."""
        sections = self.sections.get(kind, {})
        key = str(stream.options.get("CONF_KEY", DEFAULT))
        if key not in sections and key != DEFAULT:
            hint = (
                did_you_mean(key, sections) or f"sources.{kind} has {', '.join(sorted(sections)) or 'none'}"
            )
            raise BadSource("CONF_KEY", f"'{key}' is no section of the gateway's sources.{kind}: {hint}")
        return sections.get(key, {})

    def connection(self, name: str) -> Section:
        """The connection of that name. Raises `BadSource`."""
        known = self.connections
        found = named(name, known)
        if found is None:
            hint = did_you_mean(name, known) or f"it has {', '.join(sorted(known)) or 'none'}"
            raise BadSource(
                "EXTRA", f"names connection '{name}', which the gateway does not configure: {hint}"
            )
        return found


def configured_of(config: Config) -> Configured:
    """The settings that rule files may refer to."""
    is_open = config.http_push.address is not None
    return Configured(config.sources, config.sink_connections, brokers_of(config), is_open)


class SourceEnvironment(Record):
    """The resources that sources get from the process around them.

    input_dir   folder of files that streams read; positions are kept in `state_dir`
    configured  the settings of sources in the gateway's configuration
    unread      the sources of tables that have not read their files once
    """

    clock: Clock
    input_dir: Path
    state_dir: Path
    push: PushServers
    configured: Configured = field(default_factory=Configured)
    bytes_max: int = 1_048_576
    unread: set[str] = field(default_factory=set)


class Kind(Protocol):
    """A kind of source or store: its TYPE, and the model of its settings."""

    @property
    def name(self) -> str: ...
    @property
    def settings(self) -> type[Model]: ...


Make = Callable[[Stream, Any, SourceEnvironment], Source]
"""Makes a source that has not been started. Raises `BadSource`."""


class SourceKind(Record):
    """A kind of source. `row_format`: how it encodes rows, whatever the stream's FORMAT; None
    where FORMAT decides. `check`: raises `BadSource` if a stream and its complete settings do not fit."""

    name: str
    settings: type[Model]
    make: Make
    row_format: Callable[[Any], str | None] = lambda settings: None
    check: Callable[[Stream, Any], object] = lambda stream, settings: None


_kinds: dict[str, SourceKind] = {}


def register_source(kind: SourceKind) -> None:
    """Make a kind known as the TYPE of streams."""
    assert kind.name not in _kinds, f"source {kind.name!r} is registered twice"
    _kinds[kind.name] = kind


MODULES = {"file": "file", "httppull": "http_pull", "httppush": "http_push", "simulator": "simulator"}
"""The modules of the kinds that come along; each is imported, and registers itself, for the first stream that
names it."""


def source_kind(name: str) -> SourceKind | None:
    """The kind called so, or None."""
    _load(name.lower())
    return _kinds.get(name.lower())


def source_kinds() -> tuple[SourceKind, ...]:
    """All kinds, by name."""
    for name in MODULES:
        _load(name)
    return tuple(_kinds[name] for name in sorted(_kinds))


def _load(name: str) -> None:
    if name in MODULES:
        import_module(f"edge.intake.sources.{MODULES[name]}")


def topic_of(stream: str) -> str:
    """The topic under which the source of a stream delivers."""
    return f"$source/{stream}"


def settings_of(kind: Kind, stream: Stream, configured: Configured | None = None) -> Any:
    """The settings of a stream's source, or of a table's store. `configured` None: the gateway's are not
    known, so any CONF_KEY and any connection is right.

    Raises `BadSource` with the option that is wrong.
    """
    extra = own_settings(stream)
    section: Section = {} if configured is None else configured.section(kind.name, stream)
    known = {name.lower(): name for name in yaml_keys(kind.settings)}
    values = {known.get(name.lower(), name): value for name, value in {**section, **extra}.items()}
    selected = next((values.pop(name) for name in list(values) if name.lower() == SELECTOR), None)
    if selected is not None and configured is not None:
        shared = configured.connection(str(selected))
        values = {known[n.lower()]: value for n, value in shared.items() if n.lower() in known} | values
    try:
        return kind.settings.model_validate(values)
    except ValidationError as error:
        raise BadSource("EXTRA", f"settings of {kind.name}: {reasons_of(error)}") from None


def own_settings(stream: Stream) -> dict[str, Any]:
    """The settings in a stream's EXTRA. Raises `BadSource`."""
    written = stream.options.get("EXTRA")
    if written is None:
        return {}
    try:
        found = json.loads(str(written))
    except ValueError as error:
        raise BadSource("EXTRA", f"is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadSource("EXTRA", "is a JSON object of settings")
    return set_ones(found)


def http_address(datasource: str, base: str, kind: str) -> str:
    """DATASOURCE behind `base`, the setting `url` of this kind of source; DATASOURCE alone may be the whole
    address. Raises `BadSource`.

    >>> http_address("devices/7", "http://host/api", "http")
    'http://host/api/devices/7'
    """
    url = datasource if datasource.startswith(("http://", "https://")) else _joined(base, datasource)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "{" in parts.netloc:
        raise BadSource(
            "DATASOURCE", f"'{url}' is no address: write http://host/path, or set url in sources.{kind}"
        )
    if parts.username or parts.password:
        raise BadSource("DATASOURCE", "an address must not hold a password; use headers or oAuth")
    return url


def _joined(base: str, path: str) -> str:
    if not base or not path:
        return base or path
    return urljoin(base if base.endswith("/") else f"{base}/", path.lstrip("/"))

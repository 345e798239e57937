"""References of streams, lookup tables and actions to the gateway's configuration: unknown names are errors,
with their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from edge.config import ConfigError
from edge.config.brokers import DEFAULT
from edge.deploy.outgoing import place_of
from edge.deploy.stream_types import MQTT, is_store, stream_type
from edge.intake.lookups.base import LookupEnvironment
from edge.intake.lookups.kinds import kinds
from edge.intake.sources.known import source_kind, source_kinds
from edge.intake.sources.registry import BadSource, Configured, settings_of
from rules.compiled import CompiledRule
from rules.problems import FileProblem
from rules.read.reading import LoadedStream
from sinks.connections import BadConnection, ConnectionSettings, completed
from sql.catalog.stores import STORES
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problem, Span, did_you_mean

SELECTOR = "connectionSelector"


def check_kinds(sources: Iterable[str]) -> None:
    """Raises ConfigError for settings of a kind that there is neither of sources nor of stores."""
    for name in sources:
        if name not in (MQTT, *STORES) and source_kind(name) is None:
            known = sorted({MQTT, *STORES, *(kind.name for kind in source_kinds())})
            hint = did_you_mean(name, known) or f"expected one of {', '.join(known)}"
            raise ConfigError(f"sources.{name}: no kind of source is called so; {hint}")


def configured_problems(
    streams: Iterable[LoadedStream], catalog: Catalog, configured: Configured
) -> list[FileProblem]:
    """The problems of streams and tables, where the configuration is known."""
    found = []
    for loaded in streams:
        stream = catalog.streams.get(loaded.name)
        for option, message, hint in () if stream is None else _complaints(stream, configured):
            spans = [item.span for item in loaded.statement.options if item.key.upper() == option]
            place = spans[0] if spans else Span(0, 1)
            found.append(loaded.problem(Problem("E101", message, place, hint)))
    return found


def connection_problems(rules: Iterable[CompiledRule], configured: Configured) -> list[FileProblem]:
    """The problems of actions that name a connection, where the configuration is known."""
    found = []
    for compiled in rules:
        loaded = compiled.rule
        for action in (*loaded.actions, *loaded.late, *loaded.error):
            settings = action.settings
            if not isinstance(settings, ConnectionSettings):
                continue
            try:
                completed(settings, configured.connections)
            except BadConnection as failure:
                span = place_of(loaded, (*action.path, SELECTOR))
                found.append(loaded.reading.problem_at(Problem("E104", str(failure)), span))
    return found


def _complaints(stream: Stream, configured: Configured) -> Iterator[tuple[str, str, str | None]]:
    """Option, message and hint."""
    name = stream_type(stream)
    if name == MQTT:
        yield from _of_mqtt(stream, configured)
        return
    store = kinds()[name] if is_store(stream) else None
    kind = store or source_kind(name)
    if kind is None:
        return
    try:
        settings = settings_of(kind, stream, configured)
        if store is not None:
            store.make(stream, settings, LookupEnvironment(Path()))  # what it refuses, the start refuses
    except BadSource as error:
        yield error.option, f"{error.option} of '{stream.name}': {error}", None


def _of_mqtt(stream: Stream, configured: Configured) -> Iterator[tuple[str, str, str | None]]:
    key = stream.options.get("CONF_KEY", DEFAULT)
    fault = configured.brokers.fault(str(key))
    if fault is not None:
        yield "CONF_KEY", f"CONF_KEY '{key}' of '{stream.name}' {fault}", None

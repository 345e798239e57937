"""References of streams, lookup tables and actions to the gateway's configuration: unknown names are errors,
with their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from edge.config.brokers import DEFAULT
from edge.deploy.outgoing import place_of
from edge.deploy.stream_types import MQTT, is_store, stream_type
from edge.intake.lookups.base import LookupEnvironment
from edge.intake.lookups.kinds import kinds
from edge.intake.sources.known import source_kind
from edge.intake.sources.registry import BadSource, Configured, settings_of
from rules.compiled import CompiledRule
from rules.problems import FileProblem
from rules.read.reading import LoadedStream
from sinks.connections import BadConnection, ConnectionSettings, completed
from sinks.tls import TlsSettings
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problem, Span
from sql.record import replace

SELECTOR = "connectionSelector"

TLS_HINT = "put the file there; until then nothing is sent or asked, and all of it is tried again"

PUSHED = "httppush"
"""The TYPE of streams whose messages come in HTTP requests."""


def configured_problems(
    streams: Iterable[LoadedStream], catalog: Catalog, configured: Configured
) -> list[FileProblem]:
    """The problems of streams and tables, where the configuration is known."""
    found = []
    for loaded in streams:
        stream = catalog.streams.get(loaded.name)
        for option, problem in () if stream is None else _complaints(stream, configured):
            spans = [item.span for item in loaded.statement.options if item.key.upper() == option]
            found.append(loaded.problem(replace(problem, span=spans[0] if spans else Span(0, 1))))
    return found


def connection_problems(rules: Iterable[CompiledRule], configured: Configured) -> list[FileProblem]:
    """The problems of actions that name a connection, or certificates, where the configuration is known."""
    found = []
    for compiled in rules:
        loaded = compiled.rule
        for action in (*loaded.actions, *loaded.late, *loaded.error):
            settings = action.settings
            if isinstance(settings, ConnectionSettings):
                try:
                    settings = completed(settings, configured.connections)
                except BadConnection as failure:
                    span = place_of(loaded, (*action.path, SELECTOR))
                    found.append(loaded.reading.problem_at(Problem("E104", str(failure)), span))
            if isinstance(settings, TlsSettings) and (fault := settings.unusable()) is not None:
                key, why = fault
                problem = Problem("E105", why, hint=TLS_HINT, severity="warning")
                found.append(loaded.reading.problem_at(problem, place_of(loaded, (*action.path, key))))
    return found


def _complaints(stream: Stream, configured: Configured) -> Iterator[tuple[str, Problem]]:
    """Options, and what is wrong with each."""
    name = stream_type(stream)
    if name == MQTT:
        yield from _of_mqtt(stream, configured)
        return
    store = kinds()[name] if is_store(stream) else None
    kind = store or source_kind(name)
    if kind is None:
        return
    if kind.name == PUSHED and not configured.takes_pushes:
        message = f"the gateway takes nothing by HTTP, which '{stream.name}' needs"
        yield "TYPE", Problem("E101", message, hint="set httpPush.bind in the gateway's configuration")
    try:
        settings = settings_of(kind, stream, configured)
        if store is not None:
            store.make(stream, settings, LookupEnvironment(Path()))  # what it refuses, the start refuses
    except BadSource as error:
        yield error.option, Problem("E101", f"{error.option} of '{stream.name}': {error}")
        return
    if isinstance(settings, TlsSettings) and (fault := settings.unusable()) is not None:
        message = f"{fault[0]} of '{stream.name}': {fault[1]}"
        yield "EXTRA", Problem("E105", message, hint=TLS_HINT, severity="warning")


def _of_mqtt(stream: Stream, configured: Configured) -> Iterator[tuple[str, Problem]]:
    key = stream.options.get("CONF_KEY", DEFAULT)
    fault = configured.brokers.fault(str(key))
    if fault is not None:
        yield "CONF_KEY", Problem("E101", f"CONF_KEY '{key}' of '{stream.name}' {fault}")

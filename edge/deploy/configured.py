"""References of streams, lookup tables and actions to the gateway's configuration: unknown names are errors,
with their place.

CONF_KEY of an MQTT stream names a section of `sources.mqtt`, or one of the `connections`. A gateway reads one
broker, whose session keeps unacknowledged messages: a name that stands for another one is an error too, for
the stream would be read from the wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edge.deploy.outgoing import place_of
from edge.deploy.stream_types import MQTT, is_store, stream_type
from edge.intake.sources.known import source_kind
from edge.intake.sources.mqtt_client import address
from edge.intake.sources.registry import BadSource, Configured, settings_of
from edge.lookups.kinds import kinds
from rules.compile import CompiledRule
from rules.problems import FileProblem
from rules.reading import LoadedStream
from sinks.connections import BadConnection, ConnectionSettings, completed
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problem, Span, did_you_mean

SERVER, SELECTOR = "server", "connectionSelector"


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
            if not isinstance(settings, ConnectionSettings) or settings.connection_selector is None:
                continue
            try:
                completed(settings, settings.connection_selector, configured.connections)
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
    kind = kinds()[name] if is_store(stream) else source_kind(name)
    if kind is None:
        return
    try:
        settings_of(kind, stream, configured)
    except BadSource as error:
        yield error.option, f"{error.option} of '{stream.name}': {error}", None


def _of_mqtt(stream: Stream, configured: Configured) -> Iterator[tuple[str, str, str | None]]:
    key = stream.options.get("CONF_KEY")
    if key is None:
        return
    sections = {**configured.connections, **configured.sections.get(MQTT, {})}
    section = sections.get(str(key))
    if section is None:
        hint = did_you_mean(str(key), sections) or f"it has {', '.join(sorted(sections)) or 'none'}"
        message = f"CONF_KEY '{key}' of '{stream.name}' is no connection of the gateway's configuration"
        yield "CONF_KEY", message, f"name one of `connections` or `sources.mqtt`: {hint}"
        return
    shared = sections.get(str(section.get(SELECTOR)), {})
    server = section.get(SERVER, shared.get(SERVER))
    own = configured.connections.get(MQTT, {}).get(SERVER)
    if server is not None and (own is None or _place(str(server)) != _place(str(own))):
        message = (
            f"CONF_KEY '{key}' of '{stream.name}' names another broker than the one that this gateway reads"
        )
        yield "CONF_KEY", message, "run a gateway for it, or let the brokers bridge the topic"


def _place(server: str) -> tuple[str, int] | str:
    try:
        return address(server)[:2]
    except ValueError:
        return server

"""References of streams, lookup tables and actions to the gateway's configuration: unknown names are errors,
with their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from edge.config.brokers import DEFAULT
from edge.deploy.checks.outgoing import place_of
from edge.deploy.checks.stream_problems import Complaint
from edge.deploy.stream_types import MQTT, is_store, stream_type
from edge.intake.lookups.base import LookupEnvironment
from edge.intake.lookups.kinds import kinds
from edge.intake.sources.registry import BadSource, Configured, settings_of, source_kind
from rules.compiled import Compiled
from rules.problems import FileProblem
from rules.read.reading import LoadedRule
from sinks.connections import BadConnection, ConnectionSettings, completed
from sinks.tls import TlsSettings
from sql.catalog.streams import Stream
from sql.errors import Problem, Severity

SELECTOR = "connectionSelector"

TLS_HINT = "put the file there; until then nothing is sent or asked, and all of it is tried again"

PUSHED = "httppush"
"""The TYPE of streams whose messages come in HTTP requests."""


def configured_problems(compiled: Compiled, configured: Configured) -> list[FileProblem]:
    """The problems of streams, tables and actions, where the configuration is known."""
    found = [
        loaded.option_problem(*complaint)
        for loaded, stream in compiled.streams
        for complaint in _complaints(stream, configured)
    ]
    for rule in compiled.rules.values():
        found += _of_actions(rule.rule, configured)
    return found


def _of_actions(loaded: LoadedRule, configured: Configured) -> Iterator[FileProblem]:
    """The connections and certificates that the actions of a rule name."""
    for action in loaded.all_actions:
        settings = action.settings
        if isinstance(settings, ConnectionSettings):
            try:
                settings = completed(settings, configured.connections)
            except BadConnection as failure:
                # The gateway's own broker may be named by a flag or a variable: the action waits for it.
                severity: Severity = "warning" if settings.connection_selector is None else "error"
                problem = Problem("E104", str(failure), severity=severity)
                span = place_of(loaded, (*action.path, SELECTOR))
                yield loaded.reading.problem_at(problem, span)
        if isinstance(settings, TlsSettings) and (fault := settings.unusable()) is not None:
            key, why = fault
            problem = Problem("E105", why, hint=TLS_HINT, severity="warning")
            yield loaded.reading.problem_at(problem, place_of(loaded, (*action.path, key)))


def _complaints(stream: Stream, configured: Configured) -> Iterator[Complaint]:
    name = stream_type(stream)
    if name == MQTT:
        key = str(stream.options.get("CONF_KEY", DEFAULT))
        if (reason := configured.brokers.fault(key)) is not None:
            yield "CONF_KEY", Problem("E101", f"CONF_KEY '{key}' of '{stream.name}' {reason}")
        return
    store = kinds()[name] if is_store(stream) else None
    source = None if store is not None else source_kind(name)
    kind = store or source
    if kind is None:
        return
    if kind.name == PUSHED and not configured.takes_pushes:
        message = f"the gateway takes nothing by HTTP, which '{stream.name}' needs"
        yield "TYPE", Problem("E101", message, hint="set httpPush.bind in the gateway's configuration")
    try:
        settings = settings_of(kind, stream, configured)
        if store is not None:
            store.make(stream, settings, LookupEnvironment(Path()))  # what it refuses, the start refuses
        if source is not None:
            source.check(stream, settings)
    except BadSource as error:
        yield error.option, Problem("E101", f"{error.option} of '{stream.name}': {error}")
        return
    if isinstance(settings, TlsSettings) and (fault := settings.unusable()) is not None:
        message = f"{fault[0]} of '{stream.name}': {fault[1]}"
        yield "EXTRA", Problem("E105", message, hint=TLS_HINT, severity="warning")

"""The addresses that rules may send to: `outgoing.allow` of the configuration, compared with the
addresses that rule files name.

An author of rule files can so choose what is sent, but not to whom. Connections of the configuration
itself (`connections`, `mqtt`) are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from edge.deploy.stream_types import stream_type
from edge.intake.sources.registry import BadSource, own_settings
from rules.compiled import Compiled
from rules.model import Action
from rules.problems import FileProblem
from rules.read.reading import LoadedRule
from rules.source.document import Path
from sinks.base import PORTS
from sinks.settings import SinkSettings, server_addresses
from sql.catalog.stores import STORES
from sql.catalog.streams import Stream
from sql.errors import Problem, Span

HINT = "list the host in outgoing.allow of the gateway's configuration, or use a connection that it defines"

ASKED = (*STORES, "httppull")
"""Types of streams and tables that talk to a server of their choice."""

NAMES = ("url", "dburl", "addr")
"""Keys of EXTRA whose value is an address."""


def outgoing_problems(compiled: Compiled, allow: Sequence[str] | None) -> list[FileProblem]:
    """An error for each address of a rule file whose host is not listed; None allows all."""
    if allow is None:
        return []
    found = [problem for rule in compiled.rules.values() for problem in _of_rule(rule.rule, allow)]
    for loaded, stream in compiled.streams:
        for option, address in _named(stream):
            if not is_allowed(address, allow):
                message = f"the {option} of '{loaded.name}' leads to a host that this gateway may not talk to"
                found.append(loaded.option_problem(option, Problem("E103", message, hint=HINT)))
    return found


def _named(stream: Stream) -> Iterator[tuple[str, str]]:
    """The addresses that a stream or table names itself, with the option of each; those of the gateway's
    configuration are not checked."""
    if stream_type(stream) not in ASKED:
        return
    if "://" in stream.datasource:
        yield "DATASOURCE", stream.datasource
    with suppress(BadSource):
        for value in _addresses_in(own_settings(stream)):
            for part in server_addresses(value):
                yield "EXTRA", part


def _addresses_in(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _addresses_in(value)
        elif isinstance(value, str) and name.lower() in NAMES:
            yield value


def _of_rule(loaded: LoadedRule, allow: Sequence[str]) -> Iterator[FileProblem]:
    for action in loaded.all_actions:
        for path, address in _addresses(action):
            if not is_allowed(address, allow):
                # The address is not quoted: it may be a secret.
                message = f"'{path[-1]}' leads to a host that this gateway may not talk to"
                span = place_of(loaded, (*action.path, *path))
                yield loaded.reading.problem_at(Problem("E103", message, hint=HINT), span)


def _addresses(action: Action) -> Iterator[tuple[Path, str]]:
    if isinstance(action.settings, SinkSettings):
        yield from action.settings.addresses()


def place_of(loaded: LoadedRule, path: Path) -> Span:
    """The place of a value of a rule in its file, or of the nearest written part around it."""
    document = loaded.reading.document
    while path and path not in document.places:
        path = path[:-1]
    return document.value_span(path) if path else loaded.name_span


def is_allowed(address: str, allow: Sequence[str]) -> bool:
    """True if an address leads to a listed host: `host`, `host:port`, or a pattern such as `*.plant.example`.

    >>> is_allowed("https://API.plant.example/x", ["*.plant.example"]), is_allowed("tcp://a:1883", ["a:8883"])
    (True, False)
    >>> is_allowed("https://a/x", ["a:443"]), is_allowed("http://a/x", ["a:443"])
    (True, False)
    """
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host = (parts.hostname or "").lower()
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return False
    names = (host, f"{host}:{port}")
    return not host or any(fnmatchcase(name, pattern.lower()) for pattern in allow for name in names)

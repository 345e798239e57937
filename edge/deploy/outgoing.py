"""Where rules may send to: `outgoing.allow` of the configuration, held against the
addresses that rule files name.

Whoever may write rule files can so choose what is sent, but not to whom. Connections of the configuration
itself (`connections`, `mqtt`) are not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from edge.deploy.stream_types import stream_type
from rules.compile import Compiled
from rules.model import Action
from rules.problems import FileProblem
from rules.reading import LoadedRule, LoadedStream
from rules.source.document import Path
from sinks.settings import SinkSettings
from sql.errors import Problem, Span

HINT = "list the host in outgoing.allow of the gateway's configuration, or use a connection that it defines"

PULL = "httppull"


def outgoing_problems(
    compiled: Compiled, streams: Sequence[LoadedStream], allow: Sequence[str] | None
) -> list[FileProblem]:
    """An error for each address of a rule file whose host is not listed; None allows all."""
    if allow is None:
        return []
    found = [problem for rule in compiled.rules.values() for problem in _of_rule(rule.rule, allow)]
    for loaded in streams:
        stream = compiled.catalog.streams.get(loaded.name)
        address = "" if stream is None else str(stream.options.get("DATASOURCE", ""))
        if (
            stream is not None
            and stream_type(stream) == PULL
            and "://" in address
            and not is_allowed(address, allow)
        ):
            message = (
                f"the DATASOURCE of stream '{loaded.name}' leads to a host that this gateway may not talk to"
            )
            found.append(loaded.reading.problem_at(Problem("E103", message, hint=HINT), loaded.name_span))
    return found


def _of_rule(loaded: LoadedRule, allow: Sequence[str]) -> Iterator[FileProblem]:
    for action in (*loaded.actions, *loaded.late, *loaded.error):
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
    """Where a value of a rule is written, or what is around it."""
    document = loaded.reading.document
    while path and path not in document.places:
        path = path[:-1]
    return document.value_span(path) if path else loaded.name_span


def is_allowed(address: str, allow: Sequence[str]) -> bool:
    """Whether an address leads to a listed host: `host`, `host:port`, or a pattern such as `*.plant.example`.

    >>> is_allowed("https://API.plant.example/x", ["*.plant.example"]), is_allowed("tcp://a:1883", ["a:8883"])
    (True, False)
    """
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return False
    names = (host, f"{host}:{port}")
    return not host or any(fnmatchcase(name, pattern.lower()) for pattern in allow for name in names)

"""The check of the broker by `penstock doctor`: connects, subscribes as the rules do, shows the messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from edge.config import Config

if TYPE_CHECKING:
    from rules.compile import Compiled

Finding = tuple[str, str]
"""ok, note, warning or error, and a sentence."""

SAMPLES = 20
"""Messages that are waited for."""

TOPICS_SHOWN = 5

PAYLOAD_SHOWN = 120
"""Characters of a payload that are shown."""


def look(config: Config, rules: Path | None, seconds: float) -> Iterator[Finding]:
    """Findings about the broker of a configuration, and the streams of a rule
    directory where one is given."""
    from edge.config.broker import mqtt_options
    from edge.intake.sources.mqtt_client import BadOptions
    from edge.intake.sources.mqtt_visit import Visit, VisitFailed

    compiled = _compiled(rules, config.gateway.zone) if rules is not None else None
    filters = _filters(compiled) if compiled is not None else ["#"]
    try:
        options = mqtt_options(config)
        assert options is not None, "asked only where a server is configured"
        with Visit(options) as visit:
            yield "ok", f"broker {options.server} answers, MQTT {visit.version}"
            if not filters:
                yield "note", f"no rule below {rules} reads an MQTT stream"
                return
            refused = visit.subscribe(filters)
            yield from (
                ("error", f"broker refuses topic '{name}': {reason}") for name, reason in refused.items()
            )
            visit.wait(seconds, SAMPLES)
            yield from _shown(visit.messages, filters, seconds)
            if compiled is not None:
                yield from _silent(compiled, visit.messages, seconds)
    except (VisitFailed, BadOptions) as error:
        yield "error", f"broker: {error}"


def _compiled(rules: Path, zone: str) -> Compiled:
    from edge.commands.shared.rule_arguments import compile_files

    return compile_files([rules], zone)[0]


def _streams(compiled: Compiled) -> Iterator[tuple[str, str]]:
    """Name and topic filter of each MQTT stream that a rule reads."""
    from edge.deploy.stream_types import MQTT, stream_type

    for name in dict.fromkeys(name for rule in compiled.rules.values() for name in rule.plan.streams):
        stream = compiled.catalog.streams.get(name)
        if stream is not None and stream_type(stream) == MQTT:
            yield name, str(stream.options.get("DATASOURCE", ""))


def _filters(compiled: Compiled) -> list[str]:
    return list(dict.fromkeys(topic for _, topic in _streams(compiled)))


def _shown(
    messages: list[tuple[str, bytes, bool]], filters: Iterable[str], seconds: float
) -> Iterator[Finding]:
    if not messages:
        yield "warning", f"no message came within {seconds:g} s on {', '.join(filters)}"
    newest = {topic: (payload, retained) for topic, payload, retained in messages}
    for topic, (payload, retained) in list(newest.items())[:TOPICS_SHOWN]:
        text = payload[:PAYLOAD_SHOWN].decode("utf-8", "replace").replace("\n", " ")
        yield (
            "note",
            f"{topic}{' (retained)' if retained else ''}: {text}{'…' if len(payload) > PAYLOAD_SHOWN else ''}",
        )
    if len(newest) > TOPICS_SHOWN:
        yield "note", f"and {len(newest) - TOPICS_SHOWN} more topics"


def _silent(compiled: Compiled, messages: list[tuple[str, bytes, bool]], seconds: float) -> Iterator[Finding]:
    """Streams that nothing came for, beside others that something came for."""
    from sinks.memory_bus import topic_matches

    topics = {topic for topic, _, _ in messages}
    for name, topic_filter in _streams(compiled):
        if topics and not any(topic_matches(topic_filter, topic) for topic in topics):
            yield "warning", f"stream '{name}': nothing came within {seconds:g} s on '{topic_filter}'"

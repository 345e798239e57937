"""The check of the broker by `penstock doctor`: connects, subscribes as the rules do, shows the messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from edge.base.at_once import at_once
from edge.config import Config

if TYPE_CHECKING:
    from edge.config.brokers import BrokerNames
    from edge.config.mqtt_options import MqttOptions
    from rules.compiled import Compiled

T = TypeVar("T")

Finding = tuple[str, str]
"""ok, note, warning or error, and a sentence."""

SAMPLES = 20
"""Messages that are waited for."""

TOPICS_SHOWN = 5

PAYLOAD_SHOWN = 120
"""Characters of a payload that are shown."""


def look(config: Config, rules: Compiled | None, seconds: float) -> Iterator[Finding]:
    """Findings about the brokers of a configuration, asked at once, and the streams of given rules."""
    from edge.config.brokers import brokers_of, own_broker
    from edge.config.mqtt_options import BadOptions

    names = brokers_of(config)
    streams = None if rules is None else _streams(rules, names)
    written = config.sources.get("mqtt", {})
    yield from (
        ("error", f"sources.mqtt.{name} {names.faults[name]}") for name in written if name in names.faults
    )
    try:
        own = own_broker(config)
    except BadOptions as error:
        own = None
        yield "error", f"broker: {error}"
    found = {} if own is None else {"": own}
    visits = [
        partial(
            _visit,
            settings.options,
            f"broker '{connection}'" if connection else "broker",
            None if streams is None else streams.get(connection, {}),
            seconds,
        )
        for connection, settings in {**found, **dict(_needed(names.others, streams))}.items()
    ]
    yield from chain.from_iterable(at_once(visits))


def _needed(named: Mapping[str, T], streams: Mapping[str, object] | None) -> Iterator[tuple[str, T]]:
    """The connections that some stream names; without streams all of them."""
    yield from ((name, item) for name, item in named.items() if streams is None or name in streams)


def _visit(
    options: MqttOptions, called: str, streams: Mapping[str, str] | None, seconds: float
) -> list[Finding]:
    return [*_visited(options, called, streams, seconds)]


def _visited(
    options: MqttOptions, called: str, streams: Mapping[str, str] | None, seconds: float
) -> Iterator[Finding]:
    """Findings about one broker. `streams`: the topic filter of each stream that
    it feeds; None: all topics."""
    from edge.intake.sources.mqtt.visit import Visit, VisitFailed

    filters = ["#"] if streams is None else list(dict.fromkeys(streams.values()))
    try:
        with Visit(options) as visit:
            yield "ok", f"{called} {options.server} answers, MQTT {visit.version}"
            if not filters:
                yield "note", f"{called}: no rule reads an MQTT stream of it"
                return
            refused = visit.subscribe(filters)
            yield from (
                ("error", f"{called} refuses topic '{name}': {reason}") for name, reason in refused.items()
            )
            visit.wait(seconds, SAMPLES)
            yield from _shown(visit.messages, filters, seconds)
            yield from _silent(streams or {}, visit.messages, seconds)
    except VisitFailed as error:
        yield "error", f"{called}: {error}"


def _streams(compiled: Compiled, names: BrokerNames) -> dict[str, dict[str, str]]:
    """By connection: name and topic filter of each MQTT stream that a rule reads."""
    from edge.deploy.stream_types import MQTT, stream_type

    found: dict[str, dict[str, str]] = {}
    for name in dict.fromkeys(name for rule in compiled.rules.values() for name in rule.plan.streams):
        stream = compiled.catalog.streams.get(name)
        if stream is not None and stream_type(stream) == MQTT:
            connection = names.of_stream(stream.options)
            found.setdefault(connection, {})[name] = stream.datasource
    return found


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
            f"{topic}{' (retained)' if retained else ''}: "
            f"{text}{'…' if len(payload) > PAYLOAD_SHOWN else ''}",
        )
    if len(newest) > TOPICS_SHOWN:
        yield "note", f"and {len(newest) - TOPICS_SHOWN} more topics"


def _silent(
    streams: Mapping[str, str], messages: list[tuple[str, bytes, bool]], seconds: float
) -> Iterator[Finding]:
    """Streams that nothing came for, beside others that something came for."""
    from sinks.memory_bus import topic_matches

    topics = {topic for topic, _, _ in messages}
    for name, topic_filter in streams.items():
        if topics and not any(topic_matches(topic_filter, topic) for topic in topics):
            yield "warning", f"stream '{name}': nothing came within {seconds:g} s on '{topic_filter}'"

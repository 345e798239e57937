"""Rules that feed each other, for a replay: over `insert into`, memory topics, tables and named windows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from edge.clock import SystemClock
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.inline_action import MEMORY, InlineAction, memory_action
from edge.deploy.circles import targets
from edge.deploy.stream_types import stream_type
from rules.compiled import Compiled, CompiledRule
from rules.drive import RuleSet, advance, rule_set
from sinks import Environment, MemoryBus, SinkSettings
from sinks.memory_bus import Subscriber
from sql import Emission, Engine
from sql.rows import from_topic

Rows = tuple[str, list[dict[str, Any]]]


def with_feeders(compiled: Compiled, rule: CompiledRule) -> RuleSet:
    """A rule with those that feed the streams it reads, change their events, or fill the tables and named
    windows it reads."""
    return rule_set(rule, compiled, partial(targets, catalog=compiled.catalog))


class Chain:
    """An engine with a rule and all that feeds it. Time moves with the events."""

    def __init__(self, compiled: Compiled, rule: CompiledRule) -> None:
        self.engine = Engine(compiled.catalog)
        self._compiled = compiled
        self._rule = rule
        self._rules = with_feeders(compiled, rule)
        self._pending: list[Rows] = []
        self._actions = self._connected()

    def _connected(self) -> dict[str, list[InlineAction]]:
        letters = DeadLetters(Path("none"))
        letters.is_muted = True
        bus = MemoryBus()
        environment = Environment(SystemClock(), random.Random(), Path("none"), letters, bus)
        for name, stream in self._compiled.catalog.streams.items():
            if stream_type(stream) == MEMORY:
                bus.subscribe(stream.datasource, self._subscriber(name))
        return {
            rule.id: [
                memory_action(action.settings, rule.id, environment, letters, lambda token, outcome: None)
                for action in rule.actions
                if action.sink == MEMORY and isinstance(action.settings, SinkSettings)
            ]
            for rule in self._rules.rules
        }

    def _subscriber(self, stream: str) -> Subscriber:
        def take(topic: str, rows: Sequence[Mapping[str, object]], at_ms: int) -> bool:
            self._pending.append((stream, [from_topic(row, topic) for row in rows]))
            return True

        return take

    def begin(self, now_ms: int) -> None:
        """Start tables and rules."""
        self._rules.deploy(self.engine, now_ms)

    def push(self, stream: str, row: dict[str, Any], now_ms: int) -> Iterator[Emission]:
        """One event, with what is due before it; the emissions of the rule itself."""
        for emission in advance(self.engine, now_ms):
            yield from self._follow(emission, now_ms)
        for emission in self.engine.push(stream, [row], now_ms):
            yield from self._follow(emission, now_ms)

    def end(self, now_ms: int) -> Iterator[Emission]:
        """Close the windows that are open."""
        for emission in self.engine.flush(now_ms):
            yield from self._follow(emission, now_ms)

    def _follow(self, emission: Emission, now_ms: int) -> Iterator[Emission]:
        if emission.rule == self._rule.id:
            yield emission
        if emission.kind == "rows":
            for action in self._actions.get(emission.rule, ()):
                action.submit(emission)
        while self._pending:
            stream, rows = self._pending.pop(0)
            for following in self.engine.push(stream, rows, now_ms):
                yield from self._follow(following, now_ms)

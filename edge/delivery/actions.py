"""From the actions of a rule to deliveries, kept over a reload where nothing changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from cloud_sync.spool import Spool
from edge.clock import Clock
from edge.delivery.assigned import AssignedAction, Taker
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.inline_action import INLINE, MEMORY, InlineAction
from edge.delivery.mqtt_lines import MQTT, Lines
from edge.delivery.outbox import Outbox
from edge.delivery.spool_action import ARCHIVE, CLOUD, Form, SpoolAction
from edge.delivery.spools import Spools
from rules.compiled import CompiledRule
from rules.model import Action as RuleAction
from sinks import Environment, SinkContext, SinkSettings, build_action, cache_mark, sink_kind
from sinks.base import Fatal

if TYPE_CHECKING:
    from sinks.builtin.mqtt import MqttSettings

REPLAYED = (CLOUD, ARCHIVE, MEMORY)
"""Sinks whose effects a replay computes again."""


class ActionFactory(Protocol):
    """The maker of actions, as the manager of rules needs it."""

    def actions(self, rule: CompiledRule, before: Iterable[AssignedAction]) -> list[AssignedAction]: ...
    def last_number(self, rule: CompiledRule, *, cached: bool = True) -> int: ...


class ActionBuilder:
    """Builds the deliveries of rules."""

    def __init__(
        self,
        environment: Environment,
        spools: Spools,
        clock: Clock,
        dead_letters: DeadLetters,
        outbox: Outbox,
        lines: Lines | None = None,
    ) -> None:
        """`lines`: connections on which the loop publishes; None: every mqtt action
        has a thread of its own."""
        self._lines = lines
        self._environment = environment
        self._spools = spools
        self._clock = clock
        self._dead_letters = dead_letters
        self._outbox = outbox

    def actions(self, rule: CompiledRule, before: Iterable[AssignedAction]) -> list[AssignedAction]:
        """The actions of a rule; those of `before` that stand at the same place with the
        same settings are kept."""
        self._outbox.expectations.watch(rule.id, rule.rule.rule.expect, self._clock.now_ms())
        kept = {(action.role, action.position): action for action in before}
        found = []
        for role, position, written in rule.placed_actions:
            settings = self._settings(rule, written)
            known = kept.get((role, position))
            if known is not None and known.delivery.name == written.sink and known.settings == settings:
                found.append(known)
            else:
                delivery = self._delivery(rule.id, written.sink, settings, role, position)
                found.append(AssignedAction(role, position, settings, delivery, written.sink in REPLAYED))
        return found

    def _settings(self, rule: CompiledRule, written: RuleAction) -> SinkSettings:
        """The action's settings, with the options that the rule sets for all of its actions."""
        settings = written.settings
        assert isinstance(settings, SinkSettings)
        if written.sink == CLOUD:
            from cloud_sync.declaration import CloudSettings

            assert isinstance(settings, CloudSettings)
            settings = settings.expecting(rule.rule.rule.expect)
        if rule.options.send_nil_field and "send_nil_field" not in settings.model_fields_set:
            return settings.model_copy(update={"send_nil_field": True})
        return settings

    def last_number(self, rule: CompiledRule, *, cached: bool = True) -> int:
        """The number of the last row that the spool, or a cached action, has of a rule.

        `cached` false: only what enters when its input is durable; a cache takes results before.
        """
        last = 0
        for role, position, action in rule.placed_actions:
            key, settings = f"{rule.id}/{role}/{position}", action.settings
            if not (isinstance(settings, SinkSettings) and settings.enable_cache):
                last = max(last, self._spool_of(action.sink).mark(key))
            elif cached:
                last = max(last, cache_mark(self._environment, key, action.sink))
        return last

    def _spool_of(self, sink: str) -> Spool:
        return self._spools.archive() if sink == ARCHIVE else self._spools.results

    def _delivery(self, rule_id: str, sink: str, settings: SinkSettings, role: str, position: int) -> Taker:
        key = f"{rule_id}/{role}/{position}"
        form = _form(rule_id, sink, settings)
        if form is not None:
            on_done, takes_errors = self._outbox.on_done_in_loop, role == "error"
            return SpoolAction(
                sink,
                settings,
                form,
                rule_id,
                self._spool_of(sink),
                self._clock,
                self._dead_letters,
                on_done,
                key,
                takes_errors=takes_errors,
            )
        context = SinkContext(rule_id, sink, self._environment)
        if sink == MQTT and self._lines is not None:
            from sinks.builtin.mqtt import MqttSettings

            assert isinstance(settings, MqttSettings)
            if (action := self._mqtt(settings, context, self._lines)) is not None:
                return action
        if sink in INLINE and not settings.batches and not settings.enable_cache:
            on_done = self._outbox.on_done_in_loop
            made = sink_kind(sink).factory(settings, context)
            return InlineAction(sink, made, settings, rule_id, self._dead_letters, on_done)
        return build_action(sink, settings, rule_id=rule_id, environment=self._environment, key=key)

    def _mqtt(self, settings: MqttSettings, context: SinkContext, lines: Lines) -> Taker | None:
        """An action that the loop publishes for, where that is possible."""
        from edge.delivery.mqtt_action import MqttAction
        from edge.delivery.mqtt_lines import shares

        if not shares(settings):
            return None
        try:
            line = lines.take(settings, context)
        except Fatal:  # no such connection: a delivery of its own logs it, and tries again
            return None
        on_done = self._outbox.on_done_in_loop
        return MqttAction(settings, context.rule_id, lines, line, self._clock, self._dead_letters, on_done)


def _form(rule_id: str, sink: str, settings: SinkSettings) -> Form | None:
    """The function that turns rows into records of a spool; None for sinks without a spool."""
    if sink == CLOUD:
        from cloud_sync.declaration import CloudSettings
        from cloud_sync.sink import RecordMaker

        assert isinstance(settings, CloudSettings)
        return RecordMaker(settings, rule_id).record
    if sink == ARCHIVE:
        from cloud_sync.archive import ArchiveSettings, archived

        assert isinstance(settings, ArchiveSettings)
        return lambda row, at_ms: archived(row, settings, at_ms)
    return None

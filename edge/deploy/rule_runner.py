"""Starts and stops rules: their queries in the engine, and their actions."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Any

from edge.delivery.actions import ActionFactory
from edge.delivery.assigned import AssignedAction
from edge.deploy.deployed_rule import SINCE_SNAPSHOT, DeployedRule
from edge.deploy.row_shapes import row_maker, shape_of
from edge.gateway import Gateway
from rules.compiled import CompiledRule
from sql.errors import CorruptState
from sql.plan.signature import differences
from sql.rows import Shape
from sql.types import Saved

log = logging.getLogger("penstock.rules")

ACTION_CLOSE_MS = 2_000
"""The time for which a removed action may flush, in the loop; results that it still holds then
become dead letters."""


class RuleRunner:
    """The rules that run, and those that could not be started. Used by the gateway loop only.

    running  by id, in the order of their deployment
    failed   why a rule does not run
    structs  the columns of streams whose values are structs, of which a rule reads fields
    now_ms   the time of what is done now
    """

    def __init__(self, gateway: Gateway, builder: ActionFactory) -> None:
        self.running: dict[str, DeployedRule] = {}
        self.failed: dict[str, str] = {}
        self.structs: dict[str, frozenset[str]] = {}
        self.now_ms = 0
        self._gateway = gateway
        self._builder = builder

    def deploy(
        self, rule: CompiledRule, known: DeployedRule | None, state: Saved = None, *, anew: bool = False
    ) -> None:
        """Start a rule, or put it in the place of its earlier version, whose state it keeps
        unless it begins `anew`.

        `state`: that of a snapshot.
        """
        engine = self._gateway.engine
        if known and not anew:
            state = engine.snapshot(rule.id)
        shape = shape_of(rule.plan, self.structs)
        try:
            began, differs = self._begin(rule, known, state, shape)
        except Exception as error:
            log.error(
                "rule.failed",
                extra={"rule": rule.id, "file": rule.path, "error": repr(error)},
                exc_info=error,
            )
            self.failed[rule.id] = f"{type(error).__name__}: {error}"
            return
        self.failed.pop(rule.id, None)
        self.connect_actions(rule)
        self.running[rule.id] = DeployedRule(rule, began, shape, tuple(differs))
        why = {"differs": ", ".join(differs)} if differs else {}
        log.info("rule.deployed", extra={"rule": rule.id, "file": rule.path, "state": began, **why})

    def _begin(
        self, rule: CompiledRule, known: DeployedRule | None, state: Saved, shape: Shape
    ) -> tuple[str, list[str]]:
        """Start the query; the origin of its state, and why that is not the one given."""
        try:
            self._start(rule, state, shape)
        except CorruptState as error:
            log.error("rule.state_unusable", extra={"rule": rule.id, "error": str(error)})
            self._start(rule, None, shape)
            return "reset", [f"the saved state cannot be read: {error}"]
        if state is None:
            return "new", []
        if known is None:
            is_same = rule.plan.fingerprint == state.get("fingerprint")
            return ("restored", []) if is_same else ("reset", [SINCE_SNAPSHOT])
        if rule.plan.fingerprint == known.rule.plan.fingerprint:
            return "kept", []
        return "reset", differences(known.rule.plan.state_parts, rule.plan.state_parts)

    def _start(self, rule: CompiledRule, state: dict[str, Any] | None, shape: Shape) -> None:
        make_row = row_maker(rule.plan, shape)
        self._gateway.engine.deploy(rule.id, rule.plan, self.now_ms, state, shape=shape, make_row=make_row)

    def forget_failed(self, wanted: Collection[str]) -> None:
        """Forget the failures of rules that are not wanted any more."""
        self.failed = {rule_id: why for rule_id, why in self.failed.items() if rule_id in wanted}

    def reshape(self) -> None:
        """Change the shape of a stream's rows in its rules, where a new rule reads more columns or one that
        did is gone."""
        for rule_id, item in self.running.items():
            shape = shape_of(item.rule.plan, self.structs)
            if shape != item.shape:
                state = self._gateway.engine.snapshot(rule_id)
                self._start(item.rule, state, shape)
                item.shape = shape

    def states(self) -> dict[str, Any]:
        """The states of all rules, in the order of their deployment, with events in blocks (`RowBlocks`);
        of one that fails, None."""
        self._gateway.engine.roster.reconcile()
        return {
            rule_id: self._state(rule_id)
            for rule_id in self._gateway.engine.queries
            if rule_id in self.running
        }

    def _state(self, rule_id: str) -> dict[str, Any] | None:
        try:
            return self._gateway.engine.queries[rule_id].snapshot()
        except Exception as error:
            log.error("rule.snapshot_failed", extra={"rule": rule_id, "error": repr(error)}, exc_info=error)
            return None

    def connect_actions(self, rule: CompiledRule) -> None:
        """Give a rule its actions; those that it has no longer are closed."""
        outbox = self._gateway.outbox
        actions = self._builder.actions(rule, outbox.actions(rule.id))
        self.close(outbox.assigned.assign(rule.id, actions, errors_too=rule.options.send_error))

    def stop(self, rule_id: str) -> None:
        """Take a rule out of the engine, with what was held back of it, and close its actions."""
        self._gateway.engine.remove(rule_id)
        held = self._gateway.outbox.drop_held(rule_id)
        if held:
            log.info("rule.results_dropped", extra={"rule": rule_id, "results": held})
        self.close(self._gateway.outbox.assigned.assign(rule_id, ()))
        del self.running[rule_id]
        log.info("rule.stopped", extra={"rule": rule_id})

    def close(self, actions: Iterable[AssignedAction]) -> None:
        """Close actions that no rule has any more, all at once."""
        actions = list(actions)
        until_ms = self._gateway.clock.monotonic_ms() + ACTION_CLOSE_MS
        for action in actions:
            action.delivery.begin_close(until_ms)
        for action in actions:
            if left := self._gateway.outbox.close_action(action, until_ms):
                log.warning("action.undelivered", extra={"sink": action.delivery.name, "results": left})

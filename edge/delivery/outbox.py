"""Results on their way to the sinks, and which of them have not arrived yet.

Every emission goes to the actions of its rule: results to `actions`, late events to `late`, errors to `error`; errors
that no action wants become dead letters. Each hand-over has a number and is kept here until the sink gives its
receipt. A checkpoint contains what is still open, so a message may be acknowledged while a sink is slow: after a
crash the open results are handed to the sinks again. A sink may therefore see a result twice, but never misses one.

A delivery whose queue is full refuses; its results wait here in order, and the gateway stops taking in messages when
`rows_max` rows wait. Rows that timers produce meanwhile are still taken: they stem from state that is bounded
already.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from edge.delivery.dead_letters import DeadLetters
from sinks import Outcome, Stats
from sql import Emission

log = logging.getLogger("penstock.outbox")

ROLES = {"rows": "actions", "late": "late", "error": "error"}
"""Which list of a rule's actions takes which kind of emission."""


class Taker(Protocol):
    """What the outbox needs of a delivery; `sinks.Delivery` and `edge.delivery.cloud_action.CloudAction` are such."""

    name: str

    def submit(self, emission: Emission, token: Any = None, timeout_ms: int = 0) -> bool: ...
    def begin_close(self, deadline_ms: int) -> None: ...
    def close(self, deadline_ms: int) -> int: ...
    def stats(self) -> Stats: ...


@dataclass(slots=True)
class Action:
    """One delivery of a rule: its list and place there, the settings it was built from, and what it has refused."""

    role: str
    position: int
    settings: Any
    delivery: Taker
    waiting: deque[tuple[int, Emission]] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class _Open:
    """A hand-over without a receipt."""

    emission: Emission
    action: Action


class Outbox:
    """Hands emissions to deliveries. Used by the gateway loop only, except `on_done`."""

    def __init__(self, dead_letters: DeadLetters, rows_max: int) -> None:
        self.rows_max = rows_max
        self._dead_letters = dead_letters
        self._actions: dict[str, list[Action]] = {}
        self._errors_too: set[str] = set()
        self._open: dict[int, _Open] = {}
        self._number = 0
        self._receipts: deque[int] = deque()

    # --- from any thread -------------------------------------------------------------------------------------------

    def on_done(self, token: Any, outcome: Outcome) -> None:
        """The receipt of a delivery; taken into account by the next `reconcile`.

        Not at once: the receipt of a memory action says that its rows are in the intake. The loop settles before it
        empties the intake, so no checkpoint can find rows that are neither here nor in the state of their rule.
        """
        self._receipts.append(token)

    # --- from the loop ---------------------------------------------------------------------------------------------

    def on_done_in_loop(self, token: Any, outcome: Outcome) -> None:
        """The receipt of an action that works inside the loop."""
        self._open.pop(token, None)

    def actions(self, rule: str) -> Sequence[Action]:
        """The actions of a rule, in order."""
        return self._actions.get(rule, ())

    def set_actions(self, rule: str, actions: Sequence[Action], *, errors_too: bool = False) -> list[Action]:
        """Give a rule its actions; returns those that are no longer used, to be closed.

        `errors_too`: errors go to `actions` as well (`sendError`).
        """
        before = self._actions.pop(rule, [])
        self._errors_too.discard(rule)
        if errors_too:
            self._errors_too.add(rule)
        if actions:
            self._actions[rule] = list(actions)
        return [action for action in before if action not in actions]

    def hand_over(self, emissions: Iterable[Emission]) -> None:
        """Give each emission to the actions that want it."""
        for emission in emissions:
            if emission.kind == "error":
                log.warning("event.error", extra={"rule": emission.rule, "error": emission.error})
            roles = {ROLES[emission.kind]}
            if emission.kind == "error" and emission.rule in self._errors_too:
                roles.add("actions")
            wanted = [action for action in self._actions.get(emission.rule, ()) if action.role in roles]
            for action in wanted:
                self._submit(action, emission)
            if not wanted and emission.kind == "error":
                self._dead_letter(emission)

    def reconcile(self) -> bool:
        """Take note of receipts, and offer again what was refused; whether anything moved."""
        moved = bool(self._receipts)
        while self._receipts:
            self._open.pop(self._receipts.popleft(), None)
        for actions in self._actions.values():
            for action in actions:
                while action.waiting and action.delivery.submit(action.waiting[0][1], action.waiting[0][0]):
                    action.waiting.popleft()
                    moved = True
        return moved

    def is_full(self) -> bool:
        """Whether so many rows wait for slow sinks that no further message should be taken in."""
        return self.rows_waiting() >= self.rows_max

    def rows_waiting(self) -> int:
        """Rows that a delivery has refused so far."""
        return sum(
            max(1, len(emission.inserted) + len(emission.removed))
            for actions in self._actions.values()
            for action in actions
            for _, emission in action.waiting
        )

    def close_action(self, action: Action, deadline_ms: int) -> int:
        """Flush and close an action that is no longer used; what it could not deliver becomes dead letters."""
        action.delivery.close(deadline_ms)
        self.reconcile()
        left = [number for number, entry in self._open.items() if entry.action is action]
        for number in left:
            self._dead_letter(
                self._open.pop(number).emission, f"action {action.delivery.name} was removed before delivery"
            )
        return len(left)

    # --- checkpoint ------------------------------------------------------------------------------------------------

    def snapshot(self) -> list[dict[str, Any]]:
        """Everything without a receipt, oldest first, as JSON values."""
        return [
            {"role": entry.action.role, "position": entry.action.position, "sink": entry.action.delivery.name}
            | emission_to_json(entry.emission)
            for _, entry in sorted(self._open.items())
        ]

    def restore(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Hand over again what an earlier run had not delivered; without an action for it, it becomes a dead letter."""
        for entry in entries:
            emission = emission_from_json(entry)
            place = (entry["role"], entry["position"], entry["sink"])
            for action in self._actions.get(emission.rule, ()):
                if (action.role, action.position, action.delivery.name) == place:
                    self._submit(action, emission)
                    break
            else:
                self._dead_letter(emission, f"action {entry['sink']} is gone since the last run")

    def _submit(self, action: Action, emission: Emission) -> None:
        self._number += 1
        self._open[self._number] = _Open(emission, action)
        if action.waiting or not action.delivery.submit(emission, self._number):
            action.waiting.append((self._number, emission))

    def _dead_letter(self, emission: Emission, reason: str | None = None) -> None:
        rows = [*emission.inserted, *emission.removed]
        self._dead_letters.keep(
            emission.at_ms, reason or emission.error or "error", rule=emission.rule, kind=emission.kind, rows=rows
        )


def emission_to_json(emission: Emission) -> dict[str, Any]:
    """An emission as JSON values."""
    return {
        "rule": emission.rule, "at_ms": emission.at_ms, "kind": emission.kind, "error": emission.error,
        "inserted": emission.inserted, "removed": emission.removed,
    }  # fmt: skip


def emission_from_json(entry: Mapping[str, Any]) -> Emission:
    """The emission that `emission_to_json` wrote."""
    return Emission(
        rule=entry["rule"], at_ms=entry["at_ms"], kind=entry["kind"], error=entry["error"],
        inserted=entry["inserted"], removed=entry["removed"],
    )  # fmt: skip

"""Results on their way to the sinks, numbered, with a record of those that have not arrived yet.

Every emission goes to the actions of its rule: results to `actions`, late events to `late`, errors to
`error`; errors without an action become dead letters. The rows of a rule are numbered from 1. Replaying
the journal gives every row its number again, so each receiver can recognize what it has:

    the spool       stores the number of the last row with the rows, and ignores what it has
    other sinks     give a receipt; receipts are journalled, and what has none is handed over again

A sink may therefore see a result twice after a crash, but never misses one; the cloud gets each exactly once.

A delivery whose queue is full refuses; its results wait here in order, and the gateway stops taking in
messages when `rows_max` rows wait. Rows that timers produce meanwhile are still taken: they stem from state
that is bounded already.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from edge.delivery.dead_letters import DeadLetters
from edge.delivery.expectations import Expectations
from edge.delivery.taps import Taps
from edge.intake.origins import Origins
from edge.journal.record import Receipts
from sinks import Outcome, Stats
from sql import Emission
from sql.emission import Emissions, apart

log = logging.getLogger("penstock.outbox")

ROLES = {"rows": "actions", "late": "late", "error": "error"}
"""Which list of a rule's actions takes which kind of emission."""


class Taker(Protocol):
    """A delivery as the outbox uses it: `sinks.Delivery`, or an action inside the loop."""

    name: str

    def submit(self, emission: Emission, token: object = None, timeout_ms: int = 0) -> bool: ...
    def begin_close(self, deadline_ms: int) -> None: ...
    def close(self, deadline_ms: int) -> int: ...
    def stats(self) -> Stats: ...


@dataclass(slots=True)
class Action:
    """One delivery of a rule: its list and place there, the settings it was built from,
    and what it has not taken.

    is_replayed  its effects are part of the replay, or known by their numbers: it is given everything again
    open         emissions without a receipt by the number of their last row, each with that of its first
    waiting      those of them that it has refused
    last         number of the last row that was meant for it
    """

    role: str
    position: int
    settings: Any
    delivery: Taker
    is_replayed: bool = False
    open: dict[int, tuple[int, Emission]] = field(default_factory=dict)
    waiting: deque[int] = field(default_factory=deque)
    last: int = 0

    @property
    def delivered(self) -> int:
        """The number up to which it has taken everything."""
        return next(iter(self.open.values()))[0] - 1 if self.open else self.last


Opened = list[tuple[Action, int]]
"""Results by action and number of the last row."""


def have_receipts(opened: Opened) -> bool:
    """True if the sinks have taken all of these results."""
    return all(last not in action.open for action, last in opened)


class Token:
    """The token that a delivery returns as its receipt: the action, and the numbers of the rows."""

    __slots__ = ("action", "first", "last")

    def __init__(self, action: Action, first: int, last: int) -> None:
        self.action, self.first, self.last = action, first, last


def rows_of(emission: Emission) -> int:
    """The count of numbers that an emission takes."""
    return max(1, len(emission.inserted) + len(emission.removed))


class Outbox:
    """Hands emissions to deliveries. Used by the gateway loop only, except `on_done`."""

    def __init__(self, dead_letters: DeadLetters, rows_max: int) -> None:
        self.rows_max = rows_max
        self.numbers: dict[str, int] = {}
        """Number of the last row by rule."""
        self.fired: dict[str, int] = {}
        """When each rule last gave out rows."""
        self.expectations = Expectations()
        """The checks of rules, and the rows that break them."""
        self.taps = Taps()
        """The listeners to the emissions that pass."""
        self.is_replaying = False
        """True while results are only noted; `resume` hands over the rest."""
        self.opened: Opened = []
        """The results of this step of the loop that had no receipt when they were handed over."""
        self._dead_letters = dead_letters
        self._actions: dict[str, list[Action]] = {}
        self._behind: list[tuple[str, Action]] = []
        """The actions with results that wait, each with its rule: mostly none,
        however many rules there are."""
        self._taking: dict[tuple[str, str], list[Action]] = {}
        """The actions of a rule that take a kind of emission; left out where there are none."""
        self._receipts: deque[Token] = deque()
        self._told: dict[tuple[str, str, int, str], int] = {}
        self._held: set[str] = set()
        self.dropped_held = 0
        """Rows of rules that were about to be removed which were more than `rows_max`, or
        whose rule was removed."""

    # --- from any thread ------------------------------------------------------------------------------------

    def on_done(self, token: Token, outcome: Outcome) -> None:
        """The receipt of a delivery; taken into account by the next `reconcile`."""
        self._receipts.append(token)

    # --- from the loop --------------------------------------------------------------------------------------

    def on_done_in_loop(self, token: Token, outcome: Outcome) -> None:
        """The receipt of an action that works inside the loop."""
        token.action.open.pop(token.last, None)

    def actions(self, rule: str) -> Sequence[Action]:
        """The actions of a rule, in order."""
        return self._actions.get(rule, ())

    def set_actions(self, rule: str, actions: Sequence[Action], *, errors_too: bool = False) -> list[Action]:
        """Give a rule its actions; returns those that are no longer used, to be closed.

        `errors_too`: errors go to `actions` as well (`sendError`).
        """
        before = self._actions.pop(rule, [])
        if actions:
            self._actions[rule] = list(actions)
        for kind, role in ROLES.items():
            roles = {role, "actions"} if errors_too and kind == "error" else {role}
            self._taking.pop((rule, kind), None)
            if taking := [action for action in actions if action.role in roles]:
                self._taking[rule, kind] = taking
        return [action for action in before if action not in actions]

    def hand_over(self, emissions: Iterable[Emission], origins: Origins | None = None) -> None:
        """Number each emission, and give it to its actions. `origins`: the topics of the
        events behind them."""
        for part in emissions.parts if isinstance(emissions, Emissions) else emissions:
            first = self.numbers.get(part.rule, 0) + 1
            self.numbers[part.rule] = first + rows_of(part) - 1
            if part.kind == "rows":
                self.fired[part.rule] = part.at_ms
                if not self.is_replaying:
                    self.expectations.note(part)
            elif part.kind == "error":
                log.warning("event.error", extra={"rule": part.rule, "error": part.error})
            wanted = self._taking.get((part.rule, part.kind), ())
            if wanted or self.taps.listeners:
                self._hand_on(part, first, wanted)
            if not wanted and part.kind == "error":
                self._dead_letter(part, origins=origins)

    def _hand_on(self, part: Emission, first: int, wanted: Sequence[Action]) -> None:
        """Give the emissions of a part, whose rows are numbered from `first` on, to listeners and actions."""
        is_held = part.rule in self._held
        for emission in apart((part,)):
            last = first + rows_of(emission) - 1
            self.taps.emission(emission)
            for action in wanted:
                if is_held:
                    self._hold(part.rule, action, first, last, emission)
                else:
                    self._submit(part.rule, action, first, last, emission)
                if last in action.open and not self.is_replaying:
                    self.opened.append((action, last))
            first = last + 1

    def reconcile(self) -> None:
        """Note receipts, and offer refused results again."""
        self.opened = []
        while self._receipts:
            token = self._receipts.popleft()
            token.action.open.pop(token.last, None)
        if not self._behind:
            return
        for rule, action in self._behind:
            while action.waiting and rule not in self._held:
                first, emission = action.open[action.waiting[0]]
                if not action.delivery.submit(emission, Token(action, first, action.waiting[0])):
                    break
                action.waiting.popleft()
        self._behind = [entry for entry in self._behind if entry[1].waiting]

    def is_full(self) -> bool:
        """True if so many rows wait for slow sinks that no further message should be taken in."""
        return bool(self._behind) and self.rows_waiting() >= self.rows_max

    def rows_waiting(self) -> int:
        """Rows that a delivery has refused so far."""
        return sum(
            rows_of(action.open[last][1])
            for rule, action in self._behind
            if rule not in self._held
            for last in action.waiting
        )

    # --- rules about to be removed --------------------------------------------------------------------------

    def hold(self, rule: str) -> None:
        """Keep the results of a rule back, the newest `rows_max` of each action, until `release` or
        `drop_held`."""
        self._held.add(rule)

    def release(self, rule: str) -> None:
        """Hand over the results held back."""
        self._held.discard(rule)
        for action in self._actions.get(rule, ()):
            waiting, action.waiting = action.waiting, deque()
            for last in waiting:
                first, emission = action.open[last]
                self._submit(rule, action, first, last, emission)

    def drop_held(self, rule: str) -> int:
        """Drop the results held back; returns their number."""
        dropped = 0
        if rule in self._held:
            self._held.discard(rule)
            for action in self._actions.get(rule, ()):
                dropped += len(action.waiting)
                while action.waiting:
                    self._drop_oldest(action)
        return dropped

    def _hold(self, rule: str, action: Action, first: int, last: int, emission: Emission) -> None:
        action.open[last] = (first, emission)
        action.last = last
        self._wait(rule, action, last)
        if len(action.waiting) > self.rows_max:
            self._drop_oldest(action)

    def _drop_oldest(self, action: Action) -> None:
        _, emission = action.open.pop(action.waiting.popleft())
        self.dropped_held += rows_of(emission)

    def close_action(self, action: Action, deadline_ms: int) -> int:
        """Flush and close an action that is no longer used; what it could not deliver
        becomes dead letters."""
        action.delivery.close(deadline_ms)
        self.reconcile()
        left = list(action.open.values())
        action.open.clear()
        action.waiting.clear()
        for _, emission in left:
            self._dead_letter(emission, f"action {action.delivery.name} was removed before delivery")
        return len(left)

    def _all(self) -> Iterator[tuple[str, Action]]:
        for rule, actions in self._actions.items():
            for action in actions:
                yield rule, action

    def _wait(self, rule: str, action: Action, *numbers: int) -> None:
        """Results wait until the action takes them."""
        if numbers and not action.waiting:
            self._behind.append((rule, action))
        action.waiting.extend(numbers)

    def _submit(self, rule: str, action: Action, first: int, last: int, emission: Emission) -> None:
        action.open[last] = (first, emission)
        action.last = last
        if self.is_replaying and not action.is_replayed:
            return
        if action.waiting or not action.delivery.submit(emission, Token(action, first, last)):
            self._wait(rule, action, last)

    def _dead_letter(
        self, emission: Emission, reason: str | None = None, origins: Origins | None = None
    ) -> None:
        rows = [*emission.inserted, *emission.removed]
        topic = origins.topic_of(rows[0]) if origins is not None and rows else ""
        why = reason or emission.error or "error"
        self._dead_letters.keep(emission.at_ms, why, topic, rule=emission.rule, kind=emission.kind, rows=rows)

    # --- journal --------------------------------------------------------------------------------------------

    def receipts(self) -> Receipts | None:
        """The receipts of sinks since the last call; None if there are none."""
        new = []
        for rule, action in self._all():
            key = (rule, action.role, action.position, action.delivery.name)
            delivered = action.delivered
            if not action.is_replayed and delivered > self._told.get(key, 0):
                self._told[key] = delivered
                new.append((*key, delivered))
        return Receipts(new) if new else None

    def delivered(self, receipts: Receipts) -> None:
        """Replay: sinks have taken results up to these numbers."""
        for rule, role, position, sink, number in receipts.delivered:
            self._told[rule, role, position, sink] = number
            for action in self._actions.get(rule, ()):
                if (action.role, action.position, action.delivery.name) == (role, position, sink):
                    for last in [last for last in action.open if last <= number]:
                        del action.open[last]

    def resume(self) -> None:
        """End the replay: hand over the results without receipt."""
        self.is_replaying = False
        for rule, action in self._all():
            if not action.is_replayed:
                action.waiting.clear()
                self._wait(rule, action, *action.open)
        self.reconcile()

    def snapshot(self) -> dict[str, Any]:
        """The numbers, and everything without a receipt, as JSON values."""
        return {
            "numbers": self.numbers,
            "fired": self.fired,
            "actions": [
                [
                    rule,
                    action.role,
                    action.position,
                    action.delivery.name,
                    action.last,
                    [
                        [first, last, emission_to_json(emission)]
                        for last, (first, emission) in action.open.items()
                    ],
                ]
                for rule, action in self._all()
            ],
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore the results that an earlier run had not delivered; a result without an action
        becomes a dead letter."""
        self.numbers |= saved["numbers"]
        self.fired |= saved.get("fired", {})
        for rule, role, position, sink, last, entries in saved["actions"]:
            key = (rule, role, position, sink)
            action = next(
                (a for r, a in self._all() if (r, a.role, a.position, a.delivery.name) == key), None
            )
            if action is not None:
                action.last = last
                self._told[key] = entries[0][0] - 1 if entries else last
            for first, number, entry in entries:
                emission = emission_from_json(entry)
                if action is None:
                    self._dead_letter(emission, f"action {sink} is gone since the last run")
                    continue
                action.open[number] = (first, emission)
                if action.is_replayed:
                    self._wait(rule, action, number)


def emission_to_json(emission: Emission) -> dict[str, Any]:
    """An emission as JSON values."""
    return {
        "rule": emission.rule,
        "at_ms": emission.at_ms,
        "kind": emission.kind,
        "error": emission.error,
        "inserted": emission.inserted,
        "removed": emission.removed,
        "states": emission.states,
    }


def emission_from_json(entry: Mapping[str, Any]) -> Emission:
    """The emission that `emission_to_json` wrote."""
    return Emission(
        rule=entry["rule"],
        at_ms=entry["at_ms"],
        kind=entry["kind"],
        error=entry["error"],
        inserted=entry["inserted"],
        removed=entry["removed"],
        states=entry.get("states", ()),
    )

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
from collections.abc import Iterable, Sequence

from edge.delivery.assigned import Assigned, AssignedAction, Opened, ReceiptToken, rows_of
from edge.delivery.dead_letters import DeadLetters
from edge.delivery.delivery_journal import DeliveryJournal
from edge.delivery.expectations import Expectations
from edge.delivery.taps import Taps
from edge.intake.origins import Origins
from sinks import Outcome
from sql import Emission
from sql.emission import Emissions, apart

log = logging.getLogger("penstock.outbox")


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
        self.assigned = Assigned()
        self.journaled = DeliveryJournal(self.assigned, self.numbers, self.fired, self._dead_letter)
        """What the journal and the snapshots know of the results."""
        self._dead_letters = dead_letters
        self._behind: list[tuple[str, AssignedAction]] = []
        """The actions with results that wait, each with its rule: mostly none,
        however many rules there are."""
        self._receipts: deque[ReceiptToken] = deque()
        self._held: set[str] = set()
        self.dropped_held = 0
        """Rows of rules that were about to be removed which were more than `rows_max`, or
        whose rule was removed."""

    # --- from any thread ------------------------------------------------------------------------------------

    def on_done(self, token: ReceiptToken, outcome: Outcome) -> None:
        """The receipt of a delivery; taken into account by the next `reconcile`."""
        self._receipts.append(token)

    # --- from the loop --------------------------------------------------------------------------------------

    def on_done_in_loop(self, token: ReceiptToken, outcome: Outcome) -> None:
        """The receipt of an action that works inside the loop."""
        token.action.open.pop(token.last, None)

    def actions(self, rule: str) -> Sequence[AssignedAction]:
        """The actions of a rule, in order."""
        return self.assigned.of(rule)

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
            wanted = self.assigned.taking(part.rule, part.kind)
            if wanted or self.taps.listeners:
                self._hand_on(part, first, wanted)
            if not wanted and part.kind == "error":
                self._dead_letter(part, origins=origins)

    def _hand_on(self, part: Emission, first: int, wanted: Sequence[AssignedAction]) -> None:
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
                if not action.delivery.submit(emission, ReceiptToken(action, first, action.waiting[0])):
                    break
                action.end_wait(emission)
        self._behind = [entry for entry in self._behind if entry[1].waiting]

    def is_full(self) -> bool:
        """True if no further message should be taken in: as many rows as are allowed wait for slow sinks."""
        return bool(self._behind) and self.rows_waiting() >= self.rows_max

    def rows_waiting(self) -> int:
        """Rows that a delivery has refused so far, without those of rules that are held."""
        if not self._behind:
            return 0
        return sum(action.rows_waiting for rule, action in self._behind if rule not in self._held)

    # --- rules about to be removed --------------------------------------------------------------------------

    def hold(self, rule: str) -> None:
        """Keep the results of a rule back, the newest `rows_max` of each action, until `release` or
        `drop_held`."""
        self._held.add(rule)

    def release(self, rule: str) -> None:
        """Hand over the results held back."""
        self._held.discard(rule)
        self._behind = [entry for entry in self._behind if entry[0] != rule]
        for action in self.assigned.of(rule):
            waiting = [*action.waiting]
            action.forget_waiting()
            for last in waiting:
                first, emission = action.open[last]
                self._submit(rule, action, first, last, emission)

    def drop_held(self, rule: str) -> int:
        """Drop the results held back; returns their number."""
        dropped = 0
        if rule in self._held:
            self._held.discard(rule)
            for action in self.assigned.of(rule):
                dropped += len(action.waiting)
                while action.waiting:
                    self._drop_oldest(action)
        return dropped

    def _hold(self, rule: str, action: AssignedAction, first: int, last: int, emission: Emission) -> None:
        action.open[last] = (first, emission)
        action.last = last
        self._wait(rule, action, last)
        if len(action.waiting) > self.rows_max:
            self._drop_oldest(action)

    def _drop_oldest(self, action: AssignedAction) -> None:
        _, emission = action.open.pop(action.waiting[0])
        action.end_wait(emission)
        self.dropped_held += rows_of(emission)

    def close_action(self, action: AssignedAction, deadline_ms: int) -> int:
        """Flush and close an action that is no longer used; what it could not deliver
        becomes dead letters."""
        action.delivery.close(deadline_ms)
        self.reconcile()
        left = list(action.open.values())
        action.forget_waiting()
        action.open.clear()
        for _, emission in left:
            self._dead_letter(emission, f"action {action.delivery.name} was removed before delivery")
        return len(left)

    def _wait(self, rule: str, action: AssignedAction, last: int) -> None:
        """A result waits until the action takes it."""
        if not action.waiting:
            self._behind.append((rule, action))
        action.wait(last)

    def _submit(self, rule: str, action: AssignedAction, first: int, last: int, emission: Emission) -> None:
        action.open[last] = (first, emission)
        action.last = last
        if self.is_replaying and not action.is_replayed:
            return
        if action.waiting or not action.delivery.submit(emission, ReceiptToken(action, first, last)):
            self._wait(rule, action, last)

    def _dead_letter(
        self, emission: Emission, reason: str | None = None, origins: Origins | None = None
    ) -> None:
        rows = [*emission.inserted, *emission.removed]
        topic = origins.topic_of(rows[0]) if origins is not None and rows else ""
        why = reason or emission.error or "error"
        self._dead_letters.keep(emission.at_ms, why, topic, rule=emission.rule, kind=emission.kind, rows=rows)

    def resume(self) -> None:
        """End the replay: hand over the results without receipt."""
        self.is_replaying = False
        for _, action in self.assigned:
            if not action.is_replayed:
                action.forget_waiting()
                action.wait(*action.open)
        self._behind = [entry for entry in self.assigned if entry[1].waiting]
        self.reconcile()

"""The state of deliveries beyond this run: receipts for the journal, and for snapshots all that has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import asdict

from edge.delivery.assigned import Assigned
from edge.journal.record import Receipts
from sql import Emission


class DeliveryJournal:
    """Receipts and open results, for the journal and the snapshots. Used by the gateway loop only.

    numbers, fired  of the outbox: by rule the number of its last row, and when it last gave out rows
    lose            called for a result whose action is gone, with the reason
    """

    def __init__(
        self,
        assigned: Assigned,
        numbers: dict[str, int],
        fired: dict[str, int],
        lose: Callable[[Emission, str], None],
    ) -> None:
        self._assigned = assigned
        self._numbers = numbers
        self._fired = fired
        self._lose = lose
        self._told: dict[tuple[str, str, int, str], int] = {}
        """The number up to which the journal has the receipts of an action."""
        self.are_awaited = False
        """Results had no receipt at the last call of `receipts`."""

    def receipts(self) -> Receipts | None:
        """The receipts of sinks since the last call; None if there are none."""
        new = []
        self.are_awaited = False
        for rule, action in self._assigned:
            self.are_awaited |= bool(action.open) and not action.is_replayed
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
            for action in self._assigned.of(rule):
                if (action.role, action.position, action.delivery.name) == (role, position, sink):
                    while action.waiting and action.waiting[0] <= number:  # of a rule that is held
                        action.end_wait(action.open[action.waiting[0]][1])
                    for last in [last for last in action.open if last <= number]:
                        del action.open[last]

    def snapshot(self) -> dict[str, Any]:
        """The numbers, and everything without a receipt, as JSON values."""
        return {
            "numbers": self._numbers,
            "fired": self._fired,
            "actions": [
                [
                    rule,
                    action.role,
                    action.position,
                    action.delivery.name,
                    action.last,
                    [[first, last, asdict(emission)] for last, (first, emission) in action.open.items()],
                ]
                for rule, action in self._assigned
            ],
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore the results that an earlier run had not delivered; a result without an action
        becomes a dead letter."""
        self._numbers.update(saved["numbers"])
        self._fired.update(saved.get("fired", {}))
        for rule, role, position, sink, last, entries in saved["actions"]:
            key = (rule, role, position, sink)
            action = next(
                (a for r, a in self._assigned if (r, a.role, a.position, a.delivery.name) == key), None
            )
            if action is not None:
                action.last = last
                self._told[key] = entries[0][0] - 1 if entries else last
            for first, number, entry in entries:
                emission = emission_from_json(entry)
                if action is None:
                    self._lose(emission, f"action {sink} is gone since the last run")
                    continue
                action.open[number] = (first, emission)
                if action.is_replayed:
                    action.wait(number)


def emission_from_json(entry: Mapping[str, Any]) -> Emission:
    """The emission with these fields; other keys, which snapshots before the journal have, do not count."""
    return Emission(
        rule=entry["rule"],
        at_ms=entry["at_ms"],
        kind=entry["kind"],
        error=entry["error"],
        inserted=entry["inserted"],
        removed=entry["removed"],
        states=entry.get("states", ()),
    )

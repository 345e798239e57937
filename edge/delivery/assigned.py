"""The actions of rules, and what each of them has not taken yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sinks import Stats
from sql import Emission
from sql.record import replace

ROLES = {"rows": "actions", "late": "late", "error": "error"}
"""Which list of a rule's actions takes which kind of emission."""


class Taker(Protocol):
    """A delivery as the outbox uses it: `sinks.Delivery`, or an action inside the loop."""

    name: str

    def submit(self, emission: Emission, token: object = None) -> bool: ...
    def begin_close(self, deadline_ms: int) -> None: ...
    def close(self, deadline_ms: int) -> int: ...
    def stats(self) -> Stats: ...


@dataclass(slots=True)
class AssignedAction:
    """One delivery of a rule: its list and place there, the settings it was built from,
    and what it has not taken.

    is_replayed  its effects are part of the replay, or known by their numbers: it is given everything again
    open         emissions without a receipt by the number of their last row, each with that of its first
    waiting      those of them that it has refused; changed by the methods only
    rows_waiting the count of their rows
    last         number of the last row that was meant for it
    """

    role: str
    position: int
    settings: Any
    delivery: Taker
    is_replayed: bool = False
    open: dict[int, tuple[int, Emission]] = field(default_factory=dict)
    waiting: deque[int] = field(default_factory=deque)
    rows_waiting: int = 0
    last: int = 0

    def wait(self, *numbers: int) -> None:
        """Append open emissions to those that wait, by the numbers of their last rows."""
        self.waiting += numbers
        for last in numbers:
            self.rows_waiting += rows_of(self.open[last][1])

    def end_wait(self, emission: Emission) -> None:
        """Remove this emission, the first of those that wait, from them."""
        self.waiting.popleft()
        self.rows_waiting -= rows_of(emission)

    def forget_waiting(self) -> None:
        """Remove all emissions from those that wait."""
        self.waiting.clear()
        self.rows_waiting = 0

    def stats(self) -> Stats:
        """The counters of the delivery; `queued` counts the results that it has refused so far as well."""
        found = self.delivery.stats()
        return replace(found, queued=found.queued + len(self.waiting))

    @property
    def delivered(self) -> int:
        """The number up to which it has taken everything."""
        return next(iter(self.open.values()))[0] - 1 if self.open else self.last


Opened = list[tuple[AssignedAction, int]]
"""Results by action and number of the last row."""


def have_receipts(opened: Opened) -> bool:
    """True if the sinks have taken all of these results."""
    for action, last in opened:  # noqa: SIM110 - called for each batch that waits: no generator
        if last in action.open:
            return False
    return True


class ReceiptToken:
    """The token that a delivery returns as its receipt: the action, and the numbers of the rows."""

    __slots__ = ("action", "first", "last")

    def __init__(self, action: AssignedAction, first: int, last: int) -> None:
        self.action, self.first, self.last = action, first, last


def rows_of(emission: Emission) -> int:
    """The count of numbers that an emission takes."""
    return max(1, len(emission.inserted) + len(emission.removed))


class Assigned:
    """The actions of each rule. Used by the gateway loop only."""

    def __init__(self) -> None:
        self._of: dict[str, list[AssignedAction]] = {}
        self._taking: dict[tuple[str, str], list[AssignedAction]] = {}
        """The actions of a rule that take a kind of emission; left out where there are none."""

    def __iter__(self) -> Iterator[tuple[str, AssignedAction]]:
        """All actions, each with its rule."""
        for rule, actions in self._of.items():
            for action in actions:
                yield rule, action

    def of(self, rule: str) -> Sequence[AssignedAction]:
        """The actions of a rule, in order."""
        return self._of.get(rule, ())

    def taking(self, rule: str, kind: str) -> Sequence[AssignedAction]:
        """The actions of a rule that take a kind of emission."""
        return self._taking.get((rule, kind), ())

    def assign(
        self, rule: str, actions: Sequence[AssignedAction], *, errors_too: bool = False
    ) -> list[AssignedAction]:
        """Give a rule its actions; returns those that are no longer used, to be closed.

        `errors_too`: errors go to `actions` as well (`sendError`).
        """
        before = self._of.pop(rule, [])
        if actions:
            self._of[rule] = list(actions)
        for kind, role in ROLES.items():
            roles = {role, "actions"} if errors_too and kind == "error" else {role}
            self._taking.pop((rule, kind), None)
            if taking := [action for action in actions if action.role in roles]:
                self._taking[rule, kind] = taking
        return [action for action in before if action not in actions]

"""Loops that hold plain numbers only, and the operators beside them for everything else.

A loop whose statements are exact for plain numbers and NULL stops at any other value, or one that cannot be evaluated.
The query then builds the operators for its plan, shows them the events in the window, and lets them work until the
window holds only what the loop can take again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from sql.aggregates.state import decode
from sql.codegen.fast.query import FastQuery
from sql.runtime.emission import Emission
from sql.runtime.state import pack_row

PLAIN_MIN = 64
"""So many events that the loop could have taken must have come before it is asked to go on."""


class HandingOver(FastQuery):
    """Base of queries whose loop `push(events, now_ms, out)` gives back the event it cannot take, with its time."""

    many_rows = False
    """Whether an emission may have more than one row."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.operators: Any = None
        self.plain_since = 0
        super().__init__(*args, **keywords)
        self.kept = self.fresh()

    @abstractmethod
    def fresh(self) -> dict[str, Any]:
        """What the loop keeps, by name, for an empty window."""

    @abstractmethod
    def remembered(self) -> list[tuple[Any, int]]:
        """The events in the window in order of arrival, with their times as far as those matter."""

    # --- driving ------------------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.now_ms = self.context.now_ms = now_ms
        return self._run(iter(rows), len(rows), now_ms)

    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        self.now_ms = max(self.now_ms, times[0])
        out = self._run(iter(zip(rows, times, strict=True)), len(rows), 0)
        self.now_ms = max(self.now_ms, times[-1])
        return out

    def _run(self, events: Iterator[Any], count: int, now_ms: int) -> list[Emission]:
        """Events at `now_ms`, or in event time pairs of event and time."""
        self.counts["events_in"] += count
        out: list[Emission] = []
        while True:
            if self.operators is not None and not self._on_operators(events, now_ms, out):
                break
            odd = None
            if self.retained() + count <= self.plan.options.max_window_events:
                odd = self._feed(events, now_ms, self.out)
            elif (event := next(events, None)) is not None:
                odd = event if self.is_timed else (event, now_ms)
            self._move(out)
            if odd is None:
                break
            self._hand_over(odd, out)
        if self.errors:
            out += self.errors
            self.errors.clear()
        return out

    def _feed(self, events: Iterator[Any], now_ms: int, out: list[Emission]) -> Any:
        """Run the loop; the event that it cannot take in any form, with its time."""
        while (odd := self.code["push"](events, now_ms, out)) is not None and self.refine():
            events = chain((odd if self.is_timed else odd[0],), events)
        return odd

    def refine(self) -> bool:
        """Make the loop one that can take more, at more cost; False if there is none."""
        return False

    def _move(self, out: list[Emission]) -> None:
        """What the loop has given out goes to `out`, counted."""
        mine = self.out
        if self.many_rows or self.is_timed:
            self.counts["rows_out"] += rows_in(mine)
        else:
            self.counts["rows_out"] += len(mine)
        out += mine
        mine.clear()

    # --- to the operators ---------------------------------------------------------------------------------------------

    def _hand_over(self, odd: tuple[Any, int], out: list[Emission]) -> None:
        """An event that the loop cannot take: the operators go on from the events in the window."""
        self.operators = self._as_operators()
        self.plain_since = 0
        self._one(odd, out)

    def _as_operators(self) -> Any:
        """Operators that hold the events in the window."""
        from sql.runtime.start import on_operators

        made = on_operators(
            self.name, self.plan, self.catalog, now_ms=self.now_ms, shape=self.shape, make_row=self.make_row
        )
        for row, at_ms in self.remembered():
            self._step(made, row, at_ms)
        made.counts |= dict.fromkeys(made.counts, 0)
        made.warnings.division_by_zero = 0
        return made

    def _one(self, event: tuple[Any, int], out: list[Emission]) -> None:
        row, at_ms = event
        for emission in self._step(self.operators, row, at_ms):
            later = self.errors if emission.kind == "error" and not self.is_timed else out
            later.append(emission)
        self.plain_since = self.plain_since + 1 if self._is_plain(row) else 0
        self.now_ms = max(self.now_ms, at_ms)

    def _step(self, query: Any, row: Any, at_ms: int) -> list[Emission]:
        due: list[Emission] = []
        while (deadline := query.next_deadline()) is not None and deadline <= at_ms:
            due += query.advance(at_ms if query.steps_itself else deadline)
        due += query.push(self.plan.sources[0].stream, [row], at_ms)
        return due

    def _on_operators(self, events: Iterator[Any], now_ms: int, out: list[Emission]) -> bool:
        """Events go to the operators; True as soon as the loop can take over, with events perhaps left."""
        while True:
            if self.plain_since >= max(PLAIN_MIN, self.operators.retained()) and self._return():
                return True
            event = next(events, None)
            if event is None:
                return False
            self._one(event if self.is_timed else (event, now_ms), out)

    # --- and back -----------------------------------------------------------------------------------------------------

    def _is_plain(self, row: Any) -> bool:
        """Whether the loop could take the event: tried on an empty window."""
        kept = self.kept
        is_plain = self.replay([(row, 0)])
        self.kept = kept
        return is_plain

    def _return(self) -> bool:
        """Let the loop go on from the events in the operators' window, if it can take them all."""
        changes = getattr(self.operators, "changes", None)
        if changes is not None and changes.refused:
            return False  # what is in the window but in no group is known to the operators alone
        held = sorted(self.operators.content(), key=lambda event: event.seq)
        if not self.replay([(event.row, event.time_ms) for event in held]):
            self.kept = self.fresh()
            self.plain_since = 0
            return False
        for name, count in self.operators.counts.items():
            if name != "events_in":
                self.counts[name] = self.counts.get(name, 0) + count
        self.warnings.division_by_zero += self.operators.warnings.division_by_zero
        self.operators = None
        return True

    def replay(self, held: list[tuple[Any, int]]) -> bool:
        """Make the window what it was, without giving anything out or counting; False where an event is odd."""
        counts, errors, out = dict(self.counts), list(self.errors), list(self.out)
        divisions = self.warnings.division_by_zero
        self.kept = self.fresh()
        if self.is_timed:
            is_plain = self._feed(iter(held), 0, []) is None
        else:
            is_plain = all(self._feed(iter((row,)), at_ms, []) is None for row, at_ms in held)
        self.counts |= counts
        self.warnings.division_by_zero = divisions
        self.errors[:], self.out[:] = errors, out
        return is_plain

    # --- time ---------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        return None if self.operators is None else self.operators.next_deadline()

    def advance_to(self, now_ms: int) -> None:
        if self.operators is not None:
            self.out += self.operators.advance(now_ms)

    def flush(self, now_ms: int) -> list[Emission]:
        return []

    # --- looking ------------------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, int]:
        found = super().counters()
        if self.operators is not None:
            for name, count in self.operators.counts.items():
                if name != "events_in":
                    found[name] += count
            found["division_by_zero"] += self.operators.warnings.division_by_zero
        return found

    def retained(self) -> int:
        return len(self.kept["window"]) if self.operators is None else self.operators.retained()

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        """The rows of the present content, by the operators."""
        query = self.operators
        if query is None:
            query = self._as_operators()
            query.advance(now_ms)
        rows: list[dict[str, Any]] = query.read(now_ms)
        return rows

    # --- state --------------------------------------------------------------------------------------------------------

    def _state(self) -> Any:
        if self.operators is not None:
            return {"operators": self.operators.snapshot(), "plain_since": self.plain_since}
        return {"window": [[at_ms, pack_row(row)] for row, at_ms in self.remembered()]}

    def _put_back(self, state: Any, store: Any) -> None:
        if "operators" in state:
            self.operators = self._as_operators()
            self.operators.restore(state["operators"])
            self.plain_since = state["plain_since"]
            return
        rows = (({name: decode(value) for name, value in row.items()}, at_ms) for at_ms, row in state["window"])
        self.replay([(self.make_row(row), at_ms) for row, at_ms in rows])


def rows_in(emissions: Iterable[Emission]) -> int:
    """How many rows are given out."""
    return sum(len(item.inserted) for item in emissions if item.kind == "rows")

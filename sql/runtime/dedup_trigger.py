"""`dedup_trigger(start, end, now, expire_ms)`: requests for spans of time, each answered at its end, no part twice.

A rule without a window asks for `[start, end)` on the clock of its data, of which `now` tells the present. The row is
held until that clock reaches `end`; then it is given out with the parts of the span that no earlier row has had:

    asked [10, 20)          -> [{"start_key": "10", "end_key": "20"}]
    asked [15, 30) later    -> [{"start_key": "20", "end_key": "30"}]
    asked [12, 18) later    -> NULL

Between events the data's clock goes on with the rule's. Spans that ended more than `expire_ms` before a row's `now` are
forgotten, and what a row asks for before that is cut off.
"""

from __future__ import annotations

from bisect import insort
from typing import Any, NamedTuple

from sql.aggregates.state import decode, encode
from sql.runtime.delta_query import DeltaQuery
from sql.runtime.emission import Emission, Out, Row
from sql.runtime.query import in_order
from sql.runtime.state import EventStore
from sql.windows.operator import earliest


class Request(NamedTuple):
    """A row that waits for the end of its span; by end, then by arrival."""

    end: int
    number: int
    start: int
    now: int
    row: Row


class Spans:
    """Disjoint spans in order: what has been given out."""

    def __init__(self) -> None:
        self.taken: list[list[int]] = []

    def take(self, start: int, end: int) -> list[tuple[int, int]]:
        """The parts of [start, end) not taken yet; all of it is taken from now on."""
        free, at = [], start
        for low, high in self.taken:
            if low < end and high > start:
                if at < low:
                    free.append((at, low))
                at = max(at, high)
        if at < end:
            free.append((at, end))
        touching = [span for span in self.taken if span[0] <= end and span[1] >= start]
        rest = [span for span in self.taken if span not in touching]
        whole = [min([start, *(span[0] for span in touching)]), max([end, *(span[1] for span in touching)])]
        self.taken = sorted([*rest, whole])
        return free

    def forget(self, before: int) -> None:
        """Drop spans that ended before an instant."""
        self.taken = [span for span in self.taken if span[1] >= before]


class DedupTriggerQuery(DeltaQuery):
    """A rule without a window whose rows wait for the end of the span they ask for."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        (self.trigger,) = (spread for spread in self.plan.spreads if spread.kind == "requests")
        self.waiting: list[Request] = []
        self.spans = Spans()
        self.number = 0
        self.base = (0, 0)
        """What the data's clock said last, and when."""

    def _emission(self, new: list[Out], old: list[Out], now_ms: int, *, ticked: bool) -> list[Emission]:
        out: list[Emission] = []
        ((item, _),) = self.trigger.items
        for row in in_order(new, self.plan, self.row_limit, self.spreads):
            start, end, now = row.pop(item)
            self.number += 1
            insort(self.waiting, Request(end, self.number, start, now, row))
            self.base = (now, now_ms)
            out += self._answer(now_ms)
        return out

    def _answer(self, now_ms: int) -> list[Emission]:
        """The rows whose span has ended."""
        clock = self.base[0] + now_ms - self.base[1]
        out = []
        while self.waiting and self.waiting[0].end <= clock:
            request = self.waiting.pop(0)
            self.counts["rows_out"] += 1
            row = {**request.row, self.trigger.name: self._parts(request)}
            out.append(Emission(self.name, now_ms, "rows", [row]))
        return out

    def _parts(self, request: Request) -> list[dict[str, str]] | None:
        oldest = request.now - self.trigger.expire_ms
        self.spans.forget(oldest)
        start = max(request.start, oldest)
        free = self.spans.take(start, request.end) if start < request.end else []
        return [{"start_key": str(low), "end_key": str(high)} for low, high in free] or None

    def advance(self, now_ms: int) -> list[Emission]:
        return super().advance(now_ms) + self._answer(now_ms)

    def next_deadline(self) -> int | None:
        own = self.base[1] + self.waiting[0].end - self.base[0] if self.waiting else None
        return earliest((super().next_deadline(), own))

    def flush(self, now_ms: int) -> list[Emission]:
        out: list[Emission] = []
        while (deadline := self.next_deadline()) is not None:
            out += self.advance(deadline)
        return out

    def _state(self) -> dict[str, Any]:
        waiting = [[*request[:4], encode(request.row)] for request in self.waiting]
        own = {"waiting": waiting, "spans": self.spans.taken, "number": self.number, "base": list(self.base)}
        return {**super()._state(), "trigger": own}

    def _put_back(self, state: Any, store: EventStore) -> None:
        super()._put_back(state, store)
        own = state["trigger"]
        self.waiting = [
            Request(end, number, start, now, decode(row)) for end, number, start, now, row in own["waiting"]
        ]
        self.spans.taken = [list(span) for span in own["spans"]]
        self.number, self.base = own["number"], (own["base"][0], own["base"][1])

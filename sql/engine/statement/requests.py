"""`dedup_trigger(start, end, now, expire_ms)`: requests for spans of time, each answered
at its end, no part twice.

A rule without a window requests `[start, end)` on the clock of its data, whose present is `now`.
The row is held until that clock reaches `end`; then it is emitted with the parts of the span that no
earlier row has had:

    asked [10, 20)          -> [{"start_key": "10", "end_key": "20"}]
    asked [15, 30) later    -> [{"start_key": "20", "end_key": "30"}]
    asked [12, 18) later    -> NULL

Between events the data's clock goes on with the rule's. Spans that ended more than `expire_ms` before a row's
`now` are forgotten, and the part of a request before that is cut off.
"""

from __future__ import annotations

from bisect import insort
from typing import Any, NamedTuple

from sql.aggregates.plain_values import decode, encode
from sql.emission import Emission, Row
from sql.engine.statement.statement_core import StatementCore
from sql.engine.statement.statement_output import ContentReader, Output


class RowRequest(NamedTuple):
    """A row that waits for the end of its span; by end, then by arrival."""

    end: int
    number: int
    start: int
    now: int
    row: Row


class Spans:
    """Disjoint spans in order: those emitted so far."""

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


class Requests(Output):
    """The output of a rule without a window whose rows wait for the end of the span they request."""

    def __init__(self, statement: StatementCore, content: ContentReader) -> None:
        super().__init__(statement, content)
        (self.trigger,) = (spread for spread in self.plan.spreads if spread.kind == "requests")
        self.waiting: list[RowRequest] = []
        self.spans = Spans()
        self.number = 0
        self.base = (0, 0)
        """The last time of the data's clock, and the instant of that reading."""

    def give(self, new: list[Any], old: list[Any], now_ms: int, *, is_ticked: bool = False) -> None:
        ((item, _),) = self.trigger.items
        for row in self.ordered(new):
            start, end, now = row.pop(item)
            self.number += 1
            insort(self.waiting, RowRequest(end, self.number, start, now, row))
            self.base = (now, now_ms)
            self.advance(now_ms)

    def advance(self, now_ms: int) -> None:
        """The rows whose span has ended."""
        clock = self.base[0] + now_ms - self.base[1]
        while self.waiting and self.waiting[0].end <= clock:
            request = self.waiting.pop(0)
            row = {**request.row, self.trigger.name: self._parts(request)}
            self.statement.out.append(Emission(self.statement.name, now_ms, "rows", [row]))

    def _parts(self, request: RowRequest) -> list[dict[str, str]] | None:
        oldest = request.now - self.trigger.expire_ms
        self.spans.forget(oldest)
        start = max(request.start, oldest)
        free = self.spans.take(start, request.end) if start < request.end else []
        return [{"start_key": str(low), "end_key": str(high)} for low, high in free] or None

    def next_deadline(self) -> int | None:
        return self.base[1] + self.waiting[0].end - self.base[0] if self.waiting else None

    def tick(self, now_ms: int) -> None:
        """There is no output limit: what is due are spans."""
        self.advance(now_ms)

    def flush(self, now_ms: int) -> list[Emission]:
        while (deadline := self.next_deadline()) is not None:
            self.advance(deadline)
        return self.statement.take()

    def snapshot(self) -> dict[str, Any]:
        waiting = [[*request[:4], encode(request.row)] for request in self.waiting]
        own = {"waiting": waiting, "spans": self.spans.taken, "number": self.number, "base": list(self.base)}
        return {**super().snapshot(), "trigger": own}

    def restore(self, snapshot: dict[str, Any]) -> None:
        super().restore(snapshot)
        own = snapshot["trigger"]
        self.waiting = [
            RowRequest(end, number, start, now, decode(row))
            for end, number, start, now, row in own["waiting"]
        ]
        self.spans.taken = [list(span) for span in own["spans"]]
        self.number, self.base = own["number"], (own["base"][0], own["base"][1])

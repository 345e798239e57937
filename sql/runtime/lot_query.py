"""Stream queries: one net lot per activation (stream-queries.md). Aggregates are evaluated once per lot, if it
changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sql.codegen.functions import DATA_ERRORS
from sql.runtime.emission import Emission, Update
from sql.runtime.query import in_order
from sql.runtime.state import EventStore
from sql.runtime.windowed import WindowedQuery
from sql.windows.event import Delta, Event
from sql.windows.lots import net
from sql.windows.operator import Pass


class LotQuery(WindowedQuery):
    """A `from … select …` query."""

    takes_lots = True

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.current: list[Event] = []
        """Items without window: in this activation only."""
        lots = [source.lot for source in self.plan.sources]
        self.keys = [
            [self.functions.key(keys) for keys in (lot.partition_by, lot.unique) if keys] if lot is not None else []
            for lot in lots
        ]
        """What the windows of each source key items by. A lot enters them as a whole, perhaps later, so an item whose
        key cannot be evaluated is sorted out before."""

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Messages from outside are an activation each, however they were batched."""
        return [emission for row in rows for emission in self.push_lot(stream, [row], now_ms)]

    def push_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """One activation: the rows that another query gave out together."""
        self.now_ms = now_ms
        self.counts["events_in"] += len(rows)
        out: list[Emission] = []
        for index, source in enumerate(self.plan.sources):
            if source.stream == stream:
                events = [event for row in rows if (event := self.arrive(row, now_ms)) is not None]
                out += self._activate(index, self._enter(index, events, now_ms), now_ms)
        return out + self.take_errors()

    def _enter(self, index: int, events: list[Event], now_ms: int) -> list[Delta]:
        admitted = []
        for event in events:
            try:
                for key in self.keys[index]:
                    key(event)
                if not isinstance(self.windows[index], Pass):
                    self.budget.admit(self)
                admitted.append(event)
            except DATA_ERRORS as error:
                self.on_error(event, error)
        return self.windows[index].push(Delta(admitted), now_ms) if admitted else []

    def _activate(self, index: int, deltas: list[Delta], at_ms: int) -> list[Emission]:
        lot = net(deltas)
        if isinstance(self.windows[index], Pass):
            lot = Delta(lot.inserted, self.current)
            self.current = list(lot.inserted)
        if not lot.inserted and not lot.removed:
            return []
        joined = lot if self.joined is None else self.joined.change({index: lot})
        update = None if joined is None else self.changes.update(joined)
        return [] if update is None else self._emission(update, at_ms)

    def _emission(self, update: Update, at_ms: int) -> list[Emission]:
        rows = update.old if self.plan.selector == "rstream" else update.new
        if not rows:
            return []
        inserted = in_order(rows, self.plan, self.row_limit, self.spreads)
        if self.spreads is not None and not inserted:
            return []
        self.counts["rows_out"] += len(inserted)
        return [Emission(self.name, at_ms, "rows", inserted)]

    def advance(self, now_ms: int) -> list[Emission]:
        self.now_ms = self.context.now_ms = max(self.now_ms, now_ms)
        out: list[Emission] = []
        for index, window in enumerate(self.windows):
            lot = self.plan.sources[index].lot
            batched = lot is not None and lot.every_period is not None
            # A gate's deadline lies one ms behind its update point, so that the lot holds the arrivals of the point.
            out += self._activate(index, window.advance(now_ms), now_ms - 1 if batched else now_ms)
        return out + self.take_errors()

    def flush(self, now_ms: int) -> list[Emission]:
        out: list[Emission] = []
        while (deadline := self.next_deadline()) is not None:
            out += self.advance(deadline)
        return out

    def beside(self) -> Iterable[Event]:
        yield from super().beside()
        yield from self.current

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "current": [event.seq for event in self.current]}

    def _put_back(self, state: Any, store: EventStore) -> None:
        super()._put_back(state, store)
        self.current = [store.find(seq) for seq in state["current"]]

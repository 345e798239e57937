"""Aggregates that look at more than numbers: collect, median, DISTINCT, own filters, several arguments.

What they are fed with goes to their accumulators with every event, by way of the makers that the operators use. Numbers
for the other aggregates of the rule wait in lists as ever.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from sql.aggregates.base import Accumulator, Removal
from sql.aggregates.wrap import Place
from sql.codegen.fast.arguments import unless_skipped, write_fed
from sql.codegen.fast.batches import BatchQuery
from sql.codegen.fast.data_batches import DataBatchQuery
from sql.codegen.fast.folding import FoldingQuery
from sql.codegen.fast.groups import GroupTable
from sql.codegen.fast.query import FastQuery
from sql.codegen.fast.reader import LoopWriter
from sql.codegen.fast.source import SourceWriter
from sql.plan.bound import AggregateCall
from sql.runtime.groups import SKIP, is_checked, maker_of

PLACE = Place(0, 0)
"""Stands for each event: nothing that is taken here asks when it came, or takes it out again."""


def is_numeric(call: AggregateCall) -> bool:
    """Whether a call looks at numbers alone, of every event."""
    is_plain = not call.distinct and call.filter is None and call.group_by is None
    return call.definition.of_numbers is not None and len(call.args) <= 1 and not call.constants and is_plain


class FedTable(GroupTable):
    """Groups whose accumulators are those of the numbers, then those that are fed."""

    def __init__(self, calls: Sequence[AggregateCall], max_groups: int) -> None:
        numeric = [place for place, call in enumerate(calls) if is_numeric(call)]
        fed = [place for place, call in enumerate(calls) if not is_numeric(call)]
        super().__init__([calls[place] for place in numeric], max_groups)
        self.numeric = len(numeric)
        self.makers = [maker_of(calls[place], Removal.NEVER) for place in fed]
        self.order = [[*numeric, *fed].index(place) for place in range(len(calls))]
        """Where the accumulator of each call stands."""
        self.size = 0
        """How many events are in the groups."""

    def fresh(self) -> list[Accumulator]:
        return super().fresh() + [make() for make in self.makers]

    def feed(self, key: Hashable, row: Any, values: tuple[Any, ...], fed: tuple[Any, ...]) -> None:
        """An event of any kind comes into its group. DataError leaves everything as it was."""
        group = self.groups.get(key)
        if group is None:
            self.make_room(key)
            group = self.make(key, row)
        if self.is_text(values):
            self.settle(key, group)  # so that what waits is known
        accumulators = group.accumulators  # type: ignore[attr-defined]
        values_of_calls = [*(True if place is None else values[place] for place in self.places), *fed]
        for place in self.order:
            if values_of_calls[place] is not SKIP:
                self.check_one(group, place, values_of_calls[place])
        if self.numeric:
            self.take(group, values)  # type: ignore[arg-type]
        for accumulator, value in zip(accumulators[self.numeric :], fed, strict=True):
            if value is not SKIP:
                accumulator.add(value, PLACE)
        self.groups[key] = group
        self.size += 1

    def check_one(self, group: Any, place: int, value: Any) -> None:
        """Raise the DataError of the accumulator at that place if it cannot take the value."""
        group.accumulators[place].check(value)

    def snapshot(self) -> Any:
        return [self.size, super().snapshot(), self.dropped]

    def restore(self, state: Any, make_row: Any) -> None:
        self.size, groups, *dropped = state
        self.dropped = sum(dropped)  # it was not stored once
        super().restore(groups, make_row)

    def results(self, group: list[Any]) -> list[Any]:
        found = super().results(group)
        return [found[place] for place in self.order]

    def results_of_none(self) -> list[Any]:
        found = super().results_of_none()
        return [found[place] for place in self.order]


class Feeding(FoldingQuery):
    """Mixed into a query: its groups are fed."""

    def new_table(self) -> FedTable:
        return FedTable(self.plan.aggregates, self.plan.options.max_groups)

    def write_names(self, writer: SourceWriter) -> None:
        super().write_names(writer)
        writer.line("feed = table.feed")
        self.functions.names.bind(PLACE, "PLACE")

    def write_event(self, loop: LoopWriter, table: GroupTable) -> None:
        assert isinstance(table, FedTable)
        loop.key(self.plan.group_by, "key")
        values = [self.named(loop, node, f"a_{i}") for i, node in enumerate(table.arguments)]
        calls = [call for call in self.plan.aggregates if not is_numeric(call)]
        for i, call in enumerate(calls):
            write_fed(loop, call, f"f_{i}")
        loop.line("group = get(key)")
        tests = [f"({test})" for test in self.number_tests(values, table)]
        values = values or ["1"] * bool(table.numeric)
        with loop.source.block(f"if {' and '.join(['group is not None', *tests])}:"):
            self._write_feed(loop, calls, values)
        with loop.source.block("else:"):
            fed = "".join(f"f_{i}, " for i in range(len(calls)))
            loop.line(f"feed(key, e, ({''.join(f'{value}, ' for value in values)}), ({fed}))")

    def _write_feed(self, loop: LoopWriter, calls: Sequence[AggregateCall], values: list[str]) -> None:
        """All or nothing: what may refuse its value is asked before any other takes its own."""
        are_several = len(self.plan.aggregates) > 1
        loop.line("accumulators = group.accumulators")
        first = len(self.plan.aggregates) - len(calls)
        for i, call in enumerate(calls):
            if are_several and is_checked(call):
                with unless_skipped(loop.source, call, f"f_{i}"):
                    loop.line(f"accumulators[{first + i}].check(f_{i})")
        if values:
            many = ", ".join(values)
            loop.line(f"group.append({many})" if len(values) == 1 else f"group.extend(({many}))")
        for i, call in enumerate(calls):
            with unless_skipped(loop.source, call, f"f_{i}"):
                loop.line(f"accumulators[{first + i}].add(f_{i}, PLACE)")
        loop.line("table.size += 1")


class FedBatchQuery(Feeding, BatchQuery):
    """EPL's batches."""


class FedDataBatchQuery(Feeding, DataBatchQuery):
    """ext_timed_batch."""


FEEDING: dict[type[FastQuery], type[FastQuery]] = {
    BatchQuery: FedBatchQuery, DataBatchQuery: FedDataBatchQuery,
}  # fmt: skip
"""The query whose groups are fed, by the one of the same window whose groups hold numbers."""

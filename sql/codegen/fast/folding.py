"""What queries share that put events into groups and show them later: that part of the loop, and the rows of a look."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from sql.aggregates.state import decode
from sql.codegen.expressions import Code, Names
from sql.codegen.fast.groups import GroupTable
from sql.codegen.fast.query import FastQuery
from sql.codegen.fast.reader import LoopWriter
from sql.codegen.fast.rows import criteria_text, write_row
from sql.codegen.fast.source import SourceWriter
from sql.plan.bound import Bound
from sql.runtime.emission import Emission, Out
from sql.runtime.query import in_order, row_limit


class FoldingQuery(FastQuery):
    """Base of windows of eKuiper and batches of EPL."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        plan = self.plan
        self.row_limit = row_limit(plan, self.functions)
        self.is_plain_output = not plan.order_by and not plan.distinct and self.row_limit == (None, 0)

    def new_table(self) -> GroupTable:
        """The table of an empty window."""
        return GroupTable(self.plan.aggregates, self.plan.options.max_groups)

    # --- code ---------------------------------------------------------------------------------------------------------

    def write_event(self, loop: LoopWriter, table: GroupTable) -> None:
        """An event comes into its group; the loop has `table`, its `groups`, their `get`, and `admit`."""
        loop.key(self.plan.group_by, "key")
        values = [self.named(loop, node, f"a_{i}") for i, node in enumerate(table.arguments)] or ["1"]
        self._write_append(loop, table, values)

    def write_names(self, writer: SourceWriter) -> None:
        """Before the loop: what it uses of `table`."""
        writer.line("groups = table.groups")
        writer.line("get = groups.get")
        writer.line("admit = table.admit")

    @staticmethod
    def named(loop: LoopWriter, node: Bound, name: str) -> str:
        """The name of a value: a literal gets one too."""
        text = loop.atom(node, name)
        if not text.isidentifier():
            loop.line(f"{name} = {text}")
            return name
        return text

    @staticmethod
    def number_tests(values: list[str], table: GroupTable) -> list[str]:
        """Conditions under which the values may wait: numbers, or anything but NULL where they are only counted."""
        tests = []
        for value, anything in zip(values, table.takes_any, strict=False):
            is_number = f"{value}.__class__ is float or {value}.__class__ is int"
            tests.append(f"{value} is not None" if anything else f"({is_number})" if len(values) > 1 else is_number)
        return tests

    def _write_append(self, loop: LoopWriter, table: GroupTable, values: list[str]) -> None:
        tests = self.number_tests(values, table)
        many = ", ".join(values)
        append = f"group.append({many})" if len(values) == 1 else f"group.extend(({many}))"
        tuple_text = f"({many},)"
        if not tests:
            self._write_found(loop, append, values)
            return
        with loop.source.block(f"if {' and '.join(tests)}:"):
            self._write_found(loop, append, values)
        with loop.source.block("else:"):
            loop.line(f"admit(key, e, {tuple_text})")

    def _write_found(self, loop: LoopWriter, append: str, values: list[str]) -> None:
        many = ", ".join(values)
        loop.line("group = get(key)")
        with loop.source.block("if group is not None:"):
            loop.line(append)
        with loop.source.block("elif len(groups) < table.spare:"):
            loop.line(f"groups[key] = [e, {many}]")
        with loop.source.block("else:"):
            loop.line(f"table.open(key, e, ({many},))")

    def write_look(self, writer: SourceWriter, names: Names, slots: dict[Any, Code], name: str = "look") -> None:
        """`look(looks, w_start, w_end, w_trigger, bad)`: rows of pairs of an event and the values of its aggregates."""
        plan = self.plan
        slots = dict(slots)
        slots |= {("aggregate", i): Code(f"v_{i}", True, True) for i in range(len(plan.aggregates))}
        loop = self.loop_writer(writer, slots)
        with writer.block(f"def {name}(looks, w_start, w_end, w_trigger, bad):"):
            writer.line("rows = []")
            values = "".join(f"v_{i}, " for i in range(len(plan.aggregates)))
            with writer.block(f"for e, {f'({values})' if values else '_'} in looks:"):
                with writer.block("try:"):
                    loop.skip_unless(plan.having)
                    order = criteria_text(loop, plan.order_by, names)
                    out = f"{names.bind(Out, 'Out')}(" if plan.order_by else ""
                    write_row(loop, plan, names, f"rows.append({out}", f", None, {order}))" if plan.order_by else ")")
                with writer.block("except DATA_ERRORS as error:"):
                    writer.line("bad.append((e, error))")
            writer.line("return rows")

    # --- events -------------------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        self.now_ms = self.context.now_ms = now_ms
        self.counts["events_in"] += len(rows)
        self.enter(rows, None)
        return self.take()

    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        self.counts["events_in"] += len(rows)
        self.enter(rows, times)
        self.now_ms = max(self.now_ms, times[-1])
        return self.take()

    @abstractmethod
    def enter(self, rows: Sequence[Any], times: Sequence[int] | None) -> None:
        """Events, all at `now_ms` or with their times."""

    # --- looking ------------------------------------------------------------------------------------------------------

    def tell_errors(self) -> None:
        """After the rows of one instant: in event time the errors of looks stand behind them."""
        if self.is_timed:
            self.out += self.errors
            self.errors.clear()

    def in_order(self, rows: list[Any]) -> list[Any]:
        """What `look` gave, after ORDER BY, DISTINCT and LIMIT."""
        if self.is_plain_output:
            return rows
        return in_order(rows if self.plan.order_by else [Out(row) for row in rows], self.plan, self.row_limit)

    def row_of(self, packed: Any) -> Any:
        """A row of the query's shape from a snapshot."""
        return self.make_row({name: decode(value) for name, value in packed.items()})

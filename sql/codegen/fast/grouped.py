"""Windows whose events are gathered into groups and looked at when the window closes: the two generated functions.

gather(rows)            the loop: filter, key, arguments; a plain number is appended to its group's list
look(looks, …)          the rows of the groups: HAVING, ORDER BY keys and SELECT over the aggregates' values
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from sql.aggregates.state import decode
from sql.codegen.expressions import Code, Names
from sql.codegen.fast.groups import PENDING_MAX, PENDING_PER_GROUP, GroupTable
from sql.codegen.fast.query import FastQuery
from sql.codegen.fast.reader import WINDOW_SLOTS, LoopWriter
from sql.codegen.fast.rows import criteria_text, write_row
from sql.codegen.fast.source import SourceWriter
from sql.plan.bound import Bound
from sql.runtime.emission import Emission, Out
from sql.runtime.query import in_order, row_limit
from sql.types import key_of


class GroupedQuery(FastQuery):
    """Base of tumbling, session, hopping and count windows."""

    steps_itself = True
    reads_times = False
    """Whether the loop needs each event's time: it closes windows itself."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        plan = self.plan
        assert plan.window is not None
        self.window = plan.window
        self.row_limit = row_limit(plan, self.functions)
        self.is_plain_output = not plan.order_by and not plan.distinct and self.row_limit == (None, 0)
        self.table = self.new_table()
        self.since_settled = 0
        self.counts["windows_empty_skipped"] = 0

    def new_table(self) -> GroupTable:
        """The table of an empty window."""
        return GroupTable(self.plan.aggregates, self.plan.options.max_groups)

    # --- code ---------------------------------------------------------------------------------------------------------

    def _write(self, writer: SourceWriter, names: Names) -> None:
        names.bind(key_of, "key_of")
        self._write_gather(writer)
        writer.line("")
        self._write_look(writer, names)

    def _write_gather(self, writer: SourceWriter) -> None:
        assert self.plan.window is not None
        loop = self.loop_writer(writer, {})
        table = GroupTable(self.plan.aggregates, 0)
        with writer.block(f"def gather(rows{', times' if self.reads_times else ''}):"):
            self.write_start(writer)
            with writer.block("for e, at in zip(rows, times):" if self.reads_times else "for e in rows:"):
                self.write_before(writer)
                with writer.block("try:"):
                    loop.skip_unless(self.plan.window.filter)
                    if self.plan.where is None or not self.reads_times:
                        loop.skip_unless(self.plan.where)
                        self._write_event(loop, table)
                    else:
                        condition = loop.expressions.true(self.plan.where)
                        loop.reader.load(writer)
                        with writer.block(f"if {condition}:", self.plan.where.span):
                            self._write_event(loop, table)
                    self.write_after(writer)
                with writer.block("except DATA_ERRORS as error:"):
                    writer.line("fail(e, error)")
            self.write_end(writer)

    def write_start(self, writer: SourceWriter) -> None:
        """Before the loop."""
        writer.line("table = q.table")
        writer.line("groups = table.groups")
        writer.line("get = groups.get")
        writer.line("admit = table.admit")

    def write_before(self, writer: SourceWriter) -> None:
        """Before an event is looked at."""

    def write_after(self, writer: SourceWriter) -> None:
        """After an event has come into the window."""

    def write_end(self, writer: SourceWriter) -> None:
        """After the loop."""

    def _write_event(self, loop: LoopWriter, table: GroupTable) -> None:
        self._write_key(loop)
        values = [self._named(loop, node, f"a_{i}") for i, node in enumerate(table.arguments)] or ["1"]
        self._write_append(loop, table, values)

    def _write_key(self, loop: LoopWriter) -> None:
        parts = []
        for i, node in enumerate(self.plan.group_by):
            name = loop.atom(node, f"g_{i}", self.plan.group_by[0].span)
            parts.append(f"{name} if {name}.__class__ is str else key_of({name})")
        if len(parts) == 1:
            loop.line(f"key = {parts[0]}")
        else:
            key = f"({', '.join(f'({part})' for part in parts)})"
            loop.line(f"key = {key}")

    @staticmethod
    def _named(loop: LoopWriter, node: Bound, name: str) -> str:
        """The name of a value: a literal gets one too."""
        text = loop.atom(node, name)
        if not text.isidentifier():
            loop.line(f"{name} = {text}")
            return name
        return text

    def _write_append(self, loop: LoopWriter, table: GroupTable, values: list[str]) -> None:
        tests = []
        for value, anything in zip(values, table.takes_any, strict=False):
            is_number = f"{value}.__class__ is float or {value}.__class__ is int"
            tests.append(f"{value} is not None" if anything else f"({is_number})" if len(values) > 1 else is_number)
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

    def _write_look(self, writer: SourceWriter, names: Names) -> None:
        plan = self.plan
        slots: dict[Any, Code] = dict(WINDOW_SLOTS)
        slots |= {("aggregate", i): Code(f"v_{i}", True, True) for i in range(len(plan.aggregates))}
        loop = self.loop_writer(writer, slots)
        with writer.block("def look(looks, w_start, w_end, w_trigger, bad):"):
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
        self.now_ms = max(self.now_ms, times[0])
        self.enter(rows, times)
        self.now_ms = max(self.now_ms, times[-1])
        return self.take()

    @abstractmethod
    def enter(self, rows: Sequence[Any], times: Sequence[int] | None) -> None:
        """Events, all at `now_ms` or with their times."""

    def gather(self, rows: Sequence[Any], times: Iterable[int] | None = None) -> None:
        """Put events into the groups of the open window."""
        if times is None:
            self.code["gather"](rows)
        else:
            self.code["gather"](rows, times)
        self.since_settled += len(rows)
        if self.since_settled > PENDING_MAX + PENDING_PER_GROUP * len(self.table.groups):
            self.since_settled = 0
            self.table.settle_all()

    # --- looking ------------------------------------------------------------------------------------------------------

    def emit(self, looks: Iterable[tuple[Any, list[Any]]], start_ms: int, end_ms: int) -> None:
        """The rows of a window [start, end): `looks` are each group's first row and aggregates."""
        self.context.now_ms = end_ms
        bad: list[tuple[Any, BaseException]] = []
        rows = self.code["look"](looks, start_ms, end_ms, end_ms, bad)
        if not self.is_plain_output:
            if not self.plan.order_by:
                rows = [Out(row) for row in rows]
            rows = in_order(rows, self.plan, self.row_limit)
        if rows:
            self.counts["rows_out"] += len(rows)
            self.out.append(Emission(self.name, end_ms, "rows", rows, [], None))
        for row, error in bad:
            self.counts["errors"] += 1
            self._failures.append(self.failure(row, error, self.now_ms))

    # --- state --------------------------------------------------------------------------------------------------------

    def retained(self) -> int:
        """Groups and values that wait; the events themselves are not kept."""
        return sum(map(len, self.table.groups.values()))

    def row_of(self, packed: Any) -> Any:
        """A row of the query's shape from a snapshot."""
        return self.make_row({name: decode(value) for name, value in packed.items()})

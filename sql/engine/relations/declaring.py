"""The statements that declare relations, and how these are made: `create window`, `create table`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from sql.aggregates.base import Removal
from sql.aggregates.plain_values import decode, encode
from sql.algebra.accumulators import maker_of
from sql.algebra.derived.statistics import NoOwner
from sql.algebra.event import Delta
from sql.algebra.event_store import EventStore, pack_row, unpack_row
from sql.algebra.row_blocks import RowBlocks, new_holder
from sql.algebra.table.named_window import NamedWindow
from sql.algebra.table.row import TableRow
from sql.algebra.table.table import Table
from sql.algebra.window_builder import WindowBuilder
from sql.algebra.windows.catalog import WINDOWS
from sql.catalog.streams import Variable
from sql.codegen.functions import DATA_ERRORS
from sql.compiler.shared_code import Environment, InstanceData, SharedCode
from sql.emission import Emission, Row
from sql.engine.relations.triggered import PostingStatement
from sql.errors import CorruptState, DataError
from sql.plan.bound import AggregateCall
from sql.plan.declared import TableDeclaration, VariableDeclaration, WindowDeclaration
from sql.plan.logical import Plan
from sql.plan.walk import read_at_start
from sql.rows import as_dict, deletes

VERSION = 1

BEYOND_STATEMENTS = 1 << 40
"""A number behind those that the statements of earlier versions gave the events of a table."""

R = TypeVar("R", NamedWindow, Table)


class DeclaringStatement(PostingStatement, Generic[R]):
    """The statement of a relation: it holds the rows, and does what is due in them."""

    relation: R

    def read(self, now_ms: int) -> list[Row]:
        return [event.row for event in self.relation.content()]

    def counters(self) -> dict[str, int]:
        return {**self.counts, "rows": len(self.relation), **self.relation.bounded.counts()}

    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"version": VERSION, "signature": list(self.relation.columns)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put a snapshot back. Raises CorruptState where its rows do not fit the declaration."""
        if snapshot["signature"] != list(self.relation.columns):
            kind = "named window" if self.relation.kind == "window" else "table"
            raise CorruptState(f"the snapshot is of another {kind} than '{self.relation.name}' is now")
        super().restore(snapshot)


class WindowCode(SharedCode):
    """The functions of the data windows of a named window."""

    def __init__(self, plan: Plan, env: Environment) -> None:
        super().__init__(env, plan.options)
        self.plan = plan
        assert isinstance(plan.acts, WindowDeclaration)
        self.declaration = plan.acts
        self.batches = any(WINDOWS[item.name].role == "batch" for item in self.declaration.source.windows)
        functions = self.function_set(text=plan.text, shape="kept")
        self.builder = WindowBuilder(self.declaration.source, plan.options, functions)
        self.read_at_start = read_at_start(plan)

    def failure(self, error: BaseException) -> DataError:
        """An error of the windows, with its place in the statement that declares them."""
        return DataError(f"named window '{self.declaration.name}': {self.builder.functions.failure(error)}")


class WindowStatement(DeclaringStatement[NamedWindow]):
    """`create window`: the timers of the named window, and the post of its insert and remove stream."""

    def __init__(self, code: WindowCode, env: Environment) -> None:
        super().__init__(env.name, code.plan, env.now_ms)
        self.instance_data = InstanceData(code, env)
        self.instance_data.install(env.now_ms)
        self.began = env.catalog.values_of(code.read_at_start)
        operator = code.builder.build(env.now_ms, NoOwner(), lambda: env.now_ms)
        self.relation = NamedWindow(code.declaration, operator, batches=code.batches)
        self.relation.check = code.builder.parameters.check
        self.relation.failure = code.failure
        if env.partition is not None:
            self.relation.begin = self.instance_data.install
        self.relation.publish = env.catalog.loop.publish
        self.relation.entered = env.catalog.loop.entered
        self.late_ms: int | None = None
        """When a variable has changed that may change the window at the next advance of time."""

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        self.now_ms, delta = now_ms, changes[self.relation.name]
        self.post([event.row for event in delta.inserted], [event.row for event in delta.removed])
        return self.take()

    def advance(self, now_ms: int) -> list[Emission]:
        self.now_ms = max(self.now_ms, now_ms)
        if self.late_ms is not None:
            self.late_ms = None
            self.relation.variable_changed(self.now_ms)
        self.relation.advance(now_ms)
        return []

    def next_deadline(self) -> int | None:
        return self.relation.next_deadline() if self.late_ms is None else self.late_ms

    def variable_changed(self, name: str, now_ms: int) -> None:
        self.now_ms = max(self.now_ms, now_ms)
        if self.relation.operator.depends_on(name):
            self.late_ms = self.now_ms

    def snapshot(self) -> dict[str, Any]:
        window, store = self.relation, EventStore()
        store.add(window.operator.held())
        store.add(window.rows)
        return {
            **super().snapshot(),
            "late": self.late_ms,
            "began": self.began,
            "seq": window.seq,
            "bounded": window.bounded.snapshot(),
            "events": store.in_blocks(window.holder),
            "operator": window.operator.snapshot(),
            "rows": [event.seq for event in window.rows],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        window, store = self.relation, EventStore()
        super().restore(snapshot)
        store.unpack(snapshot["events"], lambda row: row, window.made)
        self.late_ms = snapshot.get("late")
        window.seq = snapshot["seq"]
        window.holder = new_holder()
        window.operator.restore(snapshot["operator"], store.find)
        for seq in snapshot["rows"]:
            event = store.find(seq)
            window.rows[event] = None
            window.indexes.add(event)
        window.bounded.restore(snapshot["bounded"], window.rows)


class TableCode:
    """The plan and the makers of aggregates that all tables of one declaration share."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        assert isinstance(plan.acts, TableDeclaration)
        self.declaration = plan.acts
        columns = self.declaration.aggregates.items()
        calls = {name: AggregateCall(of.definition, (), of.constants, of.distinct) for name, of in columns}
        self.makers = {name: maker_of(call, Removal.ANY) for name, call in calls.items()}


class TableStatement(DeclaringStatement[Table]):
    """`create table`: it posts nothing. One with a source keeps the newest row of each key
    that comes from there."""

    def __init__(self, code: TableCode, env: Environment) -> None:
        super().__init__(env.name, code.plan, env.now_ms)
        self.relation = Table(code.declaration, code.makers)

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Rows of the table's source: each takes the place of the one with its key, or removes it."""
        self.now_ms = now_ms
        for row in rows:
            self.counts["events_in"] += 1
            try:
                self._put(as_dict(row), now_ms)
            except DATA_ERRORS as error:
                self.report(row, error)
        return self.take()

    def _put(self, row: Row, now_ms: int) -> None:
        """A row comes, in the place of the one with its key, or that one goes.
        Raises DataError where a bound or an index refuses it."""
        there = self.relation.rows.by_key.get(self.relation.rows.key_of_row(row))
        if deletes(row):
            self.relation.change((), () if there is None else (there,), now_ms)
        elif there is None:
            self.relation.insert(row, now_ms)
        else:
            self.relation.rewrite(there, row, now_ms)

    def advance(self, now_ms: int) -> list[Emission]:
        self.relation.advance(now_ms)
        return []

    def next_deadline(self) -> int | None:
        return self.relation.bounded.next_deadline()

    def snapshot(self) -> dict[str, Any]:
        table, store, kept = self.relation, EventStore(), self.relation.rows
        rows = list(kept.by_key.values())
        for row in rows if kept.makers else ():
            for accumulator in row.accumulators:
                store.add(accumulator.held())  # type: ignore[arg-type]
        return {
            **super().snapshot(),
            "seq": kept.seq,
            "counted": kept.events,
            "bounded": table.bounded.snapshot(),
            "events": store.pack(),
            "rows": RowBlocks(
                kept.holder, rows, [row.seq for row in rows], [row.stamp for row in rows], pack_table_row
            ),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        table, store = self.relation, EventStore()
        super().restore(snapshot)
        store.unpack(snapshot["events"], lambda row: row)
        table.rows.clear()
        for seq, time_ms, packed, parts in snapshot["rows"]:
            row = table.rows.put_back(unpack_row(packed), time_ms, seq)
            for accumulator, part in zip(row.accumulators, parts, strict=True):
                accumulator.restore(part, store.find)
        table.rows.seq = snapshot["seq"]
        # Earlier versions let statements number their events.
        table.rows.events = max([snapshot.get("counted", BEYOND_STATEMENTS), *store.events])
        table.bounded.restore(snapshot["bounded"], table.rows.by_key.values())


def pack_table_row(row: TableRow) -> list[Any]:
    """A row of a table: number, instant, columns, and the states of its aggregates."""
    if row.stale:
        row.refresh()  # so that what is packed depends on what was written alone
    parts = [accumulator.snapshot() for accumulator in row.accumulators]
    return [row.seq, row.time_ms, pack_row(row.row), parts]


class VariableStatement(PostingStatement):
    """`context C create variable`: the variable of one partition, which starts with its first value."""

    def __init__(self, plan: Plan, env: Environment) -> None:
        super().__init__(env.name, plan, env.now_ms)
        declared = plan.acts
        assert isinstance(declared, VariableDeclaration)
        self.variable = Variable(
            declared.name, declared.type, declared.value, declared.constant, declared.element
        )

    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"value": encode(self.variable.value)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        super().restore(snapshot)
        self.variable.value = self.variable.arrived = decode(snapshot["value"])

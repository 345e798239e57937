"""Start the query of a plan: a rule without a window, a statement, or a sampled rule;
in event time behind a stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sql.catalog.streams import Catalog
from sql.compiler.program import Program
from sql.compiler.rowwise_text import is_rowwise
from sql.compiler.statement_text import takes_times
from sql.engine.asking.asked_table import AskedStatement
from sql.engine.asking.asking_query import Asking
from sql.engine.event_time.event_time_query import EventTime
from sql.engine.query import Running
from sql.engine.relations.declaring import TableCode, VariableCode, WindowCode
from sql.engine.relations.on_change import ActingCode, SplitCode
from sql.engine.relations.on_select import select_code
from sql.engine.relations.on_set import SetCode
from sql.engine.running.once import OnceCode
from sql.engine.running.rowwise_query import Rowwise
from sql.engine.running.running_statement import RunningStatement
from sql.engine.running.stream_query import StreamQuery
from sql.engine.running.timed import TimedStatement
from sql.engine.sampled.sampled_query import SampledCode, SampledQuery
from sql.plan.declared import AskedDeclaration, TableDeclaration, VariableDeclaration, WindowDeclaration
from sql.plan.logical import ChoicePlan, Plan, SetPlan, SplitPlan, TriggerPlan
from sql.rows import Shape


def start(
    name: str,
    plan: Plan,
    catalog: Catalog,
    now_ms: int,
    *,
    shape: Shape = "dict",
    make_row: Callable[[dict[str, Any]], Any] | None = None,
    by_instants: bool = False,
) -> Running:
    """A running query for a plan; `by_instants`: sampled rules take events with an instant each."""
    if plan.acts is not None:
        if isinstance(plan.acts, AskedDeclaration):
            return AskedStatement(name, plan, catalog)
        acting = code_of(name, plan, catalog, now_ms).instance(name, catalog, now_ms)
        return Asking(name, acting, catalog, now_ms) if plan.asks else acting
    if not plan.sources:
        return OnceCode(name, plan, catalog, now_ms).instance(name, catalog, now_ms)
    query: Rowwise | RunningStatement | SampledQuery
    if plan.mode == "sample":
        code = SampledCode(
            name, plan, catalog, now_ms, shape=shape, make_row=make_row, by_instants=by_instants
        )
        query = code.instance(name, catalog, now_ms)
    elif is_rowwise(plan):
        query = Rowwise(name, plan, catalog, now_ms, shape, make_row)
    else:
        query = instance_of(name, program_of(name, plan, catalog, now_ms, shape), now_ms, make_row)
    behind = query if plan.timestamp is None else EventTime(query, now_ms)
    return Asking(name, behind, catalog, now_ms) if plan.asks else behind


def program_of(
    name: str,
    plan: Plan,
    catalog: Catalog,
    now_ms: int,
    shape: Shape = "dict",
    partition: Sequence[Any] | None = None,
) -> Program:
    """The program that all instances of a statement or stream query share; `partition`
    is that of the first."""
    return Program(plan, catalog, shape, now_ms, name, partition or ())


def instance_of(
    name: str,
    program: Program,
    now_ms: int,
    make_row: Callable[[dict[str, Any]], Any] | None = None,
    partition: Sequence[Any] | None = None,
    catalog: Catalog | None = None,
) -> RunningStatement:
    """A running instance of a compiled plan."""
    plan = program.plan
    kind = StreamQuery if plan.mode == "lots" else TimedStatement if takes_times(plan) else RunningStatement
    return kind(name, program, now_ms, make_row, partition, catalog)


class CompiledStatement(Protocol):
    """A compiled statement, which all its instances share."""

    def instance(
        self, name: str, catalog: Catalog, now_ms: int, partition: Sequence[Any] | None = None
    ) -> Running: ...


class QueryCode:
    """The program of a statement or a stream query in a context."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def instance(
        self, name: str, catalog: Catalog, now_ms: int, partition: Sequence[Any] | None = None
    ) -> RunningStatement:
        """The statement of one partition."""
        return instance_of(name, self.program, now_ms, partition=partition, catalog=catalog)


def code_of(
    name: str, plan: Plan, catalog: Catalog, now_ms: int, partition: Sequence[Any] | None = None
) -> CompiledStatement:
    """The code of a statement that is no query, or of any in a context; `partition` is that of the first
    instance."""
    if plan.acts is not None:
        return ACTING[type(plan.acts)](name, plan, catalog, now_ms, partition)
    if not plan.sources:
        return OnceCode(name, plan, catalog, now_ms, partition)
    if plan.mode == "sample":
        return SampledCode(name, plan, catalog, now_ms, partition)
    return QueryCode(program_of(name, plan, catalog, now_ms, partition=partition))


Make = Callable[[str, Plan, Catalog, int, "Sequence[Any] | None"], CompiledStatement]

ACTING: dict[type, Make] = {
    TriggerPlan: ActingCode,
    SplitPlan: SplitCode,
    ChoicePlan: select_code,
    SetPlan: SetCode,
    WindowDeclaration: WindowCode,
    TableDeclaration: TableCode,
    VariableDeclaration: VariableCode,
}
"""The code of a statement that is no query, by its action."""

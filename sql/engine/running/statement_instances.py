"""Programs and running instances of statements and stream queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sql.catalog.streams import Catalog
from sql.compiler.program import Program
from sql.compiler.statement_text import takes_times
from sql.engine.running.running_statement import RunningStatement
from sql.engine.running.stream_query import StreamQuery
from sql.engine.running.timed import TimedStatement


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


class QueryCode:
    """The program of a statement or a stream query in a context."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def instance(
        self, name: str, catalog: Catalog, now_ms: int, partition: Sequence[Any] | None = None
    ) -> RunningStatement:
        """The statement of one partition."""
        return instance_of(name, self.program, now_ms, partition=partition, catalog=catalog)

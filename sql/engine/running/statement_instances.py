"""Running instances of statements and stream queries."""

from __future__ import annotations

from sql.compiler.program import Program
from sql.compiler.shared_code import Environment
from sql.compiler.statement_text import takes_times
from sql.engine.running.running_statement import RunningStatement
from sql.engine.running.stream_query import StreamQuery
from sql.engine.running.timed import TimedStatement


def instance_of(program: Program, env: Environment) -> RunningStatement:
    """A running instance of a compiled plan."""
    plan = program.plan
    kind = StreamQuery if plan.mode == "lots" else TimedStatement if takes_times(plan) else RunningStatement
    return kind(program, env)

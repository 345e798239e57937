"""Start the query of a plan: a rule without a window, a statement, or a sampled rule;
in event time behind a stage.

Statements, patterns, contexts and stores are imported for the first plan that has one: most gateways run few
kinds of rules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sql.compiler.rowwise_text import is_rowwise
from sql.compiler.shared_code import Environment
from sql.engine.event_time.event_time_query import EventTime
from sql.engine.query import MakeInstance, Running
from sql.engine.rowwise_query import Rowwise
from sql.engine.sampled.sampled_query import SampledQuery
from sql.engine.sampled.sampled_text import SampledText
from sql.plan.declared import AskedDeclaration
from sql.plan.logical import Plan


def start(plan: Plan, env: Environment, *, by_instants: bool = False) -> Running:
    """A running query for a plan; `by_instants`: sampled rules take events with an instant each."""
    return starter(plan, by_instants=by_instants)(env)


def starter(plan: Plan, *, by_instants: bool = False) -> MakeInstance:
    """The function that starts the query of a plan. It imports nothing more: a thread of its own can call
    `starter` before the loop starts the query."""
    if isinstance(plan.acts, AskedDeclaration):
        from sql.engine.asking.asked_table import AskedStatement

        return partial(AskedStatement, plan)
    query = _on_dicts(plan) if plan.acts is not None or not plan.sources else _query(plan, by_instants)
    if not plan.asks:
        return query
    from sql.engine.asking.asking_query import Asking

    return lambda env: Asking(query(env), env)


def _on_dicts(plan: Plan) -> MakeInstance:
    """Starts a query whose rows are dicts, whatever those of the environment are."""
    make = compiler(plan)

    def started(env: Environment) -> Running:
        env = Environment(env.name, env.catalog, env.now_ms)
        return make(env)(env)

    return started


def _query(plan: Plan, by_instants: bool) -> MakeInstance:
    """Starts the query of a plan that reads streams; in event time behind a stage."""
    query = _untimed(plan, by_instants)
    return query if plan.timestamp is None else lambda env: EventTime(query(env), env)


def _untimed(plan: Plan, by_instants: bool) -> MakeInstance:
    if plan.mode == "sample":
        return lambda env: SampledQuery(SampledText(plan, env, by_instants=by_instants), env)
    if is_rowwise(plan):
        return partial(Rowwise, plan)
    make = compiler(plan)
    return lambda env: make(env)(env)


def compiler(plan: Plan) -> Callable[[Environment], MakeInstance]:
    """The function that compiles a plan, given the environment of the first instance: each partition of a
    context has one. It is imported for the first plan of its kind."""
    if plan.acts is not None:
        from sql.engine.relations.acting_code import ACTING

        return partial(ACTING[type(plan.acts)], plan)
    if not plan.sources:
        from sql.engine.statement.once import Once, OnceCode

        return lambda env: partial(Once, OnceCode(plan, env))
    if plan.mode == "sample":
        return lambda env: partial(SampledQuery, SampledText(plan, env))
    from sql.compiler.program import Program
    from sql.engine.statement.statement_instances import instance_of

    return lambda env: partial(instance_of, Program(plan, env))

"""From a plan to a running query.

    compiler   the text of a plan, made once: the instances of a statement in a context share it
    starter    a rule's only instance; in event time behind a stage, and behind its joins with stores

What runs a plan is imported for the first plan of its kind: most gateways run few kinds of rules.
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
    if plan.acts is not None or not plan.sources:
        query = _on_dicts(plan)
    else:
        query = _query(plan, by_instants)
        query = query if plan.timestamp is None else _behind(EventTime, query)
    if not plan.asks:
        return query
    from sql.engine.asking.asking_query import Asking

    return _behind(Asking, query)


def _behind(stage: Callable[[Running, Environment], Running], query: MakeInstance) -> MakeInstance:
    return lambda env: stage(query(env), env)


def _query(plan: Plan, by_instants: bool) -> MakeInstance:
    """Starts the query of a plan that reads streams."""
    if is_rowwise(plan):
        return partial(Rowwise, plan)
    make = compiler(plan, by_instants=by_instants)
    return lambda env: make(env)(env)


def _on_dicts(plan: Plan) -> MakeInstance:
    """Starts a query whose rows are dicts, whatever those of the environment are."""
    make = compiler(plan)

    def started(env: Environment) -> Running:
        env = Environment(env.name, env.catalog, env.now_ms)
        return make(env)(env)

    return started


def compiler(plan: Plan, *, by_instants: bool = False) -> Callable[[Environment], MakeInstance]:
    """The function that compiles a plan, given the environment of the first instance, and gives what makes
    instances."""
    if isinstance(plan.acts, AskedDeclaration):
        from sql.engine.asking.asked_table import AskedStatement

        return lambda env: partial(AskedStatement, plan)
    if plan.acts is not None:
        from sql.engine.relations.acting_code import ACTING

        return partial(ACTING[type(plan.acts)], plan)
    if not plan.sources:
        from sql.engine.statement.once import Once, OnceCode

        return lambda env: partial(Once, OnceCode(plan, env))
    if plan.mode == "sample":
        return lambda env: partial(SampledQuery, SampledText(plan, env, by_instants=by_instants))
    from sql.compiler.program import Program
    from sql.engine.statement.statement_instances import instance_of

    return lambda env: partial(instance_of, Program(plan, env))

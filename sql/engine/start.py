"""Start the query of a plan: a rule without a window, a statement, or a sampled rule;
in event time behind a stage.

Statements, patterns, contexts and stores are imported for the first plan that has one: most gateways run few
kinds of rules.
"""

from __future__ import annotations

from functools import partial

from sql.compiler.rowwise_text import is_rowwise
from sql.compiler.shared_code import Environment
from sql.engine.event_time.event_time_query import EventTime
from sql.engine.query import MakeInstance, Running
from sql.engine.running.rowwise_query import Rowwise
from sql.engine.sampled.sampled_query import SampledQuery
from sql.engine.sampled.sampled_text import SampledText
from sql.plan.declared import AskedDeclaration
from sql.plan.logical import Plan


def start(plan: Plan, env: Environment, *, by_instants: bool = False) -> Running:
    """A running query for a plan; `by_instants`: sampled rules take events with an instant each."""
    if isinstance(plan.acts, AskedDeclaration):
        from sql.engine.asking.asked_table import AskedStatement

        return AskedStatement(plan, env)
    query: Running
    if plan.acts is not None or not plan.sources:
        env = Environment(env.name, env.catalog, env.now_ms)  # whose rows are dicts
        query = compiled(plan, env)(env)
    else:
        query = _query(plan, env, by_instants=by_instants)
    if not plan.asks:
        return query
    from sql.engine.asking.asking_query import Asking

    return Asking(query, env)


def _query(plan: Plan, env: Environment, *, by_instants: bool) -> Running:
    """The query of a plan that reads streams."""
    query: Running
    if plan.mode == "sample":
        query = SampledQuery(SampledText(plan, env, by_instants=by_instants), env)
    elif is_rowwise(plan):
        query = Rowwise(plan, env)
    else:
        query = compiled(plan, env)(env)
    return query if plan.timestamp is None else EventTime(query, env)


def compiled(plan: Plan, env: Environment) -> MakeInstance:
    """The maker of instances of a statement, as each partition of a context has one; `env` is that of the
    first."""
    if plan.acts is not None:
        from sql.engine.relations.acting_code import ACTING

        return ACTING[type(plan.acts)](plan, env)
    if not plan.sources:
        from sql.engine.running.once import Once, OnceCode

        return partial(Once, OnceCode(plan, env))
    if plan.mode == "sample":
        return partial(SampledQuery, SampledText(plan, env))
    from sql.compiler.program import Program
    from sql.engine.running.statement_instances import instance_of

    return partial(instance_of, Program(plan, env))

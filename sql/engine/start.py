"""From a plan to a running query.

    start      a rule's only instance; in event time behind a stage, and behind its joins with stores
    compiler   the text of a plan, made once: the instances of a statement in a context share it

What runs a plan is imported for the first plan of its kind: most gateways run few kinds of rules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sql.compiler.rowwise_text import is_rowwise
from sql.compiler.shared_code import Environment
from sql.engine.event_time.event_time_query import EventTime
from sql.engine.query import MakeInstance, Running
from sql.engine.rowwise_query import Rowwise
from sql.engine.sampled.sampled_code import SampledCode
from sql.engine.sampled.sampled_query import SampledQuery
from sql.plan.declared import LookupDeclaration
from sql.plan.logical import Plan

if TYPE_CHECKING:
    from sql.engine.lookups.lookup_query import LookupQuery


def load(plan: Plan) -> None:
    """Import what `start` needs for a plan."""
    if plan.lookups:
        _asking()
    if not (_reads_events(plan) and is_rowwise(plan)):
        compiler(plan)


def start(plan: Plan, env: Environment, *, by_instants: bool = False) -> Running:
    """A running query for a plan; `by_instants`: sampled rules take events with an instant each."""
    reads_events = _reads_events(plan)
    if not reads_events:
        env = Environment(env.name, env.catalog, env.now_ms)  # without a shape: its rows are dicts
    query: Running
    if reads_events and is_rowwise(plan):
        query = Rowwise(plan, env)
    else:
        query = compiler(plan, by_instants=by_instants)(env)(env)
    if reads_events and plan.timestamp is not None:
        query = EventTime(query, env)
    return _asking()(query, env) if plan.lookups else query


def _asking() -> type[LookupQuery]:
    """The stage of a rule behind its joins with stores."""
    from sql.engine.lookups.lookup_query import LookupQuery

    return LookupQuery


def _reads_events(plan: Plan) -> bool:
    """True for a query of streams, False for what acts on relations and for a statement without FROM."""
    return plan.acts is None and bool(plan.sources)


def compiler(plan: Plan, *, by_instants: bool = False) -> Callable[[Environment], MakeInstance]:
    """The function that compiles a plan, given the environment of the first instance, and gives what makes
    instances."""
    if isinstance(plan.acts, LookupDeclaration):
        from sql.engine.lookups.lookup_table import LookupStatement

        return lambda env: partial(LookupStatement, plan)
    if plan.acts is not None:
        from sql.engine.relations.acting_code import ACTING

        return partial(ACTING[type(plan.acts)], plan)
    if not plan.sources:
        from sql.engine.statement.once import Once, OnceCode

        return lambda env: partial(Once, OnceCode(plan, env))
    if plan.mode == "sample":
        return lambda env: partial(SampledQuery, SampledCode(plan, env, by_instants=by_instants))
    from sql.compiler.program import Program
    from sql.engine.statement.statement_instances import instance_of

    return lambda env: partial(instance_of, Program(plan, env))

"""Rules in which an event has an effect that lasts: state, changed tables and variables, a request."""

from __future__ import annotations

from sql.plan.clauses import SourcePlan
from sql.plan.logical import Plan


def is_stateless(plan: Plan) -> bool:
    """True if order and time cannot matter: such rules do not wait for the watermark."""
    return plan.mode == "delta" and plan.context is None and not (
        plan.reads_beside or any(spread.kind in ("changes", "requests") for spread in plan.spreads)
        or plan.aggregates or plan.joins or plan.output
        or any(source.windows for source in plan.sources)
    )  # fmt: skip


def leaves_traces(plan: Plan) -> bool:
    """True if an event may have an effect beside the rows that the rule emits for it at once."""
    beside = plan.acts is not None or plan.into_table is not None or plan.relations or plan.lookups
    return bool(beside) or not is_stateless(plan) or any(_remembers(source) for source in plan.sources)


def _remembers(source: SourcePlan) -> bool:
    """True if the events of a source without windows are of use later."""
    return not source.is_bare or source.retained_rows is not None

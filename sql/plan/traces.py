"""Rules in which an event has an effect that lasts: state, changed tables and variables, a request."""

from __future__ import annotations

from sql.plan.clauses import SourcePlan
from sql.plan.logical import Plan


def is_stateless(plan: Plan) -> bool:
    """True if order and time cannot matter: such rules do not wait for the watermark."""
    return plan.mode == "delta" and plan.context is None and not (
        plan.hits or any(spread.kind in ("changes", "requests") for spread in plan.spreads)
        or plan.aggregates or plan.analytics or plan.prevs or plan.joins or plan.subqueries or plan.output
        or any(source.windows for source in plan.sources)
    )  # fmt: skip


def leaves_traces(plan: Plan) -> bool:
    """True if an event may have an effect beside the rows that the rule emits for it at once."""
    beside = plan.acts is not None or plan.into_table is not None or plan.relations or plan.asks
    return bool(beside) or not is_stateless(plan) or any(_remembers(source) for source in plan.sources)


def _remembers(source: SourcePlan) -> bool:
    """True if the events of a source without windows are of use later."""
    is_composed = source.pattern is not None or source.recognize is not None or source.lot is not None
    return is_composed or source.keeps_last or source.keeps or source.retained_rows is not None

"""The ways in which events enter a statement; its plan and its use decide which.

drives        through a compiled loop, into which a single window may be written
driver_of     in a join: through the loop of one stream, beside relations that are looked into
passes_rows   through loops that keep no joined row
otherwise     as changes, which windows and joins that are called hand over
"""

from __future__ import annotations

from typing import Literal

from sql.algebra.join.inner import parts_of
from sql.algebra.windows.catalog import WINDOWS
from sql.plan.arrival import reads_on_arrival
from sql.plan.bound import Bound, Slot, TableRead, reads_clock, take_events_once
from sql.plan.clauses import SourcePlan, is_outer
from sql.plan.logical import Plan

Use = Literal["rule", "observed", "cells", "looking", "value", "evaluated", "correlated"]
"""The use of a compiled statement.

rule        an instance of its own, all of whose rows are emitted
observed    the same, with no window written into the loop, so that observers can stand before all of them
cells       one instance serves all partitions of a context, whose state is in cells
looking     named windows are only searched, and do not feed the statement
value       the same, and only the value of the content is read
evaluated   only rows that a search has found in its last source are evaluated; WHERE holds for them
correlated  the same for a subquery, anew for each event of the statement around it: its rows are tuples, of
            its own row and those of that event
"""

SEARCHING: frozenset[Use] = frozenset(("looking", "value", "evaluated"))
"""The uses in which named windows do not feed the statement."""

EVALUATING: frozenset[Use] = frozenset(("evaluated", "correlated"))
"""The uses in which nothing drives the statement: it evaluates the rows that a search has found."""


def drives(plan: Plan) -> bool:
    """True if arriving events go through a compiled loop, into which a single window may be written.

    They do not where a step changes several things before rows are made, or where filters read relations, so
    that they are evaluated before any statement acts.
    """
    source = plan.sources[0]
    if reads_on_arrival(plan):
        return False
    if len(plan.sources) != 1:
        return driver_of(plan) is not None
    if plan.into_table is not None:
        return feeds(plan)
    if source.relation is not None:
        return False
    if plan.mode == "lots":
        return not plan.relations and source.lot is not None and source.lot.is_simple
    return source.pattern is None and source.recognize is None


def takes_times(plan: Plan) -> bool:
    """True if the loop takes each event with its own instant: in event time, where all
    events are of one stream."""
    if plan.timestamp is None or plan.subqueries or plan.relations:
        return False
    return drives(plan)


def feeds(plan: Plan) -> bool:
    """True if each event is counted in one row of a table, never leaves it, and shows it."""
    into = plan.into_table
    if into is None or len(plan.sources) != 1 or plan.mode != "delta" or not plan.sources[0].is_bare:
        return False
    if plan.grouping_sets or plan.orders_rows or plan.output or plan.reads_beside:
        return False
    if any(call.group_by is not None for call in plan.aggregates):
        return False
    return plan.selector == "istream" and plan.row_kind in ("group", "aggregate")


# --- joins --------------------------------------------------------------------------------------------------


def driver_of(plan: Plan) -> int | None:
    """The place of the stream that drives a join with relations; None where other things
    feed the join as well."""
    if len(plan.drivers) != 1 or plan.mode != "delta" or is_outer(plan.joins):
        return None
    if take_events_once(plan.aggregates):
        return None
    (place,) = plan.drivers
    driver = plan.sources[place]
    if driver.pattern is not None or driver.recognize is not None or driver.relation is not None:
        return None
    others = [source for source in plan.sources if source is not driver]
    are_looked_up = all(source.relation is not None and source.recognize is None for source in others)
    return place if others and are_looked_up and not (plan.analytics or plan.prevs or plan.hits) else None


def hands_on(plan: Plan) -> frozenset[int]:
    """The sources whose rows a driven join hands on as their relations keep them: the text makes rows of
    them at once, and nothing holds them."""
    is_held = plan.output is not None or plan.keeps_groups or plan.into_table is not None
    if is_held or not plan.reads_columns_in_text:
        return frozenset()
    return frozenset(place for place, source in enumerate(plan.sources) if not source.unidirectional)


def makes_rows(plan: Plan) -> bool:
    """True if each joined row is a row of the output as it stands."""
    if plan.row_kind != "plain" or plan.selector == "rstream" or plan.into_table is not None:
        return False
    return not (plan.orders_rows or plan.output or plan.subqueries)


def found_in(plan: Plan) -> frozenset[int]:
    """The source whose rows a search hands on as its relation keeps them, where the text alone reads them."""
    last = len(plan.sources) - 1
    is_kept = plan.sources[last].relation in ("window", "table") and plan.reads_columns_in_text
    return frozenset((last,) if is_kept else ())


def is_looked_into(plan: Plan, source: SourcePlan) -> bool:
    """True if the rows of a relation are only looked up: nothing that happens to them makes rows."""
    if source.relation is None or source.relation == "table":
        return source.relation == "table"
    return bool(plan.drivers) and not source.unidirectional


def passes_rows(plan: Plan) -> bool:
    """True if the joined rows of a statement need not be kept: none is ever taken back, and those that are
    there can be found anew."""
    reads_beside = plan.analytics or plan.prevs or plan.hits
    if not plan.joins or plan.mode != "delta" or reads_beside or reads_on_arrival(plan):
        return False
    if plan.selector != "istream" or not makes_rows(plan):
        return False
    if len(plan.drivers) > 1 or not all(_stands_in_loop(source) for source in plan.sources):
        return False
    if all(source.relation is not None for source in plan.sources):
        return False
    conditions = parts_of([*(join.on for join in plan.joins), plan.where])
    return (not is_outer(plan.joins) or len(plan.sources) == 2) and all(map(_reads_rows_alone, conditions))


def _stands_in_loop(source: SourcePlan) -> bool:
    """True if events enter the windows one by one, or none: what posts in batches is called."""
    if source.pattern is not None or source.recognize is not None or source.lot is not None:
        return False
    if source.retained_rows is not None or source.keeps_last:
        return False
    return all(WINDOWS[window.name].role == "retain" for window in source.windows)


def _reads_rows_alone(condition: Bound) -> bool:
    """True if a condition on rows that are there always holds or never does."""
    reads_beside = any(isinstance(node, Slot | TableRead) for node in condition.walk())
    return not reads_beside and not reads_clock(condition)

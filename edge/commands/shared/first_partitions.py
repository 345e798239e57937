"""The memory of partitions of a context before their first event."""

from __future__ import annotations

from edge.monitor.footprint import completed, walk_partitions
from sql import Catalog, Plan
from sql.engine.context.context_member import join
from sql.engine.context.host import ContextHost
from sql.errors import DataError
from sql.explain.stand_ins import catalog_of, partition_of

FEW = 9
"""Partitions made to measure one."""


def bytes_at_first(plan: Plan, catalog: Catalog) -> int | None:
    """The bytes of a partition of the plan's context with one rule in it, before the first event; None where
    there is one partition at most, or where it cannot be made without its events."""
    assert plan.context is not None
    host = ContextHost("context", plan.context, catalog_of(catalog, plan))
    try:
        join(host, "rule", plan, 0)
        *values, _ = partition_of(plan, plan.context)
        level = host.life.root
        for depth, sample in enumerate(values):
            assert level is not None
            is_last = depth == len(values) - 1
            for number in range(FEW if is_last else 1):
                partition = host.life.open(level, number, list(sample), 0)
            level = partition.below
    except DataError:
        return None
    return completed(walk_partitions(host, [catalog, plan])) if len(host.life.live) > 1 else None

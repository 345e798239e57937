"""The memory of each partition of a context, with the state of all rules in it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from edge.monitor.footprint import SAMPLED, footprint_of_each
from sql import Catalog, Plan
from sql.engine.context.host import ContextHost
from sql.errors import DataError
from sql.explain.stand_ins import catalog_of, partition_of

FEW = 9
"""Partitions made to measure one."""


def bytes_each(host: ContextHost, common: Iterable[object] = ()) -> int | None:
    """Bytes of each further live partition; None for fewer than two. `common`: objects of no partition."""
    sample = list(islice(host.life.live, SAMPLED))
    levels = {id(item.level): item.level for item in sample}.values()
    statements = [part for member in host.members.values() for part in (member, member.cells, member.code)]
    return footprint_of_each(sample, [*common, host, host.life, host.members, *levels, *statements])


def bytes_at_first(plan: Plan, catalog: Catalog) -> int | None:
    """The bytes of a partition of the plan's context with one rule in it, before the first event; None where
    there is one partition at most, or where it cannot be made without its events."""
    assert plan.context is not None
    host = ContextHost("context", plan.context, catalog_of(catalog, plan))
    try:
        host.join("rule", plan, 0)
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
    return bytes_each(host, [catalog, plan])

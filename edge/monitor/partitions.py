"""The memory of each partition of a context, with the state of all rules in it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from edge.monitor.footprint import SAMPLED, footprint_of_each

if TYPE_CHECKING:
    from sql.engine.context.host import ContextHost


def bytes_each(host: ContextHost, common: Iterable[object] = ()) -> int | None:
    """Bytes of each further live partition; None for fewer than two. `common`: objects of no partition."""
    sample = list(islice(host.life.live, SAMPLED))
    levels = {id(item.level): item.level for item in sample}.values()
    statements = [part for member in host.members.values() for part in (member, member.cells, member.code)]
    return footprint_of_each(sample, [*common, host, host.life, host.members, *levels, *statements])

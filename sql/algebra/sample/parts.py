"""The parts of a sampled plan, as `compose` chooses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sql.algebra.sample.content import Content, Entries
from sql.algebra.sample.instance import Tap
from sql.algebra.sample.windows.window import Window
from sql.catalog.streams import Catalog
from sql.codegen.hits import Hits
from sql.plan.bound import Bound
from sql.plan.logical import Plan
from sql.rows import Shape


@dataclass(slots=True)
class SampleParts:
    """The parts of a sampled plan."""

    plan: Plan
    catalog: Catalog
    shape: Shape
    window: Window
    content: Content
    shown: Content | None
    """The content that one sample takes the rows into, where each is evaluated from the beginning."""
    entries: Entries
    filters: list[Bound | None]
    """FILTER, for each source of FROM."""
    met_where: Hits | None
    is_timed: bool
    tap: Tap | None = None
    common_lines: int = 0
    """The text of the core up to this line does not depend on aggregates."""

    def per_event(self) -> Iterator[Bound]:
        """The expressions that are evaluated for each event."""
        plan = self.plan
        window = self.window.plan
        for condition in (*self.filters, plan.where, window.begin, window.emit, window.when):
            if condition is not None:
                yield condition
        yield from (*plan.group_by, *window.partition_by)
        for call in plan.aggregates:
            yield from call.args
            if call.filter is not None:
                yield call.filter

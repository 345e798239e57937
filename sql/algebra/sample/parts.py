"""The parts of a sampled plan, as `compose` chooses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sql.algebra.sample.content import Content, Entries
from sql.algebra.sample.instance import Tap
from sql.algebra.sample.windows.window import Window
from sql.codegen.functions import FunctionSet
from sql.codegen.hits import Hits
from sql.plan.bound import Bound
from sql.plan.logical import Plan


@dataclass(slots=True)
class SampleParts:
    """The parts of a sampled plan."""

    plan: Plan
    functions: FunctionSet
    """The writer of the expressions in the text."""
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

    @property
    def slots(self) -> dict[str, str]:
        """The slots of an instance of the window, with their first values as Python text."""
        return {**self.window.slots, **self.content.slots}

    @property
    def locals(self) -> dict[str, str]:
        """The locals of a loop over one instance: names, and what they stand for."""
        return {**self.window.locals, **self.content.locals}

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

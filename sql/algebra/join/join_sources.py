"""The sources of a join: the rows that are kept of them, and how joined rows are found from these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sql.algebra.event import Delta, Event
from sql.algebra.join.inner import Inner, InnerCode
from sql.algebra.join.outer import Outer, OuterCode
from sql.algebra.join.store import Pulled, Rows, Store
from sql.algebra.operator import FindEvent
from sql.codegen.functions import FunctionSet
from sql.errors import Fail
from sql.plan.clauses import is_outer
from sql.plan.logical import Plan
from sql.types import Saved

JoinCode = InnerCode | OuterCode


def join_code(plan: Plan, functions: FunctionSet) -> JoinCode:
    """The search for joined rows that the kinds of the joins need, made once for all instances."""
    if is_outer(plan.joins):
        return OuterCode(plan.joins, functions)
    return InnerCode([join.on for join in plan.joins], plan.where, functions)


class JoinSources:
    """The rows of the sources of a join."""

    def __init__(self, plan: Plan, code: JoinCode, pulled: Mapping[int, Pulled], fail: Fail) -> None:
        """`pulled`: sources whose rows are only looked up. `fail` takes joined rows whose condition cannot be
        evaluated."""
        self.code = code
        self.fail = fail
        shape = code.functions.reader.shape
        self.stores: list[Store] = [pulled.get(place) or Rows(shape) for place in range(len(plan.sources))]
        self.drivers = plan.drivers
        self.is_outer = isinstance(code, OuterCode)

    def way(self) -> Inner | Outer:
        """The search for joined rows of this instance."""
        return self.code.over(self.stores, self.fail)

    def apply(self, changes: Mapping[int, Delta]) -> None:
        """Keep the rows that came, and drop those that left."""
        for place, delta in changes.items():
            store = self.stores[place]
            if isinstance(store, Rows):
                store.change(delta)

    def held(self) -> Iterator[Event]:
        for store in self.stores:
            if isinstance(store, Rows):
                yield from store.events

    def snapshot(self) -> dict[str, Any]:
        """The rows of each source, by number."""
        kept = [[e.seq for e in store.events] if isinstance(store, Rows) else None for store in self.stores]
        return {"rows": [], "relations": kept}

    def restore(self, state: Saved, find: FindEvent) -> None:
        """Put a snapshot back, also that of a join whose joined rows were kept."""
        for store, numbers in zip(self.stores, state["relations"], strict=True):
            if isinstance(store, Rows):
                for number in numbers or ():
                    store.add(find(number))

"""A statement of a context, as the engine sees it: its events go to its instances in the partitions they
belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sql.algebra.context.by_property import ByProperty, Sides
from sql.algebra.context.selectors import Selector, every
from sql.algebra.event import Delta, Event
from sql.algebra.row_blocks import plain
from sql.codegen.functions import FunctionSet
from sql.compiler.statement.deferral import fits_cells
from sql.emission import Emission
from sql.engine.context.bodies import Body, Cell, Member
from sql.engine.context.host import ContextHost
from sql.errors import CorruptState
from sql.plan.correlation import correlation_of
from sql.plan.logical import Plan
from sql.plan.walk import slots_of


class ContextMember(Member):
    """One statement in all partitions of a context."""

    def __init__(self, name: str, plan: Plan, host: ContextHost, order: int) -> None:
        super().__init__(name, plan, host.context, host.catalog, order, host.statements.schedule)
        self.host = host
        self.fits_cells = fits_cells(plan) and not (self.fills_own or self._reads_own_variable())
        self.index = index_of(plan, host.functions)

    def _reads_own_variable(self) -> bool:
        """True if it reads a variable that each partition has for itself."""
        own = self.catalog.context_variables.get(self.host.context.name, {})
        return any(slot.key in own for slot in slots_of(self.inner) if slot.kind in ("variable", "arrived"))

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        out: list[Emission] = []
        for row in rows:
            self.counts["events_in"] += 1
            event = Event(row, now_ms, 0)
            arrival = self.host.route(stream, event, now_ms) if self.outranks else self.host.arrival
            if arrival is None:
                continue
            out += self._give(self.reached(event, arrival), stream, row, now_ms)
        return out

    def _give(self, bodies: Sequence[Body], stream: str, row: object, now_ms: int) -> list[Emission]:
        if not bodies:
            return []
        return self.host.statements.give(self, stream, bodies, [row] * len(bodies), now_ms)

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Relations that all partitions see have changed."""
        return [
            item for body in tuple(self.bodies()) for item in self.host.statements.feed(body, changes, now_ms)
        ]

    def feed_in(self, partition: int, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Take changes of one partition's relations; those of an ended partition are dropped."""
        bodies = self._bodies_in(partition)
        return [item for body in bodies for item in self.host.statements.feed(body, changes, now_ms)]

    def push_in(self, partition: int, stream: str, row: object, now_ms: int) -> list[Emission]:
        """Take a row inserted into a named window of one partition; that of an ended partition is dropped."""
        self.counts["events_in"] += 1
        return self._give(self._bodies_in(partition), stream, row, now_ms)

    def _bodies_in(self, partition: int) -> list[Body]:
        found = self.host.life.live.get(partition)
        return [] if found is None else [body for body in found.bodies if body.member is self]

    def bodies(self, selector: Selector = every) -> Iterator[Body]:
        """The live instances, in order of allocation of their partitions."""
        for partition in self.host.life.live:
            if selector(partition):
                yield from (body for body in partition.bodies if body.member is self)

    def variable_changed(self, name: str, now_ms: int) -> None:
        for body in self.bodies():
            body.instance.variable_changed(name, now_ms)
            self.schedule(body)

    def flush(self, now_ms: int) -> list[Emission]:
        return [emission for body in self.bodies() for emission in body.instance.flush(now_ms)]

    def read(self, now_ms: int, selector: Selector = every) -> list[dict[str, Any]]:
        """The rows of the chosen partitions, one after the other."""
        return [row for body in self.bodies(selector) for row in body.instance.read(now_ms)]

    def retained(self) -> int:
        return sum(body.instance.retained() or 0 for body in self.bodies())

    def counters(self) -> dict[str, int]:
        return {**self.counts, "partitions": len(self.host.life.live)}

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        cells = self.cells if self.cells is not None and self.cells.packs_cells else None
        bodies: list[Any] = []
        if cells is None:
            bodies = [[body.partition.id, plain(body.instance.snapshot())] for body in self.bodies()]
        # The partitions of a context that goes with its statements are saved once, with the first of them.
        first = next(iter(self.host.members.values())) is self
        context = self.host.snapshot() if self.host.is_passing and first else None
        return {
            "fingerprint": self.inner.fingerprint,
            "counts": dict(self.counts),
            "context": context,
            "bodies": bodies,
            "cells": None if cells is None else cells.packed(self._cells()),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Put states back into the instances of the partitions, which the context has restored before."""
        self.counts |= snapshot["counts"]
        states = dict(map(tuple, snapshot["bodies"]))
        self._begin_again(states)
        cells = snapshot.get("cells")  # not in states of earlier versions
        if cells is not None and self.cells is not None:
            self.cells.unpacked(cells, self._cells())
            for cell in self._cells():
                self.schedule(cell)
        for body in self.bodies() if states else ():
            state = states.pop(body.partition.id, None)
            if state is not None:
                body.instance.restore(state)
                self.schedule(body)
        if states:
            raise CorruptState(f"'{self.name}' cannot begin again in {len(states)} of its partitions")

    def _begin_again(self, states: Mapping[int, dict[str, Any]]) -> None:
        """Windows begin with the values that variables had then, which the present ones may not be."""
        self.saved = began_of(states)
        has_begun = any(self.saved.values())
        found = {body.partition.id: body.instance.began for body in self.bodies()} if has_begun else {}
        for partition in tuple(self.host.life.live):
            began = self.saved.get(partition.id)
            if began and began != found.get(partition.id):
                self.host.statements.begin_again(self, partition, self.host.clock.now_ms)
        self.saved = None

    def _cells(self) -> Iterator[Cell]:
        return (body for body in self.bodies() if isinstance(body, Cell))


def began_of(states: Mapping[int, dict[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """The values with which windows began, by partition, of saved states."""
    return {partition: state.get("began") or {} for partition, state in states.items()}


def join(
    host: ContextHost, name: str, plan: Plan, now_ms: int, state: Mapping[str, Any] | None = None
) -> tuple[ContextMember, list[Emission]]:
    """A statement starts in every live partition of a context, or takes the place of its earlier version; the
    first one activates the context. `state`: that which it will get."""
    host.joined += 1
    host.clock.now_ms = now_ms
    known = host.members.get(name)
    if known is not None:
        host.drop(known)
    member = ContextMember(name, plan, host, known.order if known else host.joined)
    if state is not None:
        member.saved = began_of(dict(map(tuple, state["bodies"])))
    host.members[name] = member
    if host.life.is_active:
        for partition in host.life.live:
            host.statements.begin(member, partition, now_ms, is_late=True)
    else:
        host.life.activate(now_ms)
    return member, host.statements.queue.take()


def index_of(plan: Plan, functions: FunctionSet) -> ByProperty[Body] | None:
    """The index of a statement over one stream whose filter is correlated with the partition."""
    if (
        len(plan.sources) != 1
        or plan.sources[0].pattern
        or plan.subqueries
        or plan.analytics
        or plan.mode == "lots"
    ):
        return None
    correlation, _ = correlation_of(plan.sources[0].filter)
    return None if correlation is None else ByProperty(Sides.of(correlation, functions, functions))

"""Levels with a partition per category."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sql.algebra.context.level import LiveLevel
from sql.algebra.context.level_definitions import CategoriesDefinition
from sql.algebra.context.partition import Arrival, Partition


class CategoriesLevel(LiveLevel):
    """A partition per category, all from the start; an event belongs to each whose condition is TRUE."""

    definition: CategoriesDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.found: list[Partition] = []

    def watch(self, now_ms: int) -> None:
        for label in self.definition.labels:
            self.life.open(self, label, [label], now_ms)

    def act(self, arrival: Arrival) -> None:
        if arrival.stream != self.definition.stream:
            self.visit_all(arrival)
            return
        for partition in self.belonging(arrival):
            self.visit(partition, arrival)

    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        definition, event = self.definition, arrival.event
        if arrival.stream != definition.stream:
            return self.found
        if definition.passes is not None and not definition.passes(event):
            return ()
        return [item for item, test in zip(self.found, definition.conditions, strict=True) if test(event)]

    def partitions(self) -> list[Partition]:
        return list(self.found)

    def add(self, partition: Partition) -> None:
        self.found.append(partition)

    def discard(self, partition: Partition) -> None:
        self.found.remove(partition)

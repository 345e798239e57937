"""The catalog as statements in one partition of a context see it: with variables and relations of the
partition."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from sql.algebra.context.partition import Partition
from sql.algebra.event import Delta
from sql.catalog.loop import StepLoop
from sql.catalog.streams import Catalog
from sql.engine.relations.declared import TableStatement, VariableStatement, WindowStatement
from sql.engine.steps import Steps


def catalog_of(catalog: Catalog, partition: Partition, within: Container[str]) -> Catalog:
    """The catalog of a partition; that of all where it has nothing of its own. `within`: the context's
    statements."""
    instances = [body.instance for body in partition.bodies]
    variables = {
        item.variable.name: item.variable for item in instances if isinstance(item, VariableStatement)
    }
    declared = [item.relation for item in instances if isinstance(item, WindowStatement | TableStatement)]
    if not variables and not declared:
        return catalog
    relations = {relation.name: relation for relation in declared}
    return catalog.within(variables, relations, loop_of(catalog, relations, partition, within))


def loop_of(
    catalog: Catalog, relations: dict[str, Any], partition: Partition, within: Container[str]
) -> StepLoop:
    """The step loop as statements in a partition use it."""
    steps = catalog.loop
    return PartitionLoop(steps, relations, partition.id, within) if isinstance(steps, Steps) else steps


class PartitionLoop(StepLoop):
    """The step loop of one partition's statements: rows stay in the partition's relations."""

    def __init__(
        self, steps: Steps, relations: dict[str, Any], partition: int, within: Container[str]
    ) -> None:
        self.steps = steps
        self.relations = relations
        self.partition = partition
        self.within = within

    def unseen(self, statement: str, relation: str) -> Any:
        return self.steps.unseen(statement, relation, self.partition if relation in self.relations else None)

    def publish(self, relation: Any, delta: Delta) -> None:
        self.steps.publish(relation, delta, self.partition, self.within)

    def forward(self, stream: str, rows: Sequence[Any], statement: str) -> None:
        relation = self.relations.get(stream)
        if relation is None:
            self.steps.forward(stream, rows, statement)
        else:
            self.steps.enter(relation, rows, statement)

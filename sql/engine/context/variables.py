"""Variables with a value per partition, and the statements that set variables inside a partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.aggregates.state import decode, encode
from sql.algebra.context.partition import Partition
from sql.algebra.event import Event
from sql.catalog.streams import Catalog, Variable
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.codegen.support import Warnings
from sql.emission import Emission
from sql.engine.relations.hosted import Hosted
from sql.functions.registry import Context
from sql.plan.bound import Bound
from sql.plan.logical import Plan
from sql.rows import as_dict


class Instance(Hosted):
    """An instance that keeps no events."""

    def terminate(self, now_ms: int) -> list[Emission]:
        """The partition ends."""
        return []

    def retained(self) -> int:
        return 0


class VariableInstance(Instance):
    """`context C create variable`: the variable of one partition, which starts with its first value."""

    def __init__(self, name: str, plan: Plan, declared: Variable) -> None:
        super().__init__(name, plan)
        self.variable = Variable(declared.name, declared.type, declared.value, declared.constant)

    def snapshot(self) -> dict[str, Any]:
        return {"value": encode(self.variable.value)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.variable.value = decode(snapshot["value"])


class SetInstance(Instance):
    """`context C on E set X = …` in one partition."""

    def __init__(self, name: str, plan: Plan, catalog: Catalog, row: Sequence[Any], setters: Sequence[tuple[str, Bound]]
                 ) -> None:  # fmt: skip
        super().__init__(name, plan)
        self.catalog = catalog
        self.functions = FunctionSet(catalog, Context(partition=row), Warnings(), text=plan.text)
        condition = plan.sources[0].filter
        self.passes = None if condition is None else self.functions.true(condition)
        self.setters = [(name, self.functions.value(value)) for name, value in setters]

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        out = []
        for row in rows:
            event = Event(row, now_ms, 0)
            try:
                if self.passes is not None and not self.passes(event):
                    continue
                for name, value in self.setters:
                    self.catalog.assign(name, value(event))
            except DATA_ERRORS as error:
                why = str(self.functions.failure(error))
                out.append(Emission(self.name, now_ms, "error", [dict(as_dict(row))], (), why))
                continue
            values = {name: self.catalog.variables[name].value for name, _ in self.setters}
            out.append(Emission(self.name, now_ms, "rows", [values]))
        return out


def catalog_of(catalog: Catalog, partition: Partition) -> Catalog:
    """The catalog as statements in a partition see it: with the partition's own variables."""
    own = {
        body.instance.variable.name: body.instance.variable
        for body in partition.bodies
        if isinstance(body.instance, VariableInstance)
    }
    return catalog.within(own) if own else catalog

"""Start a statement in a partition of a context, with the catalog as it sees it there: with variables and
relations of the partition."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from sql.algebra.context.partition import Partition
from sql.algebra.event import Delta
from sql.catalog.step_loop import StepLoop
from sql.catalog.streams import Catalog, Variable
from sql.compiler.program import Program
from sql.compiler.shared_code import Environment
from sql.engine.context.bodies import Body, Cell, CellStatement, InstanceBody, Member
from sql.engine.query import Running
from sql.engine.relations.declaring import DeclaringStatement, VariableStatement
from sql.engine.start import compiler
from sql.engine.steps import Steps
from sql.plan.declared import WindowDeclaration


def new_body(member: Member, members: Mapping[str, Member], partition: Partition, now_ms: int) -> Body:
    """A statement in a partition just allocated: a cell where its state fits into one, else an instance.
    `members`: the statements of the context."""
    cells, name, row = member.cells, member.name, partition.row
    if cells is not None:
        return Cell(member, partition, {} if cells.groups.whole is None else cells.groups.new(()))
    if not member.fits_cells:
        env = Environment(name, _catalog_for(member, members, partition), now_ms, row)
        with env.catalog.holding((member.saved or {}).get(partition.id, {})):
            if member.code is None:
                shared = shared_catalog(member, members.values(), partition, now_ms)
                member.code = compiler(member.inner)(Environment(name, shared, now_ms, row))
            return InstanceBody(member, partition, member.code(env), env.catalog)
    env = Environment(name, member.catalog, now_ms, row)
    member.cells = CellStatement(Program(member.inner, env, "cells"), env)
    return new_body(member, members, partition, now_ms)


def _catalog_for(member: Member, members: Mapping[str, Member], partition: Partition) -> Catalog:
    """The catalog of a new instance; a relation that it declares posts to the statements of its partition."""
    catalog = catalog_of(member, partition, members)
    if catalog is member.catalog and isinstance(member.inner.acts, WindowDeclaration):
        return catalog.within({}, {}, loop_of(catalog, {}, partition, members))
    return catalog


def shared_catalog(member: Member, members: Iterable[Member], partition: Partition, now_ms: int) -> Catalog:
    """The catalog by which the text of a statement is compiled.

    The text serves all partitions. Each partition has relations and variables of its own, which the
    statements before declare: stand-ins represent them."""
    before = [other for other in members if other.declares and other.order < member.order]
    if not before:
        return member.catalog
    codes = [(other.name, other.code) for other in before if other.code is not None]
    made = [code(Environment(name, member.catalog, now_ms, partition.row)) for name, code in codes]
    variables, relations = _declared(made)
    for name, relation in relations.items():
        member.catalog.relations[name].indexed(relation)
    return member.catalog.shared_by_partitions(variables, relations)


def _declared(instances: Iterable[Running]) -> tuple[dict[str, Variable], dict[str, Any]]:
    """The variables and the relations among the things that statements run as."""
    variables, relations = {}, {}
    for item in instances:
        if isinstance(item, VariableStatement):
            variables[item.variable.name] = item.variable
        elif isinstance(item, DeclaringStatement):
            relations[item.relation.name] = item.relation
    return variables, relations


def catalog_of(member: Member, partition: Partition, within: Container[str]) -> Catalog:
    """The catalog of a statement in a partition; that of all where those before it declare nothing.
    `within`: the context's statements."""
    catalog = member.catalog
    before = [
        body
        for body in partition.bodies
        if isinstance(body, InstanceBody) and body.member.order < member.order
    ]
    if before and not before[-1].member.declares:
        return before[-1].catalog
    variables, relations = _declared(body.instance for body in before if body.member.declares)
    if not variables and not relations:
        return catalog
    return catalog.within(variables, relations, loop_of(catalog, relations, partition, within))


def loop_of(
    catalog: Catalog, relations: dict[str, Any], partition: Partition, within: Container[str]
) -> StepLoop:
    """The step loop as statements in a partition use it."""
    steps = catalog.loop
    return PartitionLoop(steps, relations, partition.id, within) if isinstance(steps, Steps) else steps


class PartitionLoop(StepLoop):
    """The step loop of one partition's statements: rows stay in the partition's relations, unless these take
    what their values say."""

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

    def entered(self, relation: Any, row: Any) -> None:
        self.steps.entered(relation, row, self.partition, self.within)

    def forward(self, stream: str, rows: Sequence[Any], statement: str) -> None:
        own = self.relations.get(stream)
        if own is None or self.steps.roster.catalog.relations[stream].is_routed:
            self.steps.forward(stream, rows, statement)
        else:
            self.steps.enter(own, rows, statement)

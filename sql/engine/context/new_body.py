"""Start a statement in a partition: the one place that makes instances and cells."""

from __future__ import annotations

from collections.abc import Mapping

from sql.algebra.context.partition import Partition
from sql.catalog.streams import Catalog
from sql.compiler.program import Program, Use
from sql.compiler.shared_code import Environment
from sql.engine.context.bodies import Body, Cell, CellStatement, InstanceBody, Member
from sql.engine.context.own_catalog import catalog_of, loop_of, shared_catalog
from sql.engine.start import compiled
from sql.plan.declared import WindowDeclaration


def new_body(member: Member, members: Mapping[str, Member], partition: Partition, now_ms: int) -> Body:
    """A statement in a partition just allocated: a cell where its state fits into one, else an instance.
    `members`: the statements of the context."""
    cells, name, row = member.cells, member.name, partition.row
    if cells is not None:
        return Cell(member, partition, {} if cells.groups.whole is None else cells.new_group(()))
    if not member.fits_cells:
        env = Environment(name, _catalog_for(member, members, partition), now_ms, row)
        if member.code is None:
            shared = shared_catalog(member, members.values(), partition, now_ms)
            member.code = compiled(member.inner, Environment(name, shared, now_ms, row))
        return InstanceBody(member, partition, member.code(env), env.catalog)
    env = Environment(name, member.catalog, now_ms, row)
    member.cells = CellStatement(Program(member.inner, env, Use(in_cells=True)), env)
    return new_body(member, members, partition, now_ms)


def _catalog_for(member: Member, members: Mapping[str, Member], partition: Partition) -> Catalog:
    """The catalog of a new instance; a relation that it declares posts to the statements of its partition."""
    catalog = catalog_of(member.catalog, partition, members)
    if catalog is member.catalog and isinstance(member.inner.acts, WindowDeclaration):
        return catalog.within({}, {}, loop_of(catalog, {}, partition, members))
    return catalog

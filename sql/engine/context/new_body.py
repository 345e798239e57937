"""Start a statement in a partition: the one place that makes instances and cells."""

from __future__ import annotations

from sql.algebra.context.partition import Partition
from sql.catalog.streams import Catalog
from sql.compiler.program import Program, Use
from sql.engine.context.bodies import Body, Cell, CellStatement, InstanceBody
from sql.engine.context.context_member import ContextMember
from sql.engine.context.own_catalog import catalog_of, loop_of, shared_catalog
from sql.engine.start import code_of
from sql.plan.declared import WindowDeclaration


def new_body(member: ContextMember, partition: Partition, now_ms: int) -> Body:
    """A statement in a partition just allocated: a cell where its state fits into one, else an instance."""
    cells = member.cells
    if cells is not None:
        return Cell(member, partition, {} if cells.groups.whole is None else cells.new_group(()))
    if not member.fits_cells:
        catalog, row = _catalog_for(member, partition), partition.row
        if member.code is None:
            shared = shared_catalog(member, partition, now_ms)
            member.code = code_of(member.name, member.inner, shared, now_ms, row)
        return InstanceBody(
            member, partition, member.code.instance(member.name, catalog, now_ms, row), catalog
        )
    program = Program(
        member.inner, member.host.catalog, "dict", now_ms, member.name, partition.row, Use(in_cells=True)
    )
    member.cells = CellStatement(member.name, program, now_ms, partition.row)
    return new_body(member, partition, now_ms)


def _catalog_for(member: ContextMember, partition: Partition) -> Catalog:
    """The catalog of a new instance; a relation that it declares posts to the statements of its partition."""
    host = member.host
    catalog = catalog_of(host.catalog, partition, host.members)
    if catalog is host.catalog and isinstance(member.inner.acts, WindowDeclaration):
        return catalog.within({}, {}, loop_of(catalog, {}, partition, host.members))
    return catalog

"""Stand-ins with which a statement compiles without an engine: variables, relations without rows, and a
partition."""

from __future__ import annotations

from typing import Any

from sql.catalog.streams import Catalog, Variable
from sql.compiler.shared_code import Environment
from sql.engine.relations.declaring import TableCode, TableStatement, WindowCode, WindowStatement
from sql.plan.bound import Bound, Op, Slot
from sql.plan.context_plan import ContextPlan
from sql.plan.declared import TableDeclaration
from sql.plan.logical import Plan
from sql.plan.options import RuleOptions
from sql.plan.walk import bounds_of, slots_of
from sql.types import Type

SAMPLES = {Type.STRING: "1", Type.BOOLEAN: True, Type.FLOAT: 1.0}
"""The stand-in value of a partition's property, by its type; 1 for other types."""


def variables_of(plan: Plan) -> Catalog:
    """A catalog with the plan's variables, for results that do not depend on their values."""
    catalog = Catalog()
    for slot in slots_of(plan):
        if slot.kind in ("variable", "arrived"):
            catalog.variables[slot.key] = Variable(slot.key, Type.INTEGER, 1)
    return catalog


def partition_of(plan: Plan, context: ContextPlan) -> tuple[Any, ...]:
    """The properties of a partition, with a stand-in value for each one that a statement reads."""
    row = tuple([None] * len(level.properties) for level in context.levels)
    for bound in bounds_of(plan):
        slot, path = _path(bound)
        if slot is None or slot.kind != "context" or slot.key == "id":
            continue
        depth, place = slot.key
        row[depth][place] = _filled(row[depth][place], path, SAMPLES.get(bound.type, 1))
    return (*row, 0)


def _path(bound: Bound) -> tuple[Slot | None, list[str]]:
    """The slot that fields are read from, and the names of these."""
    names: list[str] = []
    while isinstance(bound, Op) and bound.name == "field":
        names.insert(0, bound.extra)
        (bound,) = bound.args
    return (bound if isinstance(bound, Slot) else None), names


def _filled(held: object, path: list[str], value: object) -> Any:
    """`held` with a value added at the end of a path; existing values stay."""
    if not path:
        return value if held is None else held
    within = held if isinstance(held, dict) else {}
    return {**within, path[0]: _filled(within.get(path[0]), path[1:], value)}


def catalog_of(catalog: Catalog, plan: Plan) -> Catalog:
    """The catalog with empty relations in place of its own, and the variables of the plan's context, which
    each partition has for itself."""
    context = plan.context
    row = None if context is None else partition_of(plan, context)
    own = {} if context is None else catalog.context_variables.get(context.name, {})
    found = catalog.within(own)
    options = RuleOptions() if context is None else context.options
    relations: dict[str, Any] = {}
    for name, known in catalog.relations.items():
        declares = Plan("", "delta", (), (), options, acts=known.declaration)
        env = Environment(name, found, 0, row)
        if isinstance(known.declaration, TableDeclaration):
            relations[name] = TableStatement(TableCode(declares), env).relation
        else:
            relations[name] = WindowStatement(WindowCode(declares, env), env).relation
    if context is None:
        return found.within({}, relations)
    mine = {name: item for name, item in relations.items() if catalog.streams[name].context == context.name}
    return found.within({}, relations).shared_by_partitions(own, mine)


def has_own(catalog: Catalog, context: ContextPlan) -> bool:
    """True if a context has variables or relations of its own."""
    streams = any(stream.context == context.name for stream in catalog.streams.values())
    return streams or bool(catalog.context_variables.get(context.name))

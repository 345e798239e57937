"""The reads of variables and relations, bound to the text or found by place in the partition at work, and
of partitions."""

from __future__ import annotations

from sql.catalog.streams import Catalog
from sql.codegen.names import Names
from sql.codegen.source import identifier
from sql.plan.bound import Slot
from sql.rows import Shape, as_value


def variable_text(names: Names, catalog: Catalog, slot: Slot) -> str:
    """The text of a variable's value: the present one, or that of the event's arrival."""
    attribute = "value" if slot.kind == "variable" else "arrived"
    place = catalog.own.variables.get(slot.key)
    if place is not None:
        return f"{names.bind(catalog.own.at_work, 'own')}[{place}].{attribute}"
    return f"{names.bind(catalog.variables[slot.key], f'v_{identifier(slot.key)}')}.{attribute}"


def relation_text(names: Names, catalog: Catalog, name: str) -> str:
    """The text of a named window or a table."""
    place = catalog.own.relations.get(name)
    if place is not None:
        return f"{names.bind(catalog.own.at_work, 'own')}[{place}]"
    return names.bind(catalog.relations[name], f"t_{identifier(name)}")


def partition_text(partition: str, slot: Slot) -> str:
    """The text of a property of the context's partition that has this text."""
    depth, index = ("-1", None) if slot.key == "id" else slot.key
    return f"{partition}[{depth}]" if index is None else f"{partition}[{depth}][{index}]"


def whole_text(names: Names, row: str, shape: Shape) -> str:
    """The text of a whole row as a value: a struct holds what the rules read and no more, and is none."""
    return f"{names.bind(as_value, 'as_value')}({row})" if shape == "struct" else row

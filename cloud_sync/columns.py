"""The columns of a cloud action as the contract describes them: in each record, and in the schema of all."""

from __future__ import annotations

from cloud_sync.declaration import Average, CloudSettings, How, Sketched, Spread
from cloud_sync.schemas import HASHED, Column, Key, Schema
from cloud_sync.sketches import SKETCHES
from sql import Plan
from sql.types import Type


def column_of(name: str, merge: How, settings: CloudSettings) -> Column:
    """A value column: the name of its merge and its type in the contract."""
    if isinstance(merge, Sketched):
        is_distinct = merge.kind == "distinct"
        part = None if is_distinct else merge.part
        return Column(name, merge.kind, "int" if is_distinct else "float", merge.sketch, part)
    if isinstance(merge, Spread):
        return Column(name, merge.kind, "float")
    if isinstance(merge, Average):
        return Column(name, "avg", settings.type_of(name))
    return Column(name, merge, "sketch" if merge in SKETCHES else settings.type_of(name))


def schema_of(settings: CloudSettings, plan: Plan) -> Schema:
    """The schema of settings that are completed from the plan of their rule."""
    types = {item.name: item.value.type for item in plan.items}

    def key(name: str) -> Key:
        if name in settings.hashed:
            return Key(name, Type.STRING.value, HASHED)
        return Key(name, types.get(name, Type.ANY).value)

    return Schema(
        rule=plan.options.rule_id,
        rule_hash=settings.rule_hash,
        windows=tuple(level.label for level in settings.window),
        zone=settings.zone,
        restates=settings.restates,
        keys=tuple(map(key, settings.keys or ())),
        values=tuple(column_of(name, merge, settings) for name, merge in (settings.merge or {}).items()),
        secret=tuple(settings.secret),
    )

"""`context.…`: the properties of the partition a statement runs in."""

from __future__ import annotations

from collections.abc import Sequence

from sql import syntax as ast
from sql.binder.scope import Site
from sql.errors import Span, did_you_mean
from sql.plan.bound import Bound, Const, Op, Read, Slot
from sql.plan.context_plan import WORD, ContextPlan, KeyedPlan, LevelPlan, Property
from sql.plan.rewriting import rewritten
from sql.types import Type


def property_path(node: ast.Expr) -> tuple[str, ...] | None:
    """The names after `context.`, or None for any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Field):
        names.append(node.name)
        node = node.base
    if not isinstance(node, ast.Column) or node.table != WORD:
        return None
    return (node.name, *reversed(names))


def bind_property(site: Site, context: ContextPlan, path: tuple[str, ...], span: Span) -> Bound:
    """The bound form of `context.a.b`; a problem is reported where the context has no such property."""
    if path == ("id",):
        return Slot("context", "id", type=Type.INTEGER, span=span)
    if path == ("name",):
        return Const(context.name, type=Type.STRING, span=span)
    if not context.nested:
        return _of_level(site, context, 0, path, span)
    levels = {level.name: depth for depth, level in enumerate(context.levels)}
    if path[0] not in levels:
        hint = _level_hint(context, path[0]) or did_you_mean(path[0], ["id", "name", *levels])
        _unknown(site, f"nested context '{context.name}'", path[0], ["id", "name", *levels], span, hint)
        return Const(None)
    if len(path) == 1:
        site.problems.error(
            "B812",
            f"'{path[0]}' is a nested context, no property",
            span,
            f"write context.{path[0]}.{context.levels[levels[path[0]]].properties[0].name}"
            if context.levels[levels[path[0]]].properties
            else None,
        )
        return Const(None)
    return _of_level(site, context, levels[path[0]], path[1:], span)


def _of_level(site: Site, context: ContextPlan, depth: int, path: tuple[str, ...], span: Span) -> Bound:
    level = context.levels[depth]
    if path == ("name",):
        return Const(level.name, type=Type.STRING, span=span)
    is_last = depth == len(context.levels) - 1
    if path == ("id",) and is_last:
        return Slot("context", "id", type=Type.INTEGER, span=span)
    found = next((i for i, item in enumerate(level.properties) if item.name == path[0]), None)
    if found is None:
        names = [*(["id"] if is_last else []), "name", *(item.name for item in level.properties)]
        _unknown(site, f"context '{level.name}'", path[0], names, span, did_you_mean(path[0], names))
        return Const(None)
    place = level.properties[found]
    slot = Slot("context", (depth, found), type=place.type, span=span)
    return below(site, slot, place, path[1:], span)


def below(site: Site, slot: Bound, place: Property, names: tuple[str, ...], span: Span) -> Bound:
    """A column of the event a property holds, and what is in it."""
    if not names:
        return slot
    if place.type is not Type.OBJECT and place.type is not Type.ANY:
        site.problems.error(
            "B812", f"'{place.name}' is {place.type.value} and has no property '{names[0]}'", span
        )
        return slot
    if place.columns is not None and names[0] not in place.columns:
        _unknown(
            site,
            f"the event '{place.name}'",
            names[0],
            sorted(place.columns),
            span,
            did_you_mean(names[0], place.columns),
        )
    kind = Type.ANY if place.columns is None else place.columns.get(names[0], Type.ANY)
    bound: Bound = Op("field", (slot,), names[0], type=kind, span=span)
    for name in names[1:]:
        bound = Op("field", (bound,), name, span=span)
    return bound


def _level_hint(context: ContextPlan, name: str) -> str | None:
    """The hint for a property without the name of its nested context."""
    owner: LevelPlan | None = next(
        (level for level in context.levels if any(item.name == name for item in level.properties)), None
    )
    return None if owner is None else f"write context.{owner.name}.{name}"


def _unknown(site: Site, where: str, name: str, known: list[str], span: Span, hint: str | None) -> None:
    has = f"; it has {', '.join(known[:12])}" if known else ""
    site.problems.error("B812", f"{where} has no property '{name}'{has}", span, hint)


# --- keys as properties -------------------------------------------------------------------------------------


def key_places(context: ContextPlan, stream: str) -> dict[str, tuple[int, int]]:
    """The columns of a stream that are keys of the context, with the places of the
    properties that hold them."""
    found: dict[str, tuple[int, int]] = {}
    for depth, level in enumerate(context.levels):
        types = level.kind.types if isinstance(level.kind, KeyedPlan) else ()
        for item in types:
            if item.stream == stream:
                found |= {
                    key.column: (depth, index)
                    for index, key in enumerate(item.keys)
                    if isinstance(key, Read) and key.column is not None
                }
    return found


def keys_fixed(bound: Bound, context: ContextPlan, streams: Sequence[str]) -> Bound:
    """The expression with columns that are keys read from the partition: they are the same
    in all of its events."""

    def change(node: Read | Slot) -> Bound:
        if isinstance(node, Slot) or node.column is None:
            return node
        place = key_places(context, streams[node.source]).get(node.column)
        return node if place is None else Slot("context", place, type=node.type, span=node.span)

    return rewritten(bound, change)

"""The relation that a statement of a context declares in each partition, made known outside of it."""

from __future__ import annotations

from typing import Any

from sql.algebra.context.selectors import EVERY, Selector
from sql.algebra.event import Event
from sql.engine.context.host import ContextHost
from sql.engine.context.spread import SpreadRelation
from sql.plan.declared import TableDeclaration, WindowDeclaration


def spread_over(
    host: ContextHost, name: str, declaration: WindowDeclaration | TableDeclaration
) -> SpreadRelation:
    """The relation that a statement of a context declares in each partition, as seen from outside."""
    like = declaration.like if isinstance(declaration, WindowDeclaration) else None

    def parts(selector: Selector) -> list[Any]:
        return [
            body.instance.relation
            for partition in host.life.live
            if selector.takes(partition)
            for body in partition.bodies
            if body.member.name == name
        ]

    def owners(row: object, now_ms: int) -> list[Any]:
        if name not in host.members:
            return []
        if like is None:
            return parts(EVERY)
        arrival = host.route(like, Event(row, now_ms, 0), now_ms)
        reached = [] if arrival is None else arrival.rest()
        return [
            body.instance.relation
            for partition in reached
            for body in partition.bodies
            if body.member.name == name
        ]

    is_routed = isinstance(declaration, WindowDeclaration) and (like is not None or host.overlaps)
    return SpreadRelation(declaration, parts, owners, is_routed=is_routed)

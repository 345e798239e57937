"""Joins with tables that a store outside answers for: `FROM reading LEFT JOIN device ON reading.dev = device.id`.

Such a join happens before the event enters the rule. The event carries the row that was found in a column of
its own, so to the rest of the rule it is an event of one stream: `device.site` is a field of that column.
"""

from __future__ import annotations

from collections.abc import Sequence

from sql import syntax as ast
from sql.binder.expressions import ExpressionBinder, Place
from sql.binder.scope import SourceScope
from sql.catalog.streams import Catalog
from sql.errors import Problems, did_you_mean
from sql.plan.asks import MARK, AskPlan, carrier
from sql.plan.bound import Bound, Op, Read, conjuncts, sources_read
from sql.plan.logical import JoinPlan
from sql.record import replace

ON = Place("ON", analytics=False)


def split(select: ast.Select, catalog: Catalog) -> tuple[ast.Select, tuple[ast.Join, ...]]:
    """The statement without the joins with tables of stores, and these joins."""
    asked = tuple(join for join in select.joins if _is_asked(join.source.name, catalog))
    return replace(select, joins=tuple(join for join in select.joins if join not in asked)), asked


def _is_asked(name: str, catalog: Catalog) -> bool:
    stream = catalog.streams.get(name)
    return stream is not None and stream.kind == "asked"


def scopes(asked: Sequence[ast.Join], catalog: Catalog) -> list[SourceScope]:
    """The tables as names see them: behind the sources of the statement."""
    return [
        SourceScope(
            join.source.alias,
            join.source.name,
            catalog.streams[join.source.name].columns,
            carrier=MARK + join.source.alias,
        )
        for join in asked
    ]


def check(problems: Problems, select: ast.Select, asked: Sequence[ast.Join], *inside: object) -> None:
    """Report joins with such tables where no event waits for an answer. `inside`: what of a context, a subquery,
    a trigger is around."""
    first, is_inside = select.source, any(inside)
    takes_events = isinstance(first, ast.StreamSource) and first.pattern is None
    for join in asked:
        if is_inside or select.lots or not takes_events:
            problems.error(
                "B534",
                f"lookup table '{join.source.name}' cannot be asked here",
                join.source.span,
                "join it in a rule over a stream, and insert the rows into a stream that this one reads",
            )
        elif join.kind not in ("inner", "left") or join.on is None:
            problems.error(
                "B534",
                f"lookup table '{join.source.name}' is joined by INNER JOIN or LEFT JOIN with ON",
                join.source.span,
                f"for example LEFT JOIN {join.source.name} ON … = {join.source.alias}.id",
            )


def bind_asks(
    binder: ExpressionBinder, asked: Sequence[ast.Join], joins: Sequence[JoinPlan]
) -> tuple[AskPlan, ...]:
    """The plans of these joins. A problem if ON has no key, or a key that the first stream does not have."""
    for join in asked if any(join.kind in ("right", "full") for join in joins) else ():
        binder.problems.error(
            "B534",
            f"lookup table '{join.source.name}' is asked before streams are joined, which RIGHT and FULL JOIN "
            "would turn round",
            join.source.span,
            "use INNER or LEFT JOIN",
        )
    return tuple(_bound(binder, join) for join in asked)


def _bound(binder: ExpressionBinder, join: ast.Join) -> AskPlan:
    column = MARK + join.source.alias
    condition = binder.condition(join.on, ON)
    keys: dict[str, Bound] = {}
    rest: list[Bound] = []
    for part in conjuncts(condition):
        key = _key(part, column)
        if key is None or key[0] in keys:
            rest.append(part)
        else:
            keys[key[0]] = key[1]
    if not keys and condition is not None:
        columns = [
            name
            for source in binder.scope.sources
            if source.carrier == column
            for name in source.columns or ()
        ]
        binder.problems.error(
            "B534",
            f"ON gives no key to ask lookup table '{join.source.name}' for",
            join.source.span,
            did_you_mean("id", columns) or f"write an equality, such as {join.source.alias}.id = …",
        )
    for value in keys.values():
        if sources_read(value) - {0}:
            binder.problems.error(
                "B534",
                f"lookup table '{join.source.name}' is asked before streams are joined: its key is of the first",
                value.span,
                "name the stream whose column is the key first in FROM",
            )
    return AskPlan(
        join.source.name, column, tuple(keys), tuple(keys.values()), join.kind == "left", _together(rest)
    )


def _key(part: Bound, column: str) -> tuple[str, Bound] | None:
    """The table's column that the condition sets equal to a value of the event."""
    if not isinstance(part, Op) or part.name != "=":
        return None
    for mine, other in (part.args, part.args[::-1]):
        if not isinstance(mine, Op) or mine.name != "field" or mine.args[0] != carrier(column):
            continue
        if not any(isinstance(node, Read) and node.column == column for node in other.walk()):
            return str(mine.extra), other
    return None


def _together(parts: Sequence[Bound]) -> Bound | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    return Op("and", tuple(parts), span=parts[0].span)

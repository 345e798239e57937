"""Joins with tables that a store outside answers for:
`FROM reading LEFT JOIN device ON reading.dev = device.id`.

Such a join happens before the event enters the rule. The event carries the row that was found in a column of
its own, so to the rest of the rule it is an event of one stream: `device.site` is a field of that column.
For a subquery over such a table the event carries all rows that were found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sql import syntax as ast
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.place import Place
from sql.binder.scope import Site, SourceScope
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problems, Span, did_you_mean
from sql.functions.internal import ROW_VALUE
from sql.plan.bound import Apply, Bound, Const, Op, Read, conjuncts, sources_read
from sql.plan.clauses import ItemPlan, JoinPlan
from sql.plan.logical import Plan
from sql.plan.lookup_plan import MARK, LookupPlan, carrier
from sql.plan.rewriting import with_sources
from sql.record import replace
from sql.types import Type

ON = Place("ON", analytics=False)

INSTEAD = "insert the rows into a stream"


def split(select: ast.Select, catalog: Catalog) -> tuple[ast.Select, tuple[ast.Join, ...]]:
    """The statement without the joins with tables of stores, and these joins."""
    joins = tuple(join for join in select.joins if _is_in_store(join.source.name, catalog))
    return replace(select, joins=tuple(join for join in select.joins if join not in joins)), joins


def _is_in_store(name: str, catalog: Catalog) -> bool:
    stream = catalog.streams.get(name)
    return stream is not None and stream.kind == "store"


def scopes(joins: Sequence[ast.Join], catalog: Catalog) -> list[SourceScope]:
    """The tables as names see them: behind the sources of the statement."""
    return [
        SourceScope(
            join.source.alias,
            join.source.name,
            catalog.streams[join.source.name].columns,
            carrier=MARK + join.source.alias,
        )
        for join in joins
    ]


def check(problems: Problems, joins: Sequence[ast.Join], instead: str | None) -> None:
    """Report joins with such tables where no event waits for an answer.
    `instead`: see `refuse`; None where events wait."""
    for join in joins:
        if instead is not None:
            refuse(problems, join.source.name, join.source.span, instead)
        elif join.kind not in ("inner", "left") or join.on is None:
            problems.error(
                "B534",
                f"lookup table '{join.source.name}' is joined by INNER JOIN or LEFT JOIN with ON",
                join.source.span,
                f"for example LEFT JOIN {join.source.name} ON … = {join.source.alias}.id",
            )


def instead_of_waiting(select: ast.Select, site: Site) -> str | None:
    """The hint for a statement whose events cannot wait for answers before they enter it; None if
    they can."""
    first = select.source
    is_inside = site.context is not None or site.outer is not None or site.on_demand
    if isinstance(first, ast.StreamSource) and not is_inside and not select.lots:
        if first.pattern is not None:
            return f"{INSTEAD}, INSERT INTO found SELECT … FROM pattern […], and ask in a rule over it"
        stream = site.catalog.streams.get(first.name)
        if stream is None or not stream.is_relation:
            return None
        return f"{INSTEAD}, INSERT INTO changed SELECT * FROM {first.name}, and ask in a rule over it"
    return "join it in a rule over a stream, and insert the rows into a stream that this one reads"


def refuse(problems: Problems, table: str, span: Span, instead: str) -> None:
    """Report such a table where no event waits for its answer, and what to write `instead`."""
    problems.error("B534", f"lookup table '{table}' cannot be asked here", span, instead)


def bind_joins(
    binder: ExpressionBinder, lookup_joins: Sequence[ast.Join], joins: Sequence[JoinPlan]
) -> tuple[LookupPlan, ...]:
    """The plans of these joins with tables of stores. A problem if ON has no key, or a key that the first
    stream does not have. `joins`: those of streams."""
    for join in lookup_joins if any(join.kind in ("right", "full") for join in joins) else ():
        binder.problems.error(
            "B534",
            f"lookup table '{join.source.name}' is asked before streams are joined, "
            "which RIGHT and FULL JOIN would turn round",
            join.source.span,
            "use INNER or LEFT JOIN",
        )
    return tuple(_bound(binder, join) for join in lookup_joins)


def _bound(binder: ExpressionBinder, join: ast.Join) -> LookupPlan:
    column = MARK + join.source.alias
    condition = binder.condition(join.on, ON)
    keys, rest = _keyed(condition, lambda part: _key(part, column))
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
                f"lookup table '{join.source.name}' is asked before streams are joined: "
                "its key is of the first",
                value.span,
                "name the stream whose column is the key first in FROM",
            )
    return LookupPlan(join.source.name, column, tuple(keys), tuple(keys.values()), join.kind == "left", rest)


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


def _keyed(
    condition: Bound | None, key_of: Callable[[Bound], tuple[str, Bound] | None]
) -> tuple[dict[str, Bound], Bound | None]:
    """The keys that a condition gives, each once, by the table's columns, and the rest of the condition."""
    keys: dict[str, Bound] = {}
    rest: list[Bound] = []
    for part in conjuncts(condition):
        key = key_of(part)
        if key is None or key[0] in keys:
            rest.append(part)
        else:
            keys[key[0]] = key[1]
    return keys, Op("and", tuple(rest), span=rest[0].span) if len(rest) > 1 else next(iter(rest), None)


def refuse_as_sources(problems: Problems, sources: Sequence[ast.Source], streams: Sequence[Stream]) -> None:
    """Report such tables in FROM of a statement, which waits for events."""
    for source, stream in zip(sources, streams, strict=True):
        if stream.kind == "store":
            problems.error(
                "B534",
                f"lookup table '{stream.name}' has no events: it is asked for rows",
                source.span,
                f"join it in a rule over a stream: FROM … LEFT JOIN {stream.name} ON …; "
                "what else needs the rows reads the stream that this rule inserts into",
            )


def without_answers(items: Sequence[ItemPlan], plans: Sequence[LookupPlan]) -> tuple[ItemPlan, ...]:
    """The items without the rows that events carry: a whole event shows its own columns alone."""
    return tuple([_own_columns(item, [plan.column for plan in plans]) for item in items] if plans else items)


def _own_columns(item: ItemPlan, carried: list[str]) -> ItemPlan:
    value = item.value
    if not isinstance(value, Read) or value.column is not None:
        return item
    if item.name is None:
        return replace(item, excluded=tuple(dict.fromkeys((*item.excluded, *carried))))
    if value.type is not Type.OBJECT:
        return item
    return replace(item, value=Apply(ROW_VALUE, (value,), type=Type.OBJECT, span=value.span))


# --- subqueries ---------------------------------------------------------------------------------------------


def carried(
    problems: Problems, plan: Plan, source: ast.Source, number: int, *, reads_first: bool
) -> tuple[LookupPlan, Plan]:
    """The request of a subquery over such a table, `SELECT … FROM device WHERE device.id = reading.dev`,
    and the subquery over the rows that the event carries then.

    `number`: of such subqueries of the statement. `reads_first`: the first source around it is that of the
    statement, whose events wait for answers.
    """
    column = f"{MARK}{number}"
    keys, rest = _keyed(plan.where, _own_key) if reads_first else ({}, plan.where)
    if not keys:
        problems.error(
            "B534",
            f"WHERE gives no key to ask lookup table '{source.name}' for",
            source.span,
            f"write an equality with a column of the first stream, such as {source.alias}.id = …",
        )
    (own,) = plan.sources
    if own.windows:
        problems.error("B534", f"lookup table '{source.name}' has no data window", source.span, "remove it")
    reads = {name: columns for name, columns in plan.reads.items() if name != own.stream}
    lookup = LookupPlan(source.name, column, tuple(keys), tuple(keys.values()), keeps=True, gathers=True)
    own = replace(own, stream=column)
    return lookup, replace(plan, sources=(own,), where=rest, reads=reads)


def _own_key(part: Bound) -> tuple[str, Bound] | None:
    """The column of a subquery's source that the condition sets equal to a value
    of the first source around it."""
    if not isinstance(part, Op) or part.name != "=":
        return None
    for mine, other in (part.args, part.args[::-1]):
        if isinstance(mine, Read) and mine.source == 0 and mine.column is not None:
            value = _of_event(other)
            if value is not None:
                return mine.column, value
    return None


def _of_event(value: Bound) -> Bound | None:
    """A value that a subquery computes of the first source around it, as that source's statement writes it;
    None for one that reads anything else."""
    leaves = [node for node in value.walk() if not isinstance(node, Op | Apply | Const)]
    is_of_event = all(isinstance(node, Read) and node.source == 1 for node in leaves)
    return with_sources(value, {1: 0}) if is_of_event else None

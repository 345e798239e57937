"""Features of eKuiper's rules alone: hit counters, row numbers, the time of an event that a window shows,
joins of what a window shows, also with tables."""

from __future__ import annotations

from collections.abc import Sequence

from sql import syntax as ast
from sql.binder.binding import Binding
from sql.binder.constants import constant_value
from sql.binder.place import Place
from sql.binder.scope import Scope
from sql.catalog.streams import Stream
from sql.errors import Problems, Span
from sql.plan.bound import (
    AnalyticCall,
    Bound,
    Const,
    HitCall,
    Op,
    Read,
    Slot,
    conjuncts,
    sources_read,
)
from sql.plan.clauses import Criterion, GroupWindowPlan, ItemPlan, Numbering
from sql.plan.logical import Plan
from sql.plan.rewriting import rewritten
from sql.record import replace
from sql.types import Type

HITS = {
    "last_hit_count": ("SELECT", "WHERE", "HAVING", "WHEN"),
    "last_hit_time": ("SELECT", "WHERE", "HAVING", "WHEN"),
    "last_agg_hit_count": ("SELECT", "HAVING"),
    "last_agg_hit_time": ("SELECT", "HAVING"),
}
"""Hit counters and the clauses they count in."""


def bind_hit(binder: Binding, node: ast.Call, place: Place) -> Bound:
    """`last_hit_count()` and its like: 0 before the first hit."""
    if node.args:
        binder.problems.error("B310", f"{node.name}() takes no arguments", node.span)
    if binder.kind.epl or place.name not in HITS[node.name]:
        where = "an EPL statement" if binder.kind.epl else place.name
        message = f"{node.name}() cannot count in {where}"
        hint = f"it counts in {', '.join(HITS[node.name])} of eKuiper's rules"
        binder.problems.error("B333", message, node.span, hint)
        return Const(0)
    call = HitCall(node.name, place.name, span=node.span)
    if call not in binder.hits:
        binder.hits.append(call)
    return Slot("hit", binder.hits.index(call), type=Type.INTEGER, span=node.span)


def bind_row_number(binder: Binding, node: ast.Call, place: Place) -> Bound:
    """`row_number() OVER ([PARTITION BY …] [ORDER BY …])` in SELECT; ORDER BY may use its alias."""
    error, over = binder.problems.error, node.over or ast.Over()
    if node.args:
        error("B310", "row_number() takes no arguments", node.span)
    if place.name not in ("SELECT", "ORDER BY") or binder.kind.epl:
        message = f"row_number() cannot stand in {'an EPL statement' if binder.kind.epl else place.name}"
        error("B334", message, node.span, "it numbers the rows of one output, in SELECT of eKuiper's rules")
        return Const(1)
    if over.when is not None:
        error("B316", "OVER(WHEN …) has no effect on row_number()", over.when.span, "use WHERE or HAVING")
    inner = replace(place, name="OVER of row_number()", aggregates=True, windows=True, prevs=False)
    order_by = tuple(
        Criterion(binder.bind(order.operand, inner), order.descending, order.nulls_first)
        for order in over.order_by
    )
    numbering = Numbering(tuple(binder.bind(part, inner) for part in over.partition_by), order_by)
    if binder.kind.mode != "sample":
        message = "without a window each output is one row: row_number() is always 1"
        binder.problems.warn("B703", message, node.span, "add a window in GROUP BY")
        return Const(1, type=Type.INTEGER, span=node.span)
    if numbering not in binder.numberings:
        binder.numberings.append(numbering)
    return Slot("row_number", binder.numberings.index(numbering), type=Type.INTEGER, span=node.span)


def check_rows_back(binder: Binding, bound: Bound, span: Span) -> None:
    """Check that the number of rows lag() counts back is a constant."""
    rows = constant_value(binder.site.catalog, bound)
    if any(isinstance(node, Read) for node in bound.walk()):
        binder.problems.error("B312", "lag() needs a constant number of rows", span)
    elif rows.__class__ is int and rows < 1:
        binder.problems.error("B307", "lag() counts back at least 1 row", span)


# --- event_time() in a window -------------------------------------------------------------------------------


def with_own_times(plan: Plan) -> Plan:
    """The plan with event_time() of the rows that a window shows remembered with each event, as `latest`
    remembers a value; without this it is the end of the window, which is right beside aggregates, in groups
    and in joins."""
    shows_events = plan.mode == "sample" and not plan.joins
    shows_events = shows_events and (plan.row_kind == "plain" or plan.judges_windows)
    if not shows_events or plan.counts_groups:
        return plan
    time = Slot("event_time", type=Type.INTEGER)
    own = Slot("analytic", len(plan.analytics), type=Type.INTEGER)

    def put(bound: Bound) -> Bound:
        return rewritten(bound, lambda node: replace(own, span=node.span) if node == time else node)

    def order(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
        return tuple(replace(criterion, value=put(criterion.value)) for criterion in criteria)

    changed = replace(
        plan,
        items=tuple(replace(item, value=put(item.value)) for item in plan.items),
        order_by=order(plan.order_by),
        numberings=tuple(
            Numbering(tuple(map(put, n.partition_by)), order(n.order_by)) for n in plan.numberings
        ),
    )
    if changed == plan:
        return plan
    return replace(changed, analytics=(*plan.analytics, AnalyticCall("latest", (time,))))


# --- joins --------------------------------------------------------------------------------------------------


def check_sources(problems: Problems, select: ast.Select, streams: Sequence[Stream]) -> None:
    """Tables and joins: what can be joined, and what needs a window for it."""
    sources = select.sources
    for source, stream in zip(sources, streams, strict=True):
        if stream.kind == "lookup":
            message = f"lookup table '{stream.name}' is not declared as it must be"
            hint = "one that its source fills needs a KEY, in a rule file"
            problems.error("B532", message, source.span, hint)
        elif stream.kind == "scan" and isinstance(source, ast.LotSource):
            problems.error(
                "B533", f"table '{stream.name}' cannot be the source of a stream query", source.span
            )
        elif (
            stream.kind == "scan"
            and isinstance(source, ast.StreamSource)
            and (source.windows or source.filter)
        ):
            message = f"table '{stream.name}' takes no windows and no filter in FROM"
            hint = "RETAIN_SIZE says how many rows it keeps; put conditions into ON or WHERE"
            problems.error("B533", message, source.span, hint)
    for join in select.joins if select.windows else ():
        if join.span == join.source.span:  # a comma, which is EPL's
            message = f"a window in GROUP BY joins streams by JOIN, not by a comma: '{join.source.name}'"
            name = join.source.name
            problems.error("P012", message, join.span, f"write INNER JOIN {name} ON …, or CROSS JOIN {name}")
    if streams and all(stream.kind == "scan" for stream in streams):
        message = f"a rule reads at least one stream, and '{streams[0].name}' is a table"
        problems.error("B533", message, sources[0].span, "tables are joined to streams")
    flowing = [stream for stream in streams if stream.kind == "stream"]
    relations = [stream for stream in streams if stream.is_relation and not stream.is_filled]
    tables = len(streams) > len(flowing) + len(relations)
    if tables and len(flowing) > 1 and not select.windows:
        message = "streams joined with each other need a window"
        problems.error("B527", message, sources[1].span, "for example GROUP BY TUMBLINGWINDOW(ss, 10)")


def check_join_window(problems: Problems, window: GroupWindowPlan) -> None:
    """Refuse windows that a join cannot have: keys of one stream, and FILTER conditions that compare two."""
    if window.partition_by:
        message = "OVER(PARTITION BY …) cannot stand on a join: its key reads one stream only"
        hint = "GROUP BY groups the joined rows inside the window"
        problems.error("B525", message, window.partition_by[0].span, hint)
    for part in conjuncts(window.filter):
        if len(sources_read(part)) > 1:
            message = "FILTER chooses among the events of one stream, and this compares two"
            problems.error("B525", message, part.span, "put it into ON or WHERE")


def shared_columns(
    scope: Scope, chosen: Sequence[int], excluded: Sequence[str], span: Span
) -> list[ItemPlan]:
    """Columns that several of the joined sources declare: `*` shows that of the first
    source that has a row."""
    holders: dict[str, list[int]] = {}
    for index in chosen:
        for name in scope.sources[index].columns or {}:
            holders.setdefault(name, []).append(index)
    return [
        ItemPlan(name, _first_present(scope, indexes, name, span))
        for name, indexes in holders.items()
        if len(indexes) > 1 and name not in excluded
    ]


def _first_present(scope: Scope, indexes: Sequence[int], name: str, span: Span) -> Bound:
    *earlier, last = indexes
    parts: list[Bound] = []
    for index in earlier:
        absent = Op("isnull", (scope.read_all(index, span),), type=Type.BOOLEAN, span=span)
        parts += [Op("not", (absent,), type=Type.BOOLEAN, span=span), scope.read(index, name, span)]
    return Op("case", (*parts, scope.read(last, name, span)), type=parts[1].type, span=span)

"""Relations in SELECT: where they may stand, `into table`, and the shape of what is
inserted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from sql import syntax as ast
from sql.binder.catalog_names import unknown_column
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.scope import Scope
from sql.catalog.streams import Catalog, Stream
from sql.errors import NOWHERE, Problems, Span, did_you_mean
from sql.plan.bound import AggregateCall, Bound, Read, Slot
from sql.plan.clauses import IntoTable, ItemPlan
from sql.plan.declared import AggregateColumn, WindowDeclaration
from sql.plan.logical import Plan
from sql.record import replace
from sql.types import Type


def check_sources(problems: Problems, sources: Sequence[ast.Source], streams: Sequence[Stream]) -> None:
    """Named windows have their data windows already; tables drive nothing; a unidirectional
    stream keeps nothing."""
    for source, stream in zip(sources, streams, strict=True):
        if not isinstance(source, ast.StreamSource):
            continue
        if stream.is_relation and source.windows:
            problems.error(
                "B543",
                f"'{stream.name}' keeps its rows itself: it takes no data window here",
                source.windows[0].span,
                "leave the window out",
            )
        if stream.kind == "table" and source.unidirectional:
            problems.error(
                "B544", f"table '{stream.name}' drives no join: nothing of it arrives", source.span
            )
        if source.unidirectional and source.windows:
            problems.error(
                "B544",
                "a unidirectional stream keeps nothing: it takes no data window",
                source.span,
                "leave one of the two out",
            )


# --- into table ---------------------------------------------------------------------------------------------


def bind_into(
    binder: ExpressionBinder,
    select: ast.Select,
    group_by: tuple[Bound, ...],
    items: tuple[ItemPlan, ...],
) -> IntoTable | None:
    """Which column of the table each aggregate of the statement is; problems where they do not fit."""
    if select.into_table is None:
        return None
    problems, catalog = binder.problems, binder.site.catalog
    stream = catalog.streams.get(select.into_table)
    if stream is None or stream.kind != "table":
        problems.error(
            "B202",
            f"unknown table '{select.into_table}'",
            select.span,
            did_you_mean(select.into_table, catalog.relations),
        )
        return None
    declaration = catalog.relations[stream.name].declaration
    wanted = [declaration.columns[key] for key in declaration.keys]
    if len(wanted) != len(group_by) or not all(map(Type.accepts, wanted, (key.type for key in group_by))):
        keys = ", ".join(declaration.keys) or "nothing"
        problems.error(
            "B546", f"table '{stream.name}' is keyed by {keys}: GROUP BY must give just that", select.span
        )
    columns: dict[int, str] = {}
    for item in items:
        if isinstance(item.value, Slot) and item.value.kind == "aggregate":
            name = item.name or ""
            columns[item.value.key] = name
            _check_column(
                problems, select, declaration.aggregates.get(name), name, binder.aggregates[item.value.key]
            )
    if len(columns) < max(1, len(binder.aggregates)):
        problems.error("B547", "into table selects aggregates, each as a column of the table", select.span)
        return None
    if len({call.shows for call in binder.aggregates if isinstance(call.shows, int)}) > 1:
        message = "the aggregates of one statement put events of one source into a table"
        problems.error("B547", message, select.span, "write a statement for each source")
    sets = binder.grouping.sets or (tuple(range(len(group_by))),)
    return IntoTable(stream.name, tuple(columns[index] for index in sorted(columns)), sets)


def with_own_aggregates(binder: ExpressionBinder, items: tuple[ItemPlan, ...]) -> tuple[ItemPlan, ...]:
    """The items of `into table`: each reads an aggregate of its own, also where two columns of the table have
    the same one."""
    taken: set[int] = set()
    out = []
    for item in items:
        value = item.value
        if isinstance(value, Slot) and value.kind == "aggregate":
            if value.key in taken:
                binder.aggregates.append(binder.aggregates[value.key])
                value = replace(value, key=len(binder.aggregates) - 1)
            taken.add(value.key)
        out.append(replace(item, value=value))
    return tuple(out)


def _check_column(
    problems: Problems, select: ast.Select, column: AggregateColumn | None, name: str, call: AggregateCall
) -> None:
    if column is None:
        problems.error("B547", f"the table has no aggregating column '{name}'", call.span)
        return
    if call.group_by is not None:
        message = "an aggregate of a table has no keys of its own: each row has one value"
        problems.error("B547", message, call.span, "put them into GROUP BY, or write a statement for each")
        return
    alike = column.definition is call.definition and column.distinct == call.distinct
    whole = column.definition.whole_row and not column.types
    if not alike or (len(column.types) != len(call.args) and not whole) or column.constants != call.constants:
        problems.error(
            "B547",
            f"column '{name}' is not declared as this aggregate",
            call.span,
            f"it is {column.definition.name}(…)",
        )
    elif not all(map(_holds, column.types, (value.type for value in call.args))):
        problems.error("B547", f"column '{name}' aggregates values of another type", call.span)
    windowed = (
        select.source is not None and isinstance(select.source, ast.StreamSource) and select.source.windows
    )
    if column.definition.name in NEEDS_WINDOW and not windowed:
        problems.error(
            "B548",
            f"{column.definition.name} into a table needs a data window: values leave it",
            call.span,
            f"declare {column.definition.name}ever, or add a window in FROM",
        )


NEEDS_WINDOW = ("min", "max", "fmin", "fmax")
"""Aggregates that have another form, `minever`, for streams of which nothing leaves."""


def _holds(declared: Type, given: Type) -> bool:
    return declared.accepts(given) and not (declared is Type.FLOAT and given is Type.INTEGER)


def with_criteria(select: ast.Select, catalog: Catalog) -> ast.Select:
    """`sorted(*) as s` of `into table`: what the table's column is sorted by stands in its declaration."""
    relation = catalog.relations.get(select.into_table or "")
    if relation is None or relation.kind != "table":
        return select
    items = []
    for item in select.items:
        column = relation.declaration.aggregates.get(item.alias or "")
        if column is not None and column.criteria and isinstance(item.expr, ast.Call):
            items.append(replace(item, expr=replace(item.expr, args=column.criteria)))
        else:
            items.append(item)
    return replace(select, items=tuple(items))


# --- insert into --------------------------------------------------------------------------------------------

Selector = Literal["istream", "rstream", "irstream"]


def sides(select: ast.Select) -> tuple[Selector, Literal["istream", "rstream"] | None]:
    """The rows that a query computes, and those it emits where they are fewer:
    `insert irstream into S select …` inserts rows that leave and emits none of them.
    A stream query computes one side alone."""
    selector = select.selector or "istream"
    inserts = selector if select.insert_into is None or select.lots else select.insert_into.selector
    if selector == "irstream":
        return selector, None
    return (selector, None) if inserts == selector else ("irstream", selector)


def check_target(select: ast.Select, plan: Plan, scope: Scope) -> None:
    """Report rows of `insert into` that do not fit what is known of their target."""
    problems, target = scope.site.problems, select.insert_into
    stream = None if target is None else scope.site.catalog.streams.get(target.stream)
    if target is None or stream is None or stream.columns is None:
        return
    if stream.is_relation:
        check_columns(stream, plan.items, scope, target)
    elif not stream.derived:
        check_declared(problems, stream, plan.items, target)
    elif plan.output_columns is not None:
        _check_shape(problems, stream, plan.output_columns, target)


def check_declared(problems: Problems, stream: Stream, items: Sequence[ItemPlan], at: ast.Node) -> None:
    """Report items that are no column of a declared stream, or of another type: it would lose their values.
    Of a row that `*` gives, the stream takes the columns that it has."""
    if stream.columns is None:
        return
    for item in items:
        if item.name is None:
            continue
        known, given = stream.columns.get(item.name), item.value.type
        if known is None:
            hint = "declare the column, or leave it out here"
            unknown_column(problems, item.name, stream.name, stream.columns, _place(item, at), hint)
        elif not (known.accepts(given) or given.accepts(known)):
            message = f"column '{item.name}' of '{stream.name}' is {known.value}, not {given.value}"
            problems.error("B549", message, _place(item, at))


def _check_shape(
    problems: Problems, stream: Stream, columns: dict[str, Type], target: ast.InsertInto
) -> None:
    for name, kind in columns.items():
        known = (stream.columns or {}).get(name)
        if known is not None and not (known.accepts(kind) or kind.accepts(known)):
            problems.error(
                "B549",
                f"column '{name}' of '{target.stream}' is {known.value}, not {kind.value}: another "
                "statement inserts it so",
                target.span,
            )


def check_columns(stream: Stream, items: Sequence[ItemPlan], scope: Scope, at: ast.Node) -> None:
    """Report items that are no column of a relation, or of a type it does not take, or that may not be
    written. Of a row that `*` alone gives, a named window takes the columns that it has."""
    problems = scope.site.problems
    relation = scope.site.catalog.relations[stream.name].declaration
    aggregates = getattr(relation, "aggregates", {})
    takes_part = isinstance(relation, WindowDeclaration) and [item.name for item in items] == [None]
    for name, kind, exact, span in _given(items, scope, at):
        if name not in relation.columns:
            if takes_part:
                continue
            unknown_column(problems, name, stream.name, relation.columns, span)
        elif name in aggregates:
            problems.error("B550", f"column '{name}' of '{stream.name}' is written by into table only", span)
        elif not relation.columns[name].accepts(kind):
            known = relation.columns[name].value
            problems.error("B549", f"column '{name}' of '{stream.name}' is {known}, not {kind.value}", span)
        else:
            _check_width(problems, stream, name, exact, span)


def _place(item: ItemPlan, at: ast.Node) -> Span:
    """The place of a selected value; that of the statement for one that is not written."""
    return at.span if item.value.span == NOWHERE else item.value.span


def _check_width(problems: Problems, stream: Stream, name: str, given: str, span: Span) -> None:
    """EPL's int and long are two types, of which neither holds the other."""
    declared = next((column.type.name for column in stream.declared if column.name == name), "")
    kinds = {"int": "int", "integer": "int", "long": "long"}
    if given in kinds and declared in kinds and kinds[given] != kinds[declared]:
        problems.error(
            "B549",
            f"column '{name}' of '{stream.name}' is {declared}, not {given}",
            span,
            f"declare it {given}",
        )


def _given(items: Sequence[ItemPlan], scope: Scope, at: ast.Node) -> Iterator[tuple[str, Type, str, Span]]:
    """Name, type, declared type name and place of every column that the items give."""
    for item in items:
        value = item.value
        if item.name is not None:
            exact = ""
            if isinstance(value, Read) and value.column is not None:
                declared = scope.sources[value.source].declared.get(value.column)
                exact = "" if declared is None else declared.name
            yield item.name, value.type, exact, _place(item, at)
        elif isinstance(value, Read):
            for name, kind in (scope.sources[value.source].columns or {}).items():
                if name not in item.excluded and not name.startswith("$"):
                    yield name, kind, "", _place(item, at)

"""Binding declarations of relations: named windows, tables, indexes."""

from __future__ import annotations

from collections.abc import Sequence

from sql import syntax as ast
from sql.aggregates import base as aggregates
from sql.algebra.windows.catalog import WINDOWS
from sql.binder.binding import no_subquery
from sql.binder.catalog_names import place_of, unknown_column, unknown_relation
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.scope import Scope, Site, SourceScope
from sql.binder.select_binder import SelectBinder
from sql.binder.windows.from_clause import bind_windows
from sql.catalog.declaration_checks import check_columns
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problems, Span, SqlError, did_you_mean
from sql.functions import registry as functions
from sql.functions.refused import REFUSED
from sql.plan.clauses import SourcePlan
from sql.plan.declared import (
    AggregateColumn,
    Bounds,
    IndexDeclaration,
    TableDeclaration,
    WindowDeclaration,
)
from sql.plan.options import RuleOptions
from sql.record import replace
from sql.syntax.declared_expressions import written_out
from sql.types import Type, type_named, type_names


def declared_name(catalog: Catalog, problems: Problems, name: str, span: Span) -> None:
    """Report a name that a stream or relation has already; one that only `insert into`
    has made may be taken."""
    known = catalog.streams.get(name)
    if known is not None and not (known.derived and not known.is_relation):
        problems.error(
            "B551", f"'{name}' is declared already, as a {known.kind}", span, "choose another name"
        )


# --- named windows ------------------------------------------------------------------------------------------


def bind_window(statement: ast.CreateWindow, site: Site) -> tuple[WindowDeclaration, Stream]:
    """A named window and its place in the catalog. Raises SqlError."""
    problems = site.problems
    declared_name(site.catalog, problems, statement.name, statement.span)
    shape = _row_type(statement, site)
    stream = replace(
        shape,
        name=statement.name,
        kind="window",
        derived=False,
        options={},
        timestamp=None,
        context=statement.context,
    )
    if not statement.windows:
        problems.error(
            "B552",
            "a named window says which rows it keeps",
            statement.span,
            f"for example {statement.name}#keepall",
        )
    scope = Scope(site, [SourceScope(stream.name, stream.name, stream.columns)])
    source = ast.StreamSource(
        statement.name, statement.name, None, statement.windows, statement.retain, span=statement.span
    )
    windows = bind_windows(ExpressionBinder(scope, no_subquery("B209", "here")), source)
    for window in windows:
        if WINDOWS[window.name].role == "derived":
            message = f"a named window holds events, and '{window.name}' makes one row of them"
            hint = f"leave it out; a statement that reads {statement.name} can aggregate"
            problems.error("B552", message, window.span, hint)
    site.raise_if_any()
    plan = SourcePlan(
        stream.name,
        stream.name,
        windows=windows,
        union=statement.retain == "union",
        columns=stream.columns,
    )
    bounds = Bounds(site.options.max_rows)
    return WindowDeclaration(stream.name, plan, stream.columns or {}, statement.like, bounds), stream


def _row_type(statement: ast.CreateWindow, site: Site) -> Stream:
    """The columns of a named window, as a stream."""
    problems, catalog = site.problems, site.catalog
    if statement.columns:
        return columns_as_stream(statement.columns, catalog, problems)
    if statement.select is not None:
        if statement.select.selector is not None:
            message = (
                f"{statement.select.selector} has no effect here: SELECT names the columns of the window"
            )
            problems.error("B604", message, statement.select.span, "remove the word")
        plan = SelectBinder(statement.select, site).bind()
        return Stream(statement.name, plan.output_columns or {})
    known = catalog.streams.get(statement.like or "")
    if known is None or known.columns is None:
        what = "unknown type" if known is None else "a type without declared columns:"
        hint = did_you_mean(statement.like or "", catalog.streams)
        if known is not None:
            hint = f"a window has columns: declare those of '{known.name}', or write them behind AS"
        at = place_of(statement.like or "", statement.span, site.text)
        problems.error("B202", f"{what} '{statement.like}'", at, hint)
        return Stream(statement.name, {})
    if statement.fill and known.kind != "window":
        problems.error("B553", f"'{known.name}' is no named window: it has no rows to insert", statement.span)
    return known


def columns_as_stream(
    columns: tuple[ast.ColumnDefinition, ...], catalog: Catalog, problems: Problems
) -> Stream:
    """Listed columns as a stream."""
    check_columns(problems, columns, catalog.streams)
    found = {column.name: catalog.type_of(column.type) for column in columns}
    return Stream("", found, declared=columns, fields=catalog.fields_of(columns))


# --- tables -------------------------------------------------------------------------------------------------


def bind_table(statement: ast.CreateTable, site: Site) -> tuple[TableDeclaration, Stream]:
    """A table and its place in the catalog. Raises SqlError."""
    problems, catalog = site.problems, site.catalog
    declared_name(catalog, problems, statement.name, statement.span)
    check_columns(problems, statement.columns, catalog.streams)
    columns: dict[str, Type] = {}
    found: dict[str, AggregateColumn] = {}
    for column in statement.columns:
        if column.aggregate is not None:
            _check_columns_of(column, catalog, problems)
            aggregate = _aggregate(column.aggregate, problems)
            if aggregate is not None:
                found[column.name] = aggregate
                columns[column.name] = aggregate.definition.result_type(aggregate.types or (Type.OBJECT,))
            if column.primary:
                problems.error("B554", f"column '{column.name}' aggregates: it is no key", column.span)
        elif column.type is not None:
            columns[column.name] = catalog.type_of(column.type)
    site.raise_if_any()
    keys = tuple(column.name for column in statement.columns if column.primary)
    plain = tuple(
        ast.ColumnDefinition(column.name, column.type)
        for column in statement.columns
        if column.type is not None
    )
    stream = Stream(statement.name, columns, kind="table", declared=plain, context=statement.context)
    return TableDeclaration(statement.name, columns, keys, found, Bounds(site.options.max_rows)), stream


def _check_columns_of(column: ast.TableColumn, catalog: Catalog, problems: Problems) -> None:
    """Report a name in an aggregation that is neither a type nor a column of its event type."""
    of = catalog.streams.get(column.of or "")
    if column.of is not None and of is None:
        hint = did_you_mean(column.of, catalog.streams)
        problems.error("B202", f"unknown schema '{column.of}'", column.span, hint)
        return
    for node in column.aggregate.walk() if column.aggregate is not None else ():
        if not isinstance(node, ast.Column) or type_named(node.name) is not None:
            continue
        if of is None:
            hint = did_you_mean(node.name, type_names()) or "columns of an event type need @type(E)"
            problems.error("B101", f"unknown type '{node.name}'", node.span, hint)
        elif of.columns is not None and node.name not in of.columns:
            unknown_column(problems, node.name, of.name, of.columns, node.span)


def _aggregate(call: ast.Call, problems: Problems) -> AggregateColumn | None:
    definition = aggregates.lookup(call.name)
    if definition is None and call.name in REFUSED:
        problems.error("B313", f"{call.name}() is refused: {REFUSED[call.name]}", call.span)
        return None
    if definition is None:
        problems.error(
            "B204", f"unknown aggregate '{call.name}'", call.span, did_you_mean(call.name, aggregates.names())
        )
        return None
    given = call.args
    if definition.takes_filter(len(given)):
        if _type_of(given[-1]) not in (Type.BOOLEAN, None):
            problems.error("B301", f"the filter of {call.name}() is boolean", given[-1].span)
        given = given[:-1]
    least = sum(not part.optional and not part.variadic for part in definition.parameters)
    most = definition.most_arguments
    if len(given) < least or (most is not None and len(given) > most):
        wanted = f"at least {least}" if len(given) < least else f"at most {most}"
        plural = "" if wanted.endswith(" 1") else "s"
        message = f"{call.name}() takes {wanted} argument{plural}, not {len(given)}"
        problems.error("B310", message, call.span, "name the types of what it aggregates: sum(double)")
        return None
    args = [arg for arg in given if not isinstance(arg, ast.Star)]
    first_constant = len(definition.parameters) - definition.constants
    constants = [getattr(arg, "value", None) for arg in args[first_constant:]] if definition.constants else []
    values = args[:first_constant] if definition.constants else args
    types = [_type_of(arg) for arg in values]
    _check_types(call, definition, values, problems)
    if any(kind is None for kind in types):
        return AggregateColumn(
            definition, (Type.ANY,) * len(values), tuple(constants), call.distinct, tuple(values)
        )
    return AggregateColumn(
        definition, tuple(kind or Type.ANY for kind in types), tuple(constants), call.distinct
    )


def _check_types(
    call: ast.Call, definition: aggregates.Aggregate, values: Sequence[ast.Expr], problems: Problems
) -> None:
    """Report a type that the aggregate does not take."""
    for value, parameter in zip(values, definition.parameters, strict=False):
        given, wanted = _type_of(value), parameter.type
        if given is not None and not wanted.accepts(given):
            what = f"{call.name}() takes {wanted.value} for '{parameter.name}', not {given.value}"
            problems.error("B301", what, value.span)


def _type_of(node: ast.Expr) -> Type | None:
    """The type an argument stands for; None for a column of an event type, as in `sorted(n desc)`."""
    return type_named(node.name) if isinstance(node, ast.Column) else None


# --- indexes ------------------------------------------------------------------------------------------------


def bind_index(statement: ast.CreateIndex, catalog: Catalog, text: str) -> IndexDeclaration:
    """An index over a named window or table. Raises SqlError."""
    site = Site(catalog, RuleOptions(), text)
    problems, relation = site.problems, catalog.relations.get(statement.relation)
    if relation is None:
        unknown_relation(site, statement.relation, statement.span)
        site.raise_if_any()
    assert relation is not None
    for column in statement.columns:
        if column.name not in relation.columns:
            unknown_column(problems, column.name, statement.relation, relation.columns, column.span)
    ordered = [column for column in statement.columns if column.kind == "btree"]
    for column in ordered[1:]:
        problems.error("B555", "an index has one btree column at most", column.span, "make it hash")
    names = [column.name for column in statement.columns]
    for place, column in enumerate(statement.columns):
        if column.name in names[:place]:
            problems.error("B555", f"'{column.name}' stands twice in the index", column.span, "name it once")
    if statement.name in relation.named:
        problems.error(
            "B551", f"'{statement.relation}' has an index '{statement.name}' already", statement.span
        )
    site.raise_if_any()
    equal = tuple(column.name for column in statement.columns if column.kind == "hash")
    return IndexDeclaration(statement.name, equal, ordered[0].name if ordered else None, statement.unique)


def declare_expression(catalog: Catalog, statement: ast.CreateExpression, text: str) -> None:
    """Declare an expression for all statements behind it. SqlError where its name is that of a function,
    or where it calls itself. A further name of a function, an alias, may be taken."""
    name = statement.name
    function = functions.lookup(name) or aggregates.lookup(name)
    if function is not None and function.name == name:
        message = f"'{name}' is a function already"
        raise SqlError.of("B551", message, statement.span, "choose another name", text=text)
    body = statement.body.walk()
    own = next((node for node in body if isinstance(node, ast.Call) and node.name == name), None)
    if own is not None:
        raise SqlError.of("B310", f"expression '{name}' calls itself", own.span, text=text)
    catalog.expressions[name] = written_out(statement, catalog.expressions, text)

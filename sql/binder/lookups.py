"""Lookup tables of eKuiper: `CREATE TABLE … WITH (KIND="lookup", KEY="…", TYPE="…")`.

A lookup table holds the newest row of each key that its source has given, as a table with that primary key.
Joins look rows up in it by hash and never wait for a store.
"""

from __future__ import annotations

from dataclasses import replace

from sql.binder.rule import RelationPlan
from sql.catalog.declared import Declared
from sql.catalog.streams import Catalog, Stream
from sql.errors import Problem, Span, SqlError, did_you_mean
from sql.plan.logical import Plan, SourcePlan
from sql.plan.options import RuleOptions
from sql.plan.relations import Bounds, TableDeclaration
from sql.syntax import CreateStream


def plan_lookup(statement: CreateStream, text: str, catalog: Catalog, options: RuleOptions) -> RelationPlan:
    """The plan of a lookup table, which takes the place of its stream in the catalog. Raises SqlError."""
    stream = catalog.streams[statement.name]
    declared = TableDeclaration(
        stream.name, dict(stream.columns or {}), (_key(statement, stream),), bounds=Bounds(options.max_rows)
    )
    catalog.streams[stream.name] = replace(stream, kind="table")
    catalog.relations[stream.name] = Declared(declared)
    source = SourcePlan(stream.name, stream.name)
    return RelationPlan(Plan(text, "delta", (source,), (), options, reads={stream.name: None}, acts=declared))


def _key(statement: CreateStream, stream: Stream) -> str:
    """The column that rows are looked up by."""
    option = next((option for option in statement.options if option.key.upper() == "KEY"), None)
    if option is None:
        span = next((item.span for item in statement.options if item.key.upper() == "KIND"), statement.span)
        raise SqlError(
            [
                Problem(
                    "B532",
                    f"lookup table '{stream.name}' has no KEY",
                    span,
                    'write KEY="column", by which rows are looked up',
                )
            ]
        )
    if stream.columns is None:
        raise SqlError(
            [
                Problem(
                    "B532",
                    f"lookup table '{stream.name}' declares no columns",
                    Span(0, 1),
                    "name its columns with their types",
                )
            ]
        )
    if str(option.value) not in stream.columns:
        raise SqlError(
            [
                Problem(
                    "B532",
                    f"KEY '{option.value}' is no column of '{stream.name}'",
                    option.span,
                    did_you_mean(str(option.value), stream.columns),
                )
            ]
        )
    return str(option.value)

"""The tables and named windows of a file: texts by name, or mappings with bounds."""

from __future__ import annotations

from rules.read.reading import LoadedStream, LoadedTable, Reading, declared, named
from rules.read.streams import read_table
from rules.source.document import Path
from rules.tables import Table
from sql.binder.rule import plan_relation
from sql.catalog.streams import Catalog
from sql.errors import SqlError
from sql.language import parse
from sql.plan.declared import Bounds
from sql.plan.options import RuleOptions
from sql.plan.relation_plan import RelationPlan
from sql.syntax import CreateStream


def read_tables(reading: Reading, data: object) -> tuple[list[LoadedTable], list[LoadedStream]]:
    """The tables under `tables`, a mapping of names to declarations: relations, and those whose rows a source
    or a store has."""
    relations: list[LoadedTable] = []
    outside: list[LoadedStream] = []
    for name, item in named(reading, data, "tables", "tables").items():
        path: Path = ("tables", name)
        if _is_outside(item):
            outside += read_table(reading, item, path, str(name))
        else:
            relations += _relation(reading, item, path, str(name))
    return relations, outside


def _relation(reading: Reading, item: object, path: Path, name: str) -> list[LoadedTable]:
    if isinstance(item, dict) and "sql" not in item:
        reading.report.error(
            "R102",
            f"the table '{name}' needs 'sql' or 'kind'",
            reading.document.key_span(path),
            "sql: create table … declares a relation; kind: lookup, or scan, a table whose rows are outside",
        )
        return []
    table = declared(reading, Table, item, path)
    return [] if table is None else [table]


def _is_outside(item: object) -> bool:
    """True if a table has external rows: the declaration names its kind, or is eKuiper's text."""
    if isinstance(item, dict):
        if "kind" in item:
            return True
        item = item.get("sql") if list(item) == ["sql"] else None
    if not isinstance(item, str):
        return False
    try:
        return isinstance(parse(item)[0], CreateStream)
    except SqlError:
        return False


def bind(loaded: LoadedTable, catalog: Catalog, zone: str) -> RelationPlan:
    """The plan of a table, which is declared in the catalog. Raises SqlError with spans in its text."""
    table = loaded.declaration
    bounds = Bounds(table.max_rows, table.when_full == "oldest", table.ttl)
    return plan_relation(
        loaded.name, table.sql, catalog, RuleOptions(zone=zone, max_rows=table.max_rows), bounds
    )

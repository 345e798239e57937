"""The tables and named windows of a file: texts by name, or mappings with bounds."""

from __future__ import annotations

from typing import Any

from rules.reading import LoadedTable, Reading
from rules.source.document import Path
from rules.tables import Table
from rules.validation import describe, validate
from sql.binder.rule import RelationPlan, plan_relation
from sql.catalog.streams import Catalog
from sql.plan.options import RuleOptions
from sql.plan.relations import Bounds


def read_tables(reading: Reading, data: Any) -> list[LoadedTable]:
    """The tables under `tables`: a mapping of names to declarations."""
    if data is None:
        return []
    document, report = reading.document, reading.report
    if not isinstance(data, dict):
        report.error(
            "R103",
            f"'tables' must be a mapping of names to tables, not {describe(data)}",
            document.value_span(("tables",)),
        )
        return []
    found = []
    for name, item in data.items():
        path: Path = ("tables", name)
        table = validate(Table, {"sql": item} if isinstance(item, str) else item, document, path, report)
        if table is not None:
            sql_path = path if isinstance(item, str) else (*path, "sql")
            found.append(LoadedTable(str(name), table, sql_path, document.key_span(path), reading))
    return found


def bind(loaded: LoadedTable, catalog: Catalog, zone: str) -> RelationPlan:
    """The plan of a table, which is declared in the catalog. Raises SqlError with spans in its text."""
    table = loaded.table
    bounds = Bounds(table.max_rows, table.when_full == "oldest", table.ttl)
    return plan_relation(
        loaded.name, table.sql, catalog, RuleOptions(zone=zone, max_rows=table.max_rows), bounds
    )

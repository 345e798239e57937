"""The tables, named windows and variables of contexts that rule files declare: made, bounded anew, emptied
where their declaration is another, gone.

A table outlives the rules that use it. While a rule that no file has any more goes on for its
grace, so do its tables.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from rules.compiled import CompiledTable
from rules.drive import make_table, statement_of
from sql import Catalog, Engine, Plan
from sql.errors import CorruptState
from sql.plan.declared import Bounds, LookupDeclaration, VariableDeclaration
from sql.record import replace
from sql.types import Saved

log = logging.getLogger("penstock.tables")


class DeployedTables:
    """The tables that an engine has because rule files declare them. Used by the gateway loop only."""

    def __init__(self, engine: Engine) -> None:
        self.running: dict[str, CompiledTable] = {}
        self._engine = engine

    def declare(self, wanted: Mapping[str, CompiledTable], now_ms: int) -> frozenset[str]:
        """Make the tables that are wanted; the names of those that were there and are empty now."""
        emptied = set()
        for name, table in wanted.items():
            known = self.running.get(name)
            if known is None:
                self._make(name, table, now_ms, None)
            elif _computed(known) != _computed(table):
                note = "its declaration is another now"
                log.warning("table.emptied", extra={"table": name, "file": table.path, "note": note})
                self._make(name, table, now_ms, None)
                emptied.add(name)
            elif bounds_of(known) != bounds_of(table):
                self._change_bounds(name, bounds_of(table))
            self.running[name] = table
        return frozenset(emptied)

    def _change_bounds(self, name: str, bounds: Bounds) -> None:
        for part in self._engine.catalog.relations[name].all_parts():
            part.bounded.change(bounds, part.content())
        self._engine.timers.schedule_all()

    def restore(self, wanted: Mapping[str, CompiledTable], states: Mapping[str, Any], now_ms: int) -> None:
        """Make the tables with the states of a snapshot, in its order."""
        order = dict.fromkeys([*(name for name in states if name in wanted), *wanted])
        for name in order:
            try:
                self._make(name, wanted[name], now_ms, states.get(name))
            except CorruptState as error:
                log.error("table.state_unusable", extra={"table": name, "error": str(error)})
                self._make(name, wanted[name], now_ms, None)
            self.running[name] = wanted[name]

    def _make(self, name: str, table: CompiledTable, now_ms: int, state: Saved) -> None:
        make_table(self._engine, name, table, now_ms, state)

    def drop(self, wanted: Collection[str], kept: Collection[str], used: Collection[str]) -> None:
        """Remove the tables that no file declares and no running rule uses; files in
        `kept` have a last version."""
        for name, table in list(self.running.items()):
            if name not in wanted and table.path not in kept and name not in used:
                self._engine.remove(statement_of(name))
                del self.running[name]
                log.info("table.dropped", extra={"table": name})

    @property
    def plans(self) -> list[Plan]:
        """The plans of all tables, for the feeds of their sources."""
        return [table.relation.plan for table in self.running.values()]

    def states(self) -> dict[str, Any]:
        """The states of all tables, in the order of their deployment; rows are in blocks (`RowBlocks`)."""
        found = {}
        for name in self.running:
            try:
                found[name] = self._engine.queries[statement_of(name)].snapshot()
            except Exception as error:
                log.error(
                    "table.snapshot_failed", extra={"table": name, "error": repr(error)}, exc_info=error
                )
        return found

    def asked(self) -> dict[str, dict[str, int]]:
        """By table of a store: the number of answers it keeps, and the counts of its requests by outcome."""
        tables = self._engine.catalog.lookup_tables
        return {
            name: {
                "answers": len(tables[name].kept),
                "waiting": len(tables[name].waiting),
                **tables[name].counts,
            }
            for name in self.running
            if name in tables
        }

    def counters(self) -> dict[str, dict[str, int]]:
        """By table whose rows are here: the number of rows, and the counters of its bounds."""
        found = {}
        for name in self.running:
            catalog = self._engine.catalog
            if name in catalog.lookup_tables or name not in catalog.relations:
                continue
            relation = catalog.relations[name]
            parts = [part.bounded.counts() for part in relation.all_parts()]
            totals = {key: sum(part[key] for part in parts) for key in ("refused", "expired", "dropped")}
            found[name] = {"rows": len(relation), **totals}
        return found


def bounds_of(table: CompiledTable) -> Bounds:
    """The bounds of a table; the default ones where there are none."""
    declared = table.relation.declaration
    return Bounds() if isinstance(declared, LookupDeclaration | VariableDeclaration) else declared.bounds


def _computed(table: CompiledTable) -> Any:
    """The parts of a declaration that must be unchanged for the rows to fit it."""
    relation = table.relation
    declared = relation.declaration
    is_bounded = not isinstance(declared, LookupDeclaration | VariableDeclaration)
    rows = replace(declared, bounds=Bounds()) if is_bounded else declared
    return relation.plan.fingerprint, relation.indexes, rows


def declare_streams(engine: Engine, wanted: Catalog) -> None:
    """Make the streams, expressions and variables of rule files known to the engine."""
    catalog = engine.catalog
    engine.roster.forget_indexes()  # a type may inherit others than before
    for stream in wanted.streams.values():
        catalog.add(stream)
    for name, variable in wanted.variables.items():
        catalog.variables.setdefault(name, variable)
    catalog.expressions = dict(wanted.expressions)

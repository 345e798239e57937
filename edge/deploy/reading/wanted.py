"""The rules, streams and tables that should run, as plain data."""

from __future__ import annotations

from rules.compiled import CompiledRule, CompiledTable
from rules.problems import FileProblem
from sql.catalog.streams import Catalog
from sql.engine.deployment import prepare
from sql.record import Record, field


class Wanted(Record):
    """The state that should run after a reading of the directory.

    rules     by id; those that are checked but not to be started (`triggered: false`) are in `stopped`
    catalog   the streams, expressions and variables of the files in use; `tables`: their tables
    paths     the files in use, by the names that problems have
    kept      files whose last good version is used, because of problems
    texts     the files in use, by name: compiling them again gives the same
    problems  of all files as they stand, notes included
    """

    rules: dict[str, CompiledRule]
    catalog: Catalog
    tables: dict[str, CompiledTable]
    paths: frozenset[str] = frozenset()
    stopped: tuple[str, ...] = ()
    kept: frozenset[str] = frozenset()
    texts: dict[str, str] = field(default_factory=dict)
    problems: list[FileProblem] = field(default_factory=list)
    files: tuple[str, ...] = ()

    def prepare(self) -> None:
        """Import what these rules and tables run on; may be called from any thread."""
        for rule in self.rules.values():
            prepare(rule.plan)
        for table in self.tables.values():
            prepare(table.relation.plan)

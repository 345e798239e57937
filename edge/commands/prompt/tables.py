"""The tables and named windows of the prompt over recorded data: what writes them, and the rows that the data
leaves in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from rules.compiled import Compiled, CompiledTable
from rules.drive import Arrival, drive, driven, in_runs, tables_of
from sql import Catalog, Emission, Engine, Plan, RuleOptions
from sql.binder.rule import plan_relation
from sql.plan.declared import Bounds
from sql.plan.relation_plan import relations_of, updated_by, variables_of, written_by
from sql.syntax import CreateTable, CreateWindow


class PromptTables:
    """Those of rule files, and those declared at the prompt."""

    def __init__(self, compiled: Compiled | None = None) -> None:
        self._tables: dict[str, CompiledTable] = {}
        self._writers: dict[str, Plan] = {}
        """What writes them, and the streams made by `insert into`, in order."""
        if compiled is not None:
            self._tables |= compiled.tables
            plans = {name: rule.plan for name, rule in compiled.rules.items()}
            self._writers |= {
                name: plan for name, plan in plans.items() if relations_of(plan) or tables_of(plan, compiled)
            }

    def declare(self, statement: CreateTable | CreateWindow, text: str, catalog: Catalog) -> None:
        """A table or named window of the prompt. Raises SqlError."""
        relation = plan_relation(statement.name, text, catalog, RuleOptions(), Bounds())
        self._tables[statement.name] = CompiledTable("", relation)

    def drop(self, name: str) -> None:
        """A table is declared no more, and what reads or writes it does not run."""
        self._tables.pop(name, None)
        self._writers = {key: plan for key, plan in self._writers.items() if name not in relations_of(plan)}

    def keep(self, plan: Plan) -> bool:
        """Let a statement write a table, or change a stream, from now on; whether it is one that does."""
        if not written_by(plan) & self._tables.keys() and updated_by(plan) is None:
            return False
        self._writers[f"statement {len(self._writers)}"] = plan
        return True

    def run(self, name: str, plan: Plan, catalog: Catalog, arrivals: Iterable[Arrival]) -> Iterator[Emission]:
        """The emissions of a query over the data, beside the statements that write what it reads."""
        read = {*relations_of(plan), *variables_of(plan), *plan.streams}
        is_fed = any(read & written_by(other) for other in self._writers.values())
        plans, tables = {name: plan}, {}
        if is_fed or read & self._tables.keys():
            plans, tables = {**self._writers, name: plan}, self._tables
        runs = in_runs(_of(arrivals, plans, tables), 1)
        emissions = drive(Engine(catalog), plans, runs, tables)
        return (emission for emission in emissions if emission.rule == name)

    def filled(self, catalog: Catalog, arrivals: Iterable[Arrival]) -> Engine:
        """An engine whose tables hold what the data leaves in them."""
        engine = Engine(catalog)
        runs = in_runs(_of(arrivals, self._writers, self._tables))
        deque(drive(engine, self._writers, runs, self._tables, is_open=True), maxlen=0)
        if engine.now_ms is None:  # no event came
            deque(driven(engine, self._writers, (), self._tables, {"now_ms": 0}), maxlen=0)
        return engine


def _of(
    arrivals: Iterable[Arrival], plans: Mapping[str, Plan], tables: Mapping[str, CompiledTable]
) -> Iterator[Arrival]:
    """The events of the streams that are read."""
    read = {stream for plan in plans.values() for stream in plan.streams}
    read |= {stream for table in tables.values() for stream in table.relation.plan.streams}
    return (arrival for arrival in arrivals if arrival[1] in read)

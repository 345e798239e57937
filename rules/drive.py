"""Drive rules with recorded events: time moves with the data, and timers fire between the events at their
instants.

The cloud's backfill takes events of many streams one by one; `penstock replay` pushes those of its only
stream many at a time, with their instants (`Engine.push_instants`), which gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rules.catalog import CompiledTable
from rules.compile import Compiled, CompiledRule
from sql import Emission, Engine, Plan
from sql.binder.rule import relations_of

Arrival = tuple[int, str, dict[str, Any]]
"""The arrival time of an event (ms), its stream, and the event."""


State = dict[str, Any] | None
"""The state of an engine between two events, as plain data (`state_of`):
its clock, variables, tables and rules."""


def drive(
    engine: Engine,
    plans: Mapping[str, Plan],
    arrivals: Iterable[Arrival],
    tables: Mapping[str, CompiledTable] | None = None,
    state: State = None,
    *,
    is_open: bool = False,
) -> Iterator[Emission]:
    """Deploy tables and rules at the first arrival, or with the state that earlier events have left;
    push all, and close the windows that are open at the end,
    unless they stay open (`is_open`) for more events."""
    now_ms: int | None = None
    if state is not None:
        now_ms = int(state["now_ms"])
        _deploy(engine, plans, tables or {}, now_ms, state)
    for at_ms, stream, row in arrivals:
        if now_ms is None:
            now_ms = at_ms
            _deploy(engine, plans, tables or {}, now_ms, {})
        now_ms = max(now_ms, at_ms)  # an event that was recorded late arrives now, whatever its timestamp
        yield from advance(engine, now_ms)
        yield from engine.push(stream, [row], now_ms)
    if now_ms is not None and not is_open:
        yield from engine.flush(now_ms)


def _deploy(
    engine: Engine,
    plans: Mapping[str, Plan],
    tables: Mapping[str, CompiledTable],
    now_ms: int,
    state: Mapping[str, Any],
) -> None:
    engine.catalog.restore_variables(state.get("variables", {}))
    for name, table in tables.items():
        make_table(engine, name, table, now_ms, state.get("tables", {}).get(name))
    for name, plan in plans.items():
        engine.deploy(name, plan, now_ms, state.get("rules", {}).get(name))


def state_of(engine: Engine, plans: Mapping[str, Plan], tables: Mapping[str, CompiledTable]) -> State:
    """The state of an engine that `drive` has driven, as plain data; None before the first event."""
    if engine.now_ms is None:
        return None
    return {
        "now_ms": engine.now_ms,
        "variables": engine.catalog.variables_snapshot(),
        "tables": {name: engine.snapshot(statement_of(name)) for name in tables},
        "rules": {name: engine.snapshot(name) for name in plans},
    }


def advance(engine: Engine, to_ms: int) -> Iterator[Emission]:
    """Fire every timer due by `to_ms`, each at its own instant."""
    while (deadline_ms := engine.next_deadline_ms()) is not None and deadline_ms < to_ms:
        yield from engine.advance(deadline_ms)
        if engine.next_deadline_ms() == deadline_ms:
            break
    yield from engine.advance(to_ms)


def deploy_with(engine: Engine, rule: CompiledRule, compiled: Compiled, now_ms: int) -> list[Plan]:
    """Start a rule with the tables it reads, and the rules that write these; the plans of all of them."""
    tables, rules = {*relations_of(rule.plan)} & compiled.tables.keys(), {rule.id}
    while True:
        near = {name for name, other in compiled.rules.items() if relations_of(other.plan) & tables}
        reached = {
            table for name in near for table in relations_of(compiled.rules[name].plan)
        } & compiled.tables.keys()
        if near <= rules and reached <= tables:
            break
        tables, rules = tables | reached, rules | near
    for name, table in compiled.tables.items():
        if name in tables:
            make_table(engine, name, table, now_ms)
    plans = [other.plan for name, other in compiled.rules.items() if name in rules]
    plans += [table.relation.plan for name, table in compiled.tables.items() if name in tables]
    for name, other in compiled.rules.items():
        if name in rules:
            engine.deploy(name, other.plan, now_ms)
    return plans


def make_table(
    engine: Engine, name: str, table: CompiledTable, now_ms: int, state: dict[str, Any] | None = None
) -> None:
    """Make a table with its indexes, and with the rows of a snapshot. Raises CorruptState if the snapshot
    does not fit."""
    engine.deploy(statement_of(name), table.relation.plan, now_ms, state)
    for index in table.relation.indexes:
        engine.catalog.relations[name].create_index(
            index.name, index.equal, index.ordered, unique=index.unique
        )


def statement_of(table: str) -> str:
    """The engine's name of the statement that makes a table; no rule can have such a name."""
    return f"table {table}"

"""Drive rules with recorded events: time moves with the data, and timers fire between the events at their
instants.

Events come in runs of one stream, each with the instants of its events:
the engine takes as many at once as its rules allow (`Engine.push_instants`),
which gives the rows of events pushed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from rules.compiled import Compiled, CompiledRule, CompiledTable
from sql import Emission, Engine, Plan
from sql.plan.relation_plan import relations_of, updated_by, variables_of

Arrival = tuple[int, str, dict[str, Any]]
"""The arrival time of an event (ms), its stream, and the event."""


class Run(NamedTuple):
    """Consecutive events of one stream, with the arrival time of each (ms)."""

    stream: str
    rows: list[Any]
    instants: list[int]


RUN_MAX = 1_024
"""The most events of a run."""

State = dict[str, Any] | None
"""The state of an engine between two events, as plain data (`state_of`):
its clock, variables, tables and rules."""


def in_runs(arrivals: Iterable[Arrival], longest: int = RUN_MAX) -> Iterator[Run]:
    """The events as runs of at most `longest`; with 1 none waits for the next one.

    >>> [*in_runs([(1, "a", {"n": 1}), (2, "a", {"n": 2}), (2, "b", {})])]
    [Run(stream='a', rows=[{'n': 1}, {'n': 2}], instants=[1, 2]), Run(stream='b', rows=[{}], instants=[2])]
    """
    for stream, of_stream in groupby(arrivals, key=itemgetter(1)):
        while found := list(islice(of_stream, longest)):
            yield Run(stream, [row for _, _, row in found], [at_ms for at_ms, _, _ in found])


def drive(
    engine: Engine,
    plans: Mapping[str, Plan],
    runs: Iterable[Run],
    tables: Mapping[str, CompiledTable] | None = None,
    state: State = None,
    *,
    is_open: bool = False,
) -> Iterator[Emission]:
    """Deploy tables and rules at the first arrival, or with the state that earlier events have left;
    push all, and close the windows that are open at the end,
    unless they stay open (`is_open`) for more events.

    `Singles` come as they are; `sql.emission.apart` makes emissions of them."""
    yield from chain.from_iterable(driven(engine, plans, runs, tables, state))
    if not is_open:
        yield from at_end(engine)


def driven(
    engine: Engine,
    plans: Mapping[str, Plan],
    runs: Iterable[Run],
    tables: Mapping[str, CompiledTable] | None = None,
    state: State = None,
) -> Iterator[list[Emission]]:
    """The emissions of each run of events, with rules deployed as by `drive`."""
    now_ms: int | None = None
    if state is not None:
        now_ms = int(state["now_ms"])
        _deploy(engine, plans, tables or {}, now_ms, state)
    for stream, rows, instants in runs:
        if now_ms is None:
            now_ms = instants[0]
            _deploy(engine, plans, tables or {}, now_ms, {})
        # An event that was recorded late arrives now, whatever its timestamp.
        rising = list(accumulate(instants, max, initial=now_ms))[1:]
        now_ms = rising[-1]
        yield engine.push_instants(stream, rows, rising).parts


def at_end(engine: Engine) -> list[Emission]:
    """The emissions of windows that are open at the end of all events."""
    return [] if engine.now_ms is None else engine.flush(engine.now_ms).parts


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


class RuleSet(NamedTuple):
    """The rules, one of them the rule itself, and the tables that run together with a rule."""

    rules: list[CompiledRule]
    tables: dict[str, CompiledTable]

    @property
    def streams(self) -> list[str]:
        """The streams that they read."""
        plans = [rule.plan for rule in self.rules] + [table.relation.plan for table in self.tables.values()]
        return list(dict.fromkeys(name for plan in plans for name in plan.streams))

    def deploy(self, engine: Engine, now_ms: int) -> None:
        """Start them, the tables first."""
        for name, table in self.tables.items():
            make_table(engine, name, table, now_ms)
        for rule in self.rules:
            engine.deploy(rule.id, rule.plan, now_ms)


def rule_set(
    rule: CompiledRule, compiled: Compiled, feeds: Callable[[CompiledRule], Iterable[str]] = lambda other: ()
) -> RuleSet:
    """A rule with the tables it reads, the rules that write these, and those that change events of its
    streams. `feeds` names the streams that the rows of another rule enter: those that feed its streams are in
    the set as well."""
    near = {rule.id}
    rules: set[str] = set()
    while rules != near:
        rules = near
        found = [compiled.rules[name].plan for name in rules]
        streams = {stream for plan in found for stream in plan.streams}
        tables = {table for plan in found for table in tables_of(plan, compiled)}
        near = rules | {
            name
            for name, other in compiled.rules.items()
            if tables_of(other.plan, compiled) & tables
            or updated_by(other.plan) in streams
            or not streams.isdisjoint(feeds(other))
        }
    return RuleSet(
        [other for name, other in compiled.rules.items() if name in rules],
        {name: table for name, table in compiled.tables.items() if name in tables},
    )


def tables_of(plan: Plan, compiled: Compiled) -> frozenset[str]:
    """The tables of the files that a statement reads or writes, and the variables of its context."""
    return (relations_of(plan) | variables_of(plan)) & compiled.tables.keys()


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

"""The plan of a statement: the result of the binder, before any operator exists.

Plain data. `sql.compiler` translates it to code, `explain` draws it, the reference evaluator computes it as
the definition of the result. A plan holds those of its subqueries, so that all kinds stand in this file.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from sql.errors import Problem
from sql.plan.bound import AggregateCall, AnalyticCall, Bound, HitCall, PrevCall, slot_kinds
from sql.plan.clauses import (
    Criterion,
    GroupWindowPlan,
    IntoTable,
    ItemPlan,
    JoinPlan,
    Keys,
    Numbering,
    OutputPlan,
    SourcePlan,
    SpreadPlan,
    is_outer,
)
from sql.plan.context_plan import ContextPlan
from sql.plan.declared import Declaration
from sql.plan.lookup_plan import LookupPlan
from sql.plan.options import RuleOptions
from sql.plan.pattern_plan import PatternPlan
from sql.plan.signature import Parts, state_signature
from sql.record import Record, field
from sql.syntax import InsertInto
from sql.types import Type

Mode = Literal["delta", "sample", "lots"]
"""The output of the windows: changes (EPL), samples of the content (eKuiper), or one net lot per activation
(stream queries)."""

STATE_VERSIONS: dict[Mode, int] = {"delta": 2, "lots": 2, "sample": 2}
"""By mode: increased if the form of stored states changes, so that older ones are not restored."""

AGGREGATE_HITS = ("last_agg_hit_count", "last_agg_hit_time")
"""Hit counters that make a SELECT an aggregate query, with one row per group."""

RowKind = Literal["plain", "aggregate", "event", "group", "group_event"]
"""The kinds of statements of epl.md 5.2: one row per event; only aggregates, one row per update; columns and
aggregates, one row per event; only keys and aggregates, one row per changed group; other columns and groups,
one row per event."""


SubqueryKind = Literal["scalar", "row", "rows", "values", "list", "exists"]


class SubqueryPlan(Record):
    """A subquery: its own plan, evaluated over the current content of its source.

    scalar  the value of the one row's one column; NULL without a row and for several
    row     the one row of several columns as an object
    rows    all rows, each an object, for methods of lists and of groups; NULL without a row
    values  the values of the one column, for methods of lists; NULL without a row
    list    the values of the one column, for IN, ANY and ALL
    exists  TRUE if there is a row

    `correlated`: its expressions read sources of the statement around it, which follow its own.
    """

    plan: Plan
    kind: SubqueryKind = "scalar"
    correlated: bool = False
    outer: tuple[str, ...] = ()
    """The aliases of the sources around it."""
    asks_equal: bool = False
    """True if of a list nothing is asked but whether a value is in it."""


# --- actions ------------------------------------------------------------------------------------------------

Assignments = tuple[tuple[str, Bound], ...]
"""`set` of a relation, `then set` of variables: the column or variable and its value, in order."""


class ActionPlan(Record):
    """One action of a branch. `into` None: into, or on, the relation itself."""

    kind: Literal["insert", "update", "delete"]
    into: str | None = None
    items: tuple[ItemPlan, ...] = ()
    assignments: Assignments = ()
    where: Bound | None = None


class BranchPlan(Record):
    """A branch of merge, or the only branch of update and delete. `matched` None: whatever rows there are."""

    matched: bool | None
    condition: Bound | None
    actions: tuple[ActionPlan, ...]


class SetPlan(Record):
    """`on … set`: variables and their new values, in order."""

    beside = Record.beside | {"subqueries"}

    trigger: SourcePlan
    assignments: Assignments
    subqueries: tuple[SubqueryPlan, ...] = ()


class TriggerPlan(Record):
    """A statement that an event of `trigger` executes on a relation. Expressions read the event as source 0,
    the row of the relation as source 1, and the row before the statement, `initial`, as source 2.

    shows   the emitted rows: `rows` (the rows deleted, as inserts) or `changes` (+changed −old)
    """

    beside = Record.beside | {"subqueries"}

    trigger: SourcePlan | None
    relation: str
    alias: str
    where: Bound | None
    branches: tuple[BranchPlan, ...]
    shows: Literal["rows", "changes"]
    subqueries: tuple[SubqueryPlan, ...] = ()
    relations: frozenset[str] = frozenset()


class SplitPlan(Record):
    """A split stream: rows for the streams whose condition holds, the first or all of them."""

    beside = Record.beside | {"subqueries"}

    trigger: SourcePlan
    branches: tuple[ActionPlan, ...]
    all: bool
    subqueries: tuple[SubqueryPlan, ...] = ()


class UpdateStreamPlan(Record):
    """`update istream`: events that pass the filter get new values, or are dropped, before another statement
    reads them."""

    trigger: SourcePlan
    assignments: Assignments
    drops: bool


class ChoicePlan(Record):
    """A select over the current rows of relations: an on-select (`trigger` is source 0 of the plan), or on
    demand."""

    beside = Record.beside | {"plan"}

    plan: Plan
    trigger: bool
    delete: bool = False


Acts = TriggerPlan | SplitPlan | ChoicePlan | SetPlan | UpdateStreamPlan
"""The actions of a statement on events, or on relations and variables at events."""


# --- statements ---------------------------------------------------------------------------------------------


class Plan(Record, dict=True):
    """A whole query. Fields follow the order of work."""

    beside = Record.beside | {"output_fields"}

    text: str
    mode: Mode
    sources: tuple[SourcePlan, ...]
    items: tuple[ItemPlan, ...]
    options: RuleOptions
    name: str | None = None
    joins: tuple[JoinPlan, ...] = ()
    analytics: tuple[AnalyticCall, ...] = ()
    window: GroupWindowPlan | None = None
    where: Bound | None = None
    group_by: tuple[Bound, ...] = ()
    grouping_sets: tuple[Keys, ...] = ()
    """The sets of keys in whose groups an event counts; () where it counts in the group of all keys."""
    aggregates: tuple[AggregateCall, ...] = ()
    prevs: tuple[PrevCall, ...] = ()
    hits: tuple[HitCall, ...] = ()
    numberings: tuple[Numbering, ...] = ()
    spreads: tuple[SpreadPlan, ...] = ()
    subqueries: tuple[SubqueryPlan, ...] = ()
    row_kind: RowKind = "plain"
    having: Bound | None = None
    order_by: tuple[Criterion, ...] = ()
    limit: Bound | None = None
    offset: Bound | None = None
    output: OutputPlan | None = None
    distinct: bool = False
    selector: Literal["istream", "rstream", "irstream"] = "istream"
    insert: InsertInto | None = None
    posts: Literal["istream", "rstream"] | None = None
    """The rows that it emits, where `insert into` takes those of the other side as well
    and `selector` is both."""
    timestamp: str | None = None
    """The event-time column, None in processing time."""
    timestamps: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """The event-time column of each stream, with the pattern of text time stamps. Tables have none."""
    output_columns: dict[str, Type] | None = None
    output_fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns of the events that a column of the output holds, one or a list, where they are known."""
    reads: dict[str, frozenset[str] | None] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()
    uses_meta: bool = False
    context: ContextPlan | None = None
    """The context in whose partitions it runs, one instance each."""
    priority: int = 0
    """The priority among the statements that an event meets; higher ones run first."""
    into_table: IntoTable | None = None
    relations: frozenset[str] = frozenset()
    """The named windows and tables that the query reads: as sources, by subqueries, by key."""
    lookups: tuple[LookupPlan, ...] = ()
    """The requests to external stores before an event of the first source enters the rule."""
    acts: Acts | Declaration | None = None
    """The action of a triggered statement, or the declaration of a declaring one; None for a query."""
    states: tuple[str, ...] = ()
    """The names of items that no row shows: actions get them beside the row (`Emission.states`).
    Only a query that inserts its rows nowhere has some."""

    @property
    def trigger(self) -> SourcePlan | None:
        """The source whose events a statement acts on, of one that is no query."""
        acts = self.acts
        triggered = TriggerPlan | SplitPlan | SetPlan | UpdateStreamPlan
        return acts.trigger if isinstance(acts, triggered) else None

    @property
    def drivers(self) -> tuple[int, ...]:
        """The places of the unidirectional streams: of a join with some, their events alone make rows."""
        return tuple(place for place, source in enumerate(self.sources) if source.unidirectional)

    @property
    def emits_as_made(self) -> bool:
        """True if its emissions leave as they are made: to no other stream, without columns beside."""
        return self.insert is None and self.posts is None and not self.states

    @property
    def orders_rows(self) -> bool:
        """True if rows are put in order, made distinct, spread or cut before they are emitted."""
        return bool(self.order_by or self.distinct or self.spreads or self.limit or self.offset)

    @property
    def reads_beside(self) -> bool:
        """True if expressions read more than rows and groups: earlier events, hits, subqueries."""
        return bool(self.analytics or self.prevs or self.hits or self.subqueries)

    @property
    def reads_columns_in_text(self) -> bool:
        """True if nothing but its compiled text reads columns of the rows: no subquery, and no aggregate that
        shows whole rows or has keys of its own."""
        reads_rows = any(call.definition.needs_event or call.group_by for call in self.aggregates)
        return not (self.reads_beside or reads_rows)

    @property
    def expressions(self) -> list[Bound]:
        """The expressions that are evaluated for an event, and for its row."""
        found = [*(item.value for item in self.items), *self.group_by, self.where, self.having]
        found += [arg for call in self.aggregates for arg in call.args]
        found += [arg for call in self.analytics for arg in call.args]
        found += [*(source.filter for source in self.sources), *(order.value for order in self.order_by)]
        return [node for node in found if node is not None]

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams that the query reads, each once."""
        return tuple(self.reads)

    @property
    def patterns(self) -> list[PatternPlan]:
        """The patterns of its sources and of its trigger."""
        sources = self.sources if self.trigger is None else (*self.sources, self.trigger)
        return [source.pattern for source in sources if source.pattern is not None]

    @property
    def pattern_streams(self) -> frozenset[str]:
        """The streams whose events its patterns take: of a named window these are rows inserted into it."""
        return frozenset(stream for pattern in self.patterns for stream in pattern.streams)

    def columns(self, stream: str) -> frozenset[str] | None:
        """The columns of `stream` that the query reads; None if it needs the whole message."""
        return self.reads.get(stream, frozenset())

    @property
    def columns_with_states(self) -> dict[str, Type] | None:
        """The output columns, and those that actions get beside the rows."""
        beside = {item.name: item.value.type for item in self.items if item.name in self.states}
        return None if self.output_columns is None else self.output_columns | beside

    @property
    def judges_windows(self) -> bool:
        """True if HAVING decides about whole windows, whose rows are then all emitted: without groups, and
        without aggregates in SELECT."""
        if self.mode != "sample" or self.having is None or self.group_by:
            return False
        clauses = {hit.clause for hit in self.hits if hit.name in AGGREGATE_HITS}
        shown = (*(item.value for item in self.items), *(order.value for order in self.order_by))
        is_judged = bool(self.aggregates or clauses) and "SELECT" not in clauses
        return is_judged and "aggregate" not in slot_kinds(*shown)

    @property
    def counts_groups(self) -> bool:
        """True if hit counters alone make it an aggregate query, with one row per group."""
        return any(hit.name in AGGREGATE_HITS for hit in self.hits) and not self.judges_windows

    @property
    def insert_into(self) -> str | None:
        """The stream that receives the results, if any."""
        return self.insert.stream if self.insert else None

    @property
    def reads_tuples(self) -> bool:
        """True if expressions read rows composed of several: those of a join, or the matches of a pattern, by
        tag."""
        return bool(self.joins) or any(
            source.rows_are_tuples and source.columns is None for source in self.sources
        )

    @property
    def side_columns(self) -> list[dict[str, Type] | None]:
        """The columns of each source that an expression can read; the tags of a pattern are sources to it."""
        if self.reads_tuples and not self.joins:
            return [tag.columns for source in self.sources if source.pattern for tag in source.pattern.tags]
        return [source.columns for source in self.sources]

    @property
    def keeps_groups(self) -> bool:
        """True if its groups stay for ever: no window removes events from them."""
        windows = any(source.keeps for source in self.sources)
        is_grouped = bool(self.group_by and (self.aggregates or self.grouping_sets))
        return self.mode == "delta" and is_grouped and not windows

    @cached_property
    def fingerprint(self) -> str:
        """The hash of the plan's state: equal for plans between which the state can be carried over."""
        return state_signature(self.state_parts)

    @property
    def state_parts(self) -> Parts:
        """The parts that the state depends on, in a fixed order, each with the name of its clause."""
        return [
            ("the kind of query", [self.mode, STATE_VERSIONS[self.mode]]), ("FROM", self.sources),
            ("the windows of FROM", [source.windows for source in self.sources]), ("JOIN", self.joins),
            ("analytic functions", self.analytics), ("the window of GROUP BY", self.window),
            ("WHERE", self.where), ("GROUP BY", self.group_by), ("aggregates", self.aggregates),
            ("prev()", self.prevs), ("the kind of rows", self.row_kind), ("OUTPUT", self.output),
            ("last_hit functions", self.hits), ("columns that spread", self.spreads),
            ("the context", self.context),
            ("subqueries", [[part.plan.fingerprint, part.kind, part.correlated] for part in self.subqueries]),
            ("the stream's timestamp", self.timestamp), ("the option zone", self.options.zone),
            ("the option lateTolerance", self.options.late_tolerance_ms), ("INTO TABLE", self.into_table),
            *([("GROUP BY", self.grouping_sets)] if self.grouping_sets and not self.into_table else []),
            *([("JOIN", self.lookups)] if self.lookups else []),
            *([("JOIN", "rows between")] if _keeps_between(self) else []),
            *([] if self.acts is None else [("ON", self.acts)]),
        ]  # fmt: skip


def _keeps_between(plan: Plan) -> bool:
    """True if the plan keeps rows of some sources that wait for the others: those between the steps of an
    outer join."""
    return plan.mode != "sample" and len(plan.joins) > 1 and is_outer(plan.joins) and not plan.drivers

"""The plan of a query: the result of the binder, before any operator exists.

Plain data. `sql.compiler` translates it to code, `explain` draws it, the reference evaluator computes it as
the definition of the result.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from sql.errors import NOWHERE, Problem, Span
from sql.plan.bound import AggregateCall, AnalyticCall, Bound, HitCall, PrevCall, Read, Slot
from sql.plan.options import RuleOptions
from sql.plan.pattern_plan import PatternPlan
from sql.plan.recognize_plan import RecognizePlan
from sql.plan.signature import state_signature
from sql.record import Record, field
from sql.syntax import CronField, InsertInto
from sql.types import Type

if TYPE_CHECKING:
    from sql.plan.asks import AskPlan
    from sql.plan.context_plan import ContextPlan
    from sql.plan.relation_plan import Acts, Declaration

Mode = Literal["delta", "sample", "lots"]
"""The output of the windows: changes (EPL), samples of the content (eKuiper), or one net lot per activation
(stream queries)."""


class Criterion(Record):
    """One sort criterion."""

    value: Bound
    descending: bool = False
    nulls_first: bool | None = None


class Numbering(Record):
    """`row_number() OVER (PARTITION BY … ORDER BY …)`: numbers the rows of one output that pass HAVING."""

    partition_by: tuple[Bound, ...] = ()
    order_by: tuple[Criterion, ...] = ()


class PeriodArgument(Record):
    """A length of time not yet evaluated: (amount, unit) parts; a single part without unit is seconds."""

    parts: tuple[tuple[Bound, str], ...]
    span: Span = NOWHERE


class WindowPlan(Record):
    """One EPL window: its name in the window catalog and its bound arguments, by parameter name."""

    name: str
    arguments: dict[str, Any]
    span: Span = NOWHERE

    def __hash__(self) -> int:
        return hash(self.name)


class PredicatePlan(Record):
    """The predicate of expr and expr_batch with its aggregates."""

    test: Bound
    aggregates: tuple[AggregateCall, ...] = ()


class GroupWindowPlan(Record):
    """An eKuiper window. `kind` is its name in the catalog. Lengths in ms, `size` and `interval` in rows."""

    kind: str
    length_ms: int = 0
    hop_ms: int = 0
    delay_ms: int = 0
    timeout_ms: int = 0
    size: int = 0
    interval: int = 0
    begin: Bound | None = None
    emit: Bound | None = None
    filter: Bound | None = None
    when: Bound | None = None
    partition_by: tuple[Bound, ...] = ()
    span: Span = NOWHERE


class LotWindowPlan(Record):
    """One window of a stream query: its name in the catalog,
    and a length of time, a number of items, or neither."""

    name: str
    length: PeriodArgument | None = None
    count: Bound | None = None


class LotPlan(Record):
    """The window of a stream query: the intersection of `windows`."""

    partition_by: tuple[Bound, ...] = ()
    windows: tuple[LotWindowPlan, ...] = ()
    every_period: PeriodArgument | None = None
    every_count: Bound | None = None
    unique: tuple[Bound, ...] = ()

    @property
    def retains_all(self) -> bool:
        """True if no item ever leaves."""
        return any(window.name == "retain all" for window in self.windows)

    @property
    def is_simple(self) -> bool:
        """True if the window compiles to a loop: one window, followed by either a gate or `unique`."""
        is_gated = self.every_period is not None or self.every_count is not None
        return bool(self.windows) and not self.partition_by and not (is_gated and self.unique)


def key_names(groupwin: WindowPlan) -> list[str]:
    """The column names under which a derived window posts the keys of its groupwin."""
    keys = groupwin.arguments["keys"]
    return [
        key.column if isinstance(key, Read) and key.column else f"key{i}" for i, key in enumerate(keys, 1)
    ]


class SourcePlan(Record):
    """One source of FROM."""

    beside = Record.beside | {"columns"}

    stream: str
    alias: str
    filter: Bound | None = None
    windows: tuple[WindowPlan, ...] = ()
    union: bool = False
    lot: LotPlan | None = None
    unidirectional: bool = False
    reclaim_ms: tuple[int, int] | None = None
    columns: dict[str, Type] | None = None
    """The columns of a row of this source after its windows (derived windows change them)."""
    retained_rows: int | None = None
    """The number of newest rows that a scan table keeps, with which the rows of streams are joined. None: a
    stream."""
    pattern: PatternPlan | None = None
    """The pattern whose matches are the rows; `stream` is empty then."""
    recognize: RecognizePlan | None = None
    """The row pattern behind the windows, whose matches are the rows."""
    keeps_last: bool = False
    """True with `@IterableUnbound`: without a window the last row can be read."""
    matches_by_name: bool = False
    """True if matches are structs of their tags, as in a join; otherwise they are tuples of them, like the
    rows of a join."""
    relation: Literal["window", "table", "answer"] | None = None
    """A named window, whose changes the query processes, a table, which it only looks up, or the answer of a
    store, which the event around a subquery carries in the column `stream`."""

    def __hash__(self) -> int:
        return hash((self.stream, self.alias))

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams whose events it receives."""
        return (self.stream,) if self.pattern is None else self.pattern.streams

    @property
    def rows_are_tuples(self) -> bool:
        """True if the rows in the windows of this source are matches: tuples of the values of tags."""
        return self.pattern is not None and not self.matches_by_name

    @property
    def keeps(self) -> bool:
        """True if its events are retained: in windows of its own, or in a named window."""
        return bool(self.windows) or self.relation is not None


class JoinPlan(Record):
    """The kind and condition of the join between the source at this position + 1 and those before it."""

    kind: Literal["inner", "left", "right", "full", "cross"]
    on: Bound | None = None


class ItemPlan(Record):
    """One item of SELECT. `name` None spreads a struct or a whole event into columns, less `excluded`."""

    name: str | None
    value: Bound
    invisible: bool = False
    excluded: tuple[str, ...] = ()


class SpreadPlan(Record):
    """A function whose result is rows or columns; it works on output rows, with the values of its items.

    rows     `unnest(a)`: one row per element of the array in `items[0]`;
             structs become columns, others column `name`
    columns  `extract(o)`: the keys of the struct in `items[0]` become columns
    changes  `changed_cols(prefix, ignore_null, …)`: columns of `items` that differ from the last output
    requests `dedup_trigger(start, end, now, expire_ms)`: the row waits for the end of its span

    items    names of the values in the row (they are removed), with the column name of each;
             None for `*`, a whole row
    """

    kind: Literal["rows", "columns", "changes", "requests"]
    items: tuple[tuple[str, str | None], ...]
    name: str = ""
    prefix: str = ""
    ignore_null: bool = False
    expire_ms: int = 0


class TerminatedPlan(Record):
    """`when terminated`: output at the end of the partition, if the condition holds."""

    condition: Bound | None = None
    then_set: tuple[tuple[str, Bound], ...] = ()


class OutputPlan(Record):
    """An output limit, bound."""

    mode: Literal["default", "first", "last", "all", "snapshot"] = "default"
    after: PeriodArgument | None = None
    after_events: Bound | None = None
    every: PeriodArgument | None = None
    every_events: Bound | None = None
    at: tuple[CronField, ...] = ()
    when: Bound | None = None
    then_set: tuple[tuple[str, Bound], ...] = ()
    terminated: TerminatedPlan | None = None


class SubqueryPlan(Record):
    """A subquery: its own plan, evaluated over the current content of its source.

    scalar  the value of the one row's one column; NULL without a row and for several
    row     the one row of several columns as an object
    rows    the rows of groups, each an object
    list    the values of the one column, for IN, ANY and ALL
    exists  TRUE if there is a row

    `correlated`: its expressions read sources of the statement around it, which follow its own.
    """

    plan: Plan
    kind: Literal["scalar", "row", "rows", "list", "exists"] = "scalar"
    correlated: bool = False
    outer: tuple[str, ...] = ()
    """The aliases of the sources around it."""


class IntoTable(Record):
    """The table columns of `into table`: `columns[i]` is the table's column of the statement's aggregate i.

    `sets`: with `rollup` the grouping sets, each the indexes of its keys; the others are NULL.
    """

    table: str
    columns: tuple[str, ...]
    sets: tuple[tuple[int, ...], ...]


AGGREGATE_HITS = ("last_agg_hit_count", "last_agg_hit_time")
"""Hit counters that make a SELECT an aggregate query, with one row per group."""

EACH_EVENT = GroupWindowPlan("count", size=1, interval=1)
"""A stream joined with tables without a window: each of its events is a window of its own."""

RowKind = Literal["plain", "aggregate", "event", "group", "group_event"]
"""The kinds of statements of epl.md 5.2: one row per event; only aggregates, one row per update; columns and
aggregates, one row per event; only keys and aggregates, one row per changed group; other columns and groups,
one row per event."""


class Plan(Record, dict=True):
    """A whole query. Fields follow the order of work."""

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
    timestamp_format: str | None = None
    timestamps: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """The event-time column of each stream, with the pattern of text time stamps. Tables have none."""
    output_columns: dict[str, Type] | None = None
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
    asks: tuple[AskPlan, ...] = ()
    """The requests to external stores before an event of the first source enters the rule."""
    acts: Acts | Declaration | None = None
    """The action of a triggered statement, or the declaration of a declaring one; None for a query."""
    states: tuple[str, ...] = ()
    """The names of items that no row shows: actions get them beside the row (`Emission.states`).
    Only a query that inserts its rows nowhere has some."""

    @property
    def emits_as_made(self) -> bool:
        """True if its emissions leave as they are made: to no other stream, without columns beside."""
        return self.insert is None and self.posts is None and not self.states

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams that the query reads, each once."""
        return tuple(self.reads)

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
        clauses = {hit.clause for hit in self.hits if hit.name in AGGREGATE_HITS}
        shown = (*(item.value for item in self.items), *(order.value for order in self.order_by))
        slots = (node for value in shown for node in value.walk() if isinstance(node, Slot))
        is_judged = self.mode == "sample" and self.having is not None and bool(self.aggregates or clauses)
        is_plain = not self.group_by and "SELECT" not in clauses
        return is_judged and is_plain and not any(slot.kind == "aggregate" for slot in slots)

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
        return self.mode == "delta" and bool(self.group_by and self.aggregates) and not windows

    @cached_property
    def fingerprint(self) -> str:
        """The hash of the plan's state: equal for plans between which the state can be carried over."""
        return state_signature(self)

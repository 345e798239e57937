"""The clauses of a query, bound: sources with their windows, joins, items, criteria, output limits.

Plain data, of which `sql.plan.logical` makes whole plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from sql.errors import NOWHERE, Span
from sql.plan.bound import AggregateCall, Bound, Const, Op, Read, Slot
from sql.plan.pattern_plan import PatternPlan
from sql.plan.recognize_plan import RecognizePlan
from sql.plan.rewriting import with_parts
from sql.record import Record
from sql.syntax import CronField
from sql.types import Type


class Criterion(Record):
    """One sort criterion."""

    value: Bound
    descending: bool = False
    nulls_first: bool | None = None


Keys = tuple[int, ...]
"""The places of some keys of GROUP BY."""


class Grouping(Record):
    """The keys of GROUP BY. `sets`: the sets of keys that `rollup`, `cube` and `grouping sets` name, in the
    order of their rows; () without any of these words."""

    keys: tuple[Bound, ...] = ()
    sets: tuple[Keys, ...] = ()

    def number(self, keys: Sequence[Bound], span: Span) -> Slot:
        """The number whose binary digits say for each of some keys, in the order of GROUP BY, if the set of a
        row lacks it."""
        places = sorted(map(self.keys.index, keys), reverse=True)
        values = (sum((place not in chosen) << i for i, place in enumerate(places)) for chosen in self.sets)
        return Slot("grouping", tuple(values), type=Type.INTEGER, span=span)

    @property
    def place(self) -> Slot:
        """The place of the set of a row among the sets."""
        return Slot("grouping", tuple(range(len(self.sets))), type=Type.INTEGER)

    def shown(self, bound: Bound) -> Bound:
        """An expression as rows show it: with NULL for each key that the set of the row lacks."""
        if not self.sets:
            return bound
        if bound not in self.keys:
            return with_parts(bound, self.shown)
        lacks = self.number([bound], bound.span)
        if not any(lacks.key):
            return bound
        is_there = Op("=", (lacks, Const(0, type=Type.INTEGER)), type=Type.BOOLEAN)
        nothing = Const(None, type=Type.NULL)
        return Op("case", (is_there, bound, nothing), type=bound.type, span=bound.span)


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

    @property
    def is_each_event(self) -> bool:
        """True if it stands for no window of the text: each event is a window of its own."""
        return self.span == NOWHERE


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
    def is_gated(self) -> bool:
        """True if items enter at the points of a gate."""
        return self.every_period is not None or self.every_count is not None

    @property
    def is_simple(self) -> bool:
        """True if the window compiles to a loop: one window, followed by either a gate or `unique`."""
        return bool(self.windows) and not self.partition_by and not (self.is_gated and self.unique)


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

    @property
    def is_bare(self) -> bool:
        """True if its rows are the events of a stream as they come, of which nothing is kept."""
        is_composed = self.pattern is not None or self.recognize is not None or self.lot is not None
        return not (is_composed or self.keeps or self.keeps_last)


class JoinPlan(Record):
    """The kind and condition of the join between the source at this position + 1 and those before it."""

    kind: Literal["inner", "left", "right", "full", "cross"]
    on: Bound | None = None

    @property
    def keeps_left(self) -> bool:
        """True if rows of the sources before without a partner are joined with NULL."""
        return self.kind in ("left", "full")

    @property
    def keeps_right(self) -> bool:
        """True if rows of its own source without a partner are."""
        return self.kind in ("right", "full")


def is_outer(joins: Iterable[JoinPlan]) -> bool:
    """True if one of some joins shows rows without a partner."""
    return any(join.keeps_left or join.keeps_right for join in joins)


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


class IntoTable(Record):
    """The columns of the table of `into table`; `columns[i]` is that of the statement's aggregate i.

    `sets`: the grouping sets, of plain keys the one of all: an event counts in a row of each.
    """

    table: str
    columns: tuple[str, ...]
    sets: tuple[Keys, ...]


EACH_EVENT = GroupWindowPlan("count", size=1, interval=1)
"""A stream joined with tables without a window: each of its events is a window of its own."""

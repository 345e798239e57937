"""The syntax tree: what a statement says, before names and types are known.

Every node carries the `Span` of the text it came from. Nodes are plain frozen data; they know neither sqlglot (which
only `sql.language` sees) nor the catalog. The three languages share one tree: an eKuiper window in GROUP BY, EPL
windows in FROM and the windows of stream queries are fields of the same `Select`.

Names keep the case they were written in; function, window and keyword names are lower case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from sql.errors import NOWHERE, Span


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all nodes."""

    span: Span = field(default=NOWHERE, kw_only=True, compare=False)

    def children(self) -> Iterator[Node]:
        """Direct child nodes, in order of appearance."""
        for item in fields(self):
            yield from _nodes(getattr(self, item.name))

    def walk(self) -> Iterator[Node]:
        """This node and all below it, depth first."""
        yield self
        for child in self.children():
            yield from child.walk()


def _nodes(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


# --- expressions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expr(Node):
    """Base of all expressions."""


@dataclass(frozen=True, slots=True)
class Constant(Expr):
    """A constant: None, bool, int, float or str."""

    value: None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A name, perhaps qualified. `a.b` is Column('b', 'a'); the binder decides whether `a` is a stream or an object."""

    name: str
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Star(Expr):
    """`*`, `s.*`, `* EXCEPT(a, b)`, `* REPLACE(e AS c)`."""

    table: str | None = None
    excluded: tuple[str, ...] = ()
    replaced: tuple[SelectItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`op` is 'not', '-' or '+'."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """`op` is one of `+ - * / % & | ^ || = != < <= > >= and or is` (`is`: NULL-safe equality; `!=` for `<>` too)."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    """`x IS [NOT] NULL`."""

    operand: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expr):
    """`x [NOT] BETWEEN low AND high`, both ends included; EPL's ranges, `x in (low:high]`, say which are."""

    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True)
class In(Expr):
    """`x [NOT] IN (a, b)`; with `array` set instead of `items`: `x IN arr`."""

    operand: Expr
    items: tuple[Expr, ...] = ()
    array: Expr | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Expr):
    """`x [NOT] LIKE pattern [ESCAPE c]`; with `regexp` the pattern is a regular expression."""

    operand: Expr
    pattern: Expr
    escape: str | None = None
    negated: bool = False
    regexp: bool = False


@dataclass(frozen=True, slots=True)
class When(Node):
    """One WHEN … THEN … branch."""

    condition: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """Simple (`operand` set) or searched CASE."""

    whens: tuple[When, ...]
    operand: Expr | None = None
    default: Expr | None = None


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """`CAST(x AS type)`. eKuiper's `cast(x, "type")` arrives as a Call."""

    operand: Expr
    type_name: str


@dataclass(frozen=True, slots=True)
class Ordering(Expr):
    """`expr [ASC|DESC] [NULLS FIRST|LAST]`: ORDER BY items, and arguments of sort, rank and sorted."""

    operand: Expr
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class Over(Node):
    """`OVER([PARTITION BY …] [WHEN …] [ORDER BY …])`, clauses in any order."""

    partition_by: tuple[Expr, ...] = ()
    when: Expr | None = None
    order_by: tuple[Ordering, ...] = ()


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function call. `count(*)` has one `Star` argument. `distinct` is `f(distinct x)`.

    `filter` is EPL's `filter:expr` parameter or SQL's `f(x) FILTER(WHERE …)`; `group_by` EPL's `group_by:(…)`
    (None when absent, () for `group_by:()`).
    """

    name: str
    args: tuple[Expr, ...] = ()
    distinct: bool = False
    filter: Expr | None = None
    group_by: tuple[Expr, ...] | None = None
    over: Over | None = None
    name_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Field(Expr):
    """`base->name`, or `base.name` where base is not a plain name."""

    base: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Index(Expr):
    """`base[i]`."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Slice(Expr):
    """`base[low:high]`, either bound optional, the end excluded."""

    base: Expr
    low: Expr | None = None
    high: Expr | None = None


@dataclass(frozen=True, slots=True)
class Lambda(Expr):
    """`x => expr`."""

    parameters: tuple[str, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Method(Expr):
    """`base.name(args)` where base is an expression: EPL's enumeration methods."""

    base: Expr
    name: str
    args: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class PeriodPart(Node):
    """One `amount unit` of a period; `unit` is year, month, week, day, hour, minute, second, millisecond,
    microsecond."""

    amount: Expr
    unit: str


@dataclass(frozen=True, slots=True)
class Period(Expr):
    """A time period in words: `2 minutes 5 seconds`, `1 month`."""

    parts: tuple[PeriodPart, ...]


@dataclass(frozen=True, slots=True)
class Subquery(Expr):
    """`(select …)`; `exists` for `exists (select …)`."""

    select: Select
    exists: bool = False


# --- from -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WindowCall(Node):
    """`#name(args)`, `#ns:name(args)`, `.ns:name(args)`. `retain` is 'union' or 'intersection' on the source."""

    name: str
    args: tuple[Expr, ...] = ()
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Source(Node):
    """Base of what may stand in FROM. `name` is the stream, `alias` what the rest of the statement calls it."""

    name: str
    alias: str


@dataclass(frozen=True, slots=True)
class StreamSource(Source):
    """`Stream(filter)#window#window [retain-union] [as alias] [unidirectional]`."""

    filter: Expr | None = None
    windows: tuple[WindowCall, ...] = ()
    retain: Literal["union", "intersection"] | None = None
    unidirectional: bool = False


@dataclass(frozen=True, slots=True)
class LotSource(Source):
    """A stream query's `item in stream [partition by …] [within d [every p]] [retain n [every m]] [with unique k]`.

    `alias` is the item. `retain_all` for `retain all`. `every` belongs to `within` where that is present (seconds),
    else to `retain` (a count).
    """

    partition_by: tuple[Expr, ...] = ()
    within: Expr | None = None
    every: Expr | None = None
    retain: Expr | None = None
    retain_all: bool = False
    unique: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Join(Node):
    """A further source. `kind`: inner, left, right, full, cross; `on` None for cross and for EPL's comma join.

    A stream query's `on a equals b` arrives as `Binary('=', a, b)`.
    """

    kind: Literal["inner", "left", "right", "full", "cross"]
    source: Source
    on: Expr | None = None


# --- select -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    """One item of SELECT. `text` is the item's source text, the column name of an unnamed expression."""

    expr: Expr
    alias: str | None = None
    invisible: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class GroupWindow(Node):
    """An eKuiper window in GROUP BY, e.g. `HOPPINGWINDOW(ss, 10, 5) FILTER(WHERE …) OVER(WHEN … PARTITION BY …)`.

    `name` is lower case without the suffix: tumbling, hopping, sliding, session, count, state. A time unit argument
    arrives as `Column('ss')`.
    """

    name: str
    args: tuple[Expr, ...]
    filter: Expr | None = None
    over: Over | None = None


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    """`variable = expr` of `then set` and `on … set`."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Terminated(Node):
    """`when terminated [and expr] [then set …]`."""

    condition: Expr | None = None
    then_set: tuple[Assignment, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputLimit(Node):
    """`output [after …] [first|last|all|snapshot] (every … | at (…) | when … [then set …] | when terminated …)`.

    Exactly one of `every` (a Period), `every_events`, `at` (crontab fields), `when` is set, or none where only
    `after` or `terminated` stands. `after` is a Period, `after_events` a count.
    """

    mode: Literal["default", "first", "last", "all", "snapshot"] = "default"
    after: Expr | None = None
    after_events: Expr | None = None
    every: Expr | None = None
    every_events: Expr | None = None
    at: tuple[CronField, ...] = ()
    when: Expr | None = None
    then_set: tuple[Assignment, ...] = ()
    terminated: Terminated | None = None


@dataclass(frozen=True, slots=True)
class CronField(Node):
    """One field of an EPL crontab as text, e.g. `*`, `*/2`, `[1,15]`, `5 last`, `0:30`, or a string (time zone)."""

    text: str


@dataclass(frozen=True, slots=True)
class InsertInto(Node):
    """`insert [istream|rstream|irstream] into stream [(columns)]`."""

    stream: str
    selector: Literal["istream", "rstream", "irstream"] = "istream"
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Annotation(Node):
    """`@name('s0')`, `@Hint('…')`, `@Priority(1)`; `name` is lower case, `value` the literal argument if any."""

    name: str
    value: None | bool | int | float | str = None


@dataclass(frozen=True, slots=True)
class Statement(Node):
    """Base of all statements. `text` is the statement's own text; all spans are offsets into the whole input."""

    annotations: tuple[Annotation, ...] = field(default=(), kw_only=True)
    context: str | None = field(default=None, kw_only=True)
    text: str = field(default="", kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class Select(Statement):
    """A query. `lots` marks a stream query (net deltas, one aggregate row per activation).

    `windows` holds every eKuiper window found in GROUP BY; more than one is the binder's error, not the parser's.
    """

    items: tuple[SelectItem, ...]
    source: Source | None = None
    joins: tuple[Join, ...] = ()
    where: Expr | None = None
    group_by: tuple[Expr, ...] = ()
    windows: tuple[GroupWindow, ...] = ()
    having: Expr | None = None
    order_by: tuple[Ordering, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    output: OutputLimit | None = None
    distinct: bool = False
    selector: Literal["istream", "rstream", "irstream"] | None = None
    insert_into: InsertInto | None = None
    lots: bool = False


# --- other statements -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnType(Node):
    """A declared type: `bigint`, `float`, `string`, `boolean`, `datetime`, `bytea`, `array(element)`, `struct(fields)`.

    EPL's names (long, int, double, …) are kept as written, in lower case; `sql.types` knows both.
    """

    name: str
    element: ColumnType | None = None
    fields: tuple[ColumnDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnDefinition(Node):
    """`name type [DEFAULT v]`."""

    name: str
    type: ColumnType
    default: None | bool | int | float | str = None


@dataclass(frozen=True, slots=True)
class Option(Node):
    """`KEY="value"` of WITH; `key` is upper case."""

    key: str
    value: None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class CreateStream(Statement):
    """`CREATE STREAM|TABLE name (columns) WITH (options)`. EPL's `create schema Name as (…)` gives `kind='schema'`."""

    name: str
    columns: tuple[ColumnDefinition, ...] = ()
    options: tuple[Option, ...] = ()
    kind: Literal["stream", "table", "schema"] = "stream"


@dataclass(frozen=True, slots=True)
class CreateVariable(Statement):
    """`create [constant] variable type name [= expr]`."""

    name: str
    type_name: str
    value: Expr | None = None
    constant: bool = False


@dataclass(frozen=True, slots=True)
class OnSet(Statement):
    """`on Stream(filter) [as s] set a = e, …`."""

    source: StreamSource
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class UpdateStream(Statement):
    """`update istream Stream set a = e, … [where e]`: changes events before anybody sees them."""

    stream: str
    assignments: tuple[Assignment, ...]
    where: Expr | None = None

"""Statements in general, SELECT with its clauses and output limits, and expressions that hold a SELECT."""

from __future__ import annotations

from typing import Literal

from sql.errors import Span
from sql.syntax.cron_field import CronField
from sql.syntax.expressions import Expr, Ordering, Over, SelectItem
from sql.syntax.node import Node
from sql.syntax.sources import Join, Source


class GroupWindow(Node):
    """An eKuiper window in GROUP BY, e.g. `HOPPINGWINDOW(ss, 10, 5) FILTER(WHERE …)
    OVER(WHEN … PARTITION BY …)`.

    `name` is that of the catalog, e.g. tumbling. A time unit argument arrives as `Column('ss')`.
    """

    name: str
    args: tuple[Expr, ...]
    filter: Expr | None = None
    over: Over | None = None


GroupingKind = Literal["rollup", "cube", "grouping sets", "keys"]


class GroupingSets(Expr):
    """`rollup(…)`, `cube(…)` or `grouping sets(…)` in GROUP BY, or keys in one of them: `(a, b)`. Parts of
    `grouping sets` may be of any kind."""

    kind: GroupingKind
    parts: tuple[Expr, ...]


class Assignment(Node):
    """`name = expr` of `set`; with `index` an element of an array, `xs[1] = e`; with `owner` `w.name = e`."""

    name: str
    value: Expr
    index: Expr | None = None
    owner: str | None = None


class Terminated(Node):
    """`when terminated [and expr] [then set …]`."""

    condition: Expr | None = None
    then_set: tuple[Assignment, ...] = ()


class OutputLimit(Node):
    """`output [after …] [first|last|all|snapshot] (every … | at (…) | when … [then set
    …] | when terminated …)`.

    Exactly one of `every` (a Period), `every_events`, `at` (crontab fields), `when` is set, or none if there
    is only `after` or `terminated`. `after` is a Period, `after_events` a count.
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


class InsertInto(Node):
    """`insert [istream|rstream|irstream] into stream [(columns)]`."""

    stream: str
    selector: Literal["istream", "rstream", "irstream"] = "istream"
    columns: tuple[str, ...] = ()


class Annotation(Node):
    """`@name('s0')`, `@Hint('…')`, `@Priority(1)`, `@tag(name='unit', value='bar')`; `name` is lower case,
    `value` the literal argument if any."""

    name: str
    value: None | bool | int | float | str = None


class Statement(Node, kw_only=True):
    """Base of all statements. `text` is the statement's own text; all spans are offsets
    into the whole input."""

    beside = Node.beside | {"text", "context_span"}

    annotations: tuple[Annotation, ...] = ()
    context: str | None = None
    context_span: Span | None = None
    text: str = ""

    @property
    def in_context(self) -> Span:
        """The place of its context's name; of the whole statement where the name is given elsewhere."""
        return self.context_span or self.span


class Select(Statement):
    """A query. `lots` marks a stream query (net deltas, one aggregate row per activation).

    `windows` holds every eKuiper window found in GROUP BY; more than one is the binder's
    error, not the parser's.
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
    into_table: str | None = None
    """The table of `into table T select …`, whose columns are the aggregates of the statement."""

    @property
    def sources(self) -> list[Source]:
        """The sources of FROM."""
        first = [] if self.source is None else [self.source]
        return first + [join.source for join in self.joins]


class Subquery(Expr):
    """`(select …)`; `exists` for `exists (select …)`. `listed`: a method of lists is called on its rows."""

    select: Select
    exists: bool = False
    listed: bool = False


class Quantified(Expr):
    """`x op any|all (select …)`; `x in (select …)` is `x = any`, `x not in` is `x !=
    all`; `some` is `any`."""

    op: str
    operand: Expr
    quantifier: Literal["any", "all"]
    select: Select

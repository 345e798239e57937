"""Bound expressions: the syntax tree after names and types are known.

The binder makes them; code generation, the filter index, rewrites and the reference evaluator read them. A
bound expression names the values it reads, never the code that reads them: a `Read` names a source and a
column, a `Slot` a value that an operator keeps (an aggregate's value, a variable, the window's start).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from sql.aggregates.base import Aggregate
from sql.aggregates.inline import Inline
from sql.errors import NOWHERE, Span
from sql.functions.definition import Function
from sql.record import Record
from sql.types import Type


class Bound(Record, kw_only=True):
    """Base of all bound expressions."""

    type: Type = Type.ANY
    span: Span = NOWHERE

    def parts(self) -> tuple[Bound, ...]:
        """Direct operands."""
        return ()

    def walk(self) -> Iterator[Bound]:
        """This expression and all below it, depth first."""
        yield self
        for part in self.parts():
            yield from part.walk()

    def reads_events(self) -> bool:
        """True if it needs an event: it, or a part of it, is a `Read`."""
        return any(isinstance(part, Read) for part in self.walk())


class Const(Bound):
    """A constant value."""

    value: Any


class Read(Bound):
    """A column of the source at `source` in FROM; `column` None is the whole event."""

    source: int
    column: str | None


class Slot(Bound):
    """A value that an operator keeps, identified by `kind` and `key`.

    aggregate, analytic, prev, subquery   key: index into the plan's list of that kind
    arrived                               key: the name of a variable, as it was when the event arrived
    window                                key: 'start', 'end' or 'trigger'
    variable                              key: its name
    context                               key: 'id' of the partition, or the place of a property:
                                          (depth, index)
    hit, row_number                       key: index into the plan's list of that kind
    grouping                              key: its value in the rows of each grouping set
    builtin                               key: current_count … of expression windows
    event_time, meta, istream             the event's time; a metadata path; TRUE on insert rows
    """

    kind: str
    key: Any = None


class Op(Bound):
    """A built-in operation. `name` is an operator (`+`, `and`, `=`, …) or one of `not neg isnull in between
    like regexp case field index slice array cast`; `extra` holds arguments that are no expressions (a field
    name, an escape character)."""

    name: str
    args: tuple[Bound, ...]
    extra: Any = None

    def parts(self) -> tuple[Bound, ...]:
        return self.args


class Apply(Bound):
    """A call of a scalar function."""

    function: Function
    args: tuple[Bound, ...]

    def parts(self) -> tuple[Bound, ...]:
        return self.args


class TableRead(Bound):
    """`T[k1, k2].column`: a column of the table's row at a key, NULL without that row; the row if `column` is
    None.

    With `keys` None, `T.keys()`: the list of its keys.
    """

    table: str
    keys: tuple[Bound, ...] | None
    column: str | None = None

    def parts(self) -> tuple[Bound, ...]:
        return self.keys or ()


class Enumerate(Bound):
    """A method of a list with a lambda over each element (`sql.aggregates.list_methods`)."""

    base: Bound
    name: str
    body: Bound
    parameters: int = 1
    """1: the lambda takes an element; 2: its index as well, 3: and the number of elements."""

    def parts(self) -> tuple[Bound, ...]:
        return self.base, self.body


class LambdaRead(Bound):
    """A parameter of a lambda around it, or a property of it. `depth`: how many parameters follow it, of its
    own lambda and of those between."""

    property: str | None = None
    depth: int = 0


# --- values of operators ------------------------------------------------------------------------------------


class AggregateCall(Record):
    """One aggregate of a query. Equal calls share one accumulator."""

    definition: Aggregate
    args: tuple[Bound, ...]
    constants: tuple[Any, ...] = ()
    distinct: bool = False
    filter: Bound | None = None
    group_by: tuple[Bound, ...] | None = None
    shows: int | tuple[str, ...] | None = None
    """What an aggregate whose result is events shows of rows of several sources: the event of one of them,
    the match with these tags, or (None) the columns of all."""
    once_of: int | None = None
    """The source of a join whose events it takes, each once however many joined rows hold it; None where it
    takes every row."""
    span: Span = NOWHERE

    @property
    def inline(self) -> Inline | None:
        """The statements that keep it in a loop, if it can be inlined."""
        is_plain = not self.distinct and self.filter is None and self.group_by is None
        return self.definition.inline if is_plain and not self.constants and len(self.args) <= 1 else None

    @property
    def place(self) -> Span:
        """The place of its argument in the text, to which a value that it refuses belongs."""
        return self.args[0].span if self.args else self.span


def take_events_once(calls: Sequence[AggregateCall]) -> bool:
    """True if one of them takes the events of one source of a join, each once."""
    return any(call.once_of is not None for call in calls)


class AnalyticCall(Record):
    """One analytic function: `lag(x, 1) OVER (PARTITION BY k WHEN c)`."""

    name: str
    args: tuple[Bound, ...]
    constants: tuple[Any, ...] = ()
    partition_by: tuple[Bound, ...] = ()
    when: Bound | None = None
    span: Span = NOWHERE


class HitCall(Record):
    """`last_hit_count`, `last_hit_time` and their `agg` twins: the number of times, or the last time, that
    the clause was met before.

    `clause` is WHERE, HAVING or WHEN, with TRUE results counted, or SELECT, with every row counted.
    """

    name: str
    clause: str
    span: Span = NOWHERE

    @property
    def attribute(self) -> str:
        """The attribute of `sql.codegen.hits.Hits` that it reads."""
        return "count" if self.name.endswith("count") else "time_ms"


class PrevCall(Record):
    """`prev`, `prevtail`, `prevcount`, `prevwindow` (the window's order) or `prior` (arrival order)."""

    name: str
    source: int
    index: Bound
    value: Bound | None
    span: Span = NOWHERE


def conjuncts(condition: Bound | None) -> Iterator[Bound]:
    """The parts of a condition that must all hold."""
    if isinstance(condition, Op) and condition.name == "and":
        for part in condition.args:
            yield from conjuncts(part)
    elif condition is not None:
        yield condition


RANGES = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operators of ranges, each with the one that says the same with the sides exchanged."""

MIRRORED = {"=": "=", "is": "is", **RANGES}


def both_ways(part: Bound, operators: Container[str]) -> Iterator[tuple[str, Bound, Bound]]:
    """A comparison by one of these operators as it is written, and with its sides exchanged: `a < b`, then
    `b > a`. Nothing for a part of another form."""
    if isinstance(part, Op) and part.name in operators:
        left, right = part.args
        yield part.name, left, right
        yield MIRRORED[part.name], right, left


def all_of(parts: Iterable[Bound]) -> Bound | None:
    """The condition that all parts hold; None of none."""
    whole = None
    for part in parts:
        whole = part if whole is None else Op("and", (whole, part), type=Type.BOOLEAN, span=whole.span)
    return whole


def reads_clock(node: Bound) -> bool:
    """True if a function in an expression depends on the present instant, or on the rule it runs in."""
    return any(isinstance(part, Apply) and part.function.context for part in node.walk())


def reads_present(node: Bound) -> bool:
    """True if an expression depends on more than the event: on the present instant or on a variable."""
    return reads_clock(node) or not slot_kinds(node).isdisjoint(("variable", "arrived"))


def slot_kinds(*nodes: Bound | None) -> set[str]:
    """The kinds of operators whose values expressions read."""
    return {part.kind for node in nodes if node is not None for part in node.walk() if isinstance(part, Slot)}


def reads_subquery(nodes: Iterable[Bound]) -> bool:
    """True if expressions read values of subqueries, for which the text needs the
    joined row as an event `x`."""
    return "subquery" in slot_kinds(*nodes)


def sources_read(expression: Bound) -> frozenset[int]:
    """The sources whose columns an expression reads."""
    return frozenset(part.source for part in expression.walk() if isinstance(part, Read))


def columns_read(expressions: Iterable[Bound], source: int) -> tuple[str, ...]:
    """The columns of a source that expressions read one by one, in the order of the first reads."""
    reads = (part for expression in expressions for part in expression.walk() if isinstance(part, Read))
    return tuple(dict.fromkeys(part.column for part in reads if part.source == source and part.column))


def event_read(bound: Bound, keys: tuple[Bound, ...], own: int | None = None) -> Bound | None:
    """The first part of an expression that reads the event itself, outside aggregates and group keys. `own`:
    the number of the statement's own sources, where sources of a statement around it stand behind them."""
    if bound in keys:
        return None
    if isinstance(bound, Read) and (own is None or bound.source < own):
        return bound
    if isinstance(bound, Slot) and bound.kind in ("prev", "analytic"):
        return bound
    return next(filter(None, (event_read(part, keys, own) for part in bound.parts())), None)

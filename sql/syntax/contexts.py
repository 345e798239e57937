"""`create context`: the kinds of contexts and the points at which their partitions start and end."""

from __future__ import annotations

from sql.syntax.cron_field import CronField
from sql.syntax.expressions import Call, Expr
from sql.syntax.node import Node
from sql.syntax.patterns import PatternClause
from sql.syntax.select import Statement


class Point(Node):
    """Base of the conditions that start or end a partition."""


class NowPoint(Point):
    """`@now`."""


class EventPoint(Point):
    """`Type(filter) [as name]`."""

    stream: str
    filter: Expr | None = None
    name: str | None = None


class CrontabPoint(Point):
    """`(minute, hour, …), (…)`: the earliest of them."""

    crontabs: tuple[tuple[CronField, ...], ...]


class PeriodPoint(Point):
    """`after 5 sec`."""

    period: Expr


class PatternPoint(Point):
    """`pattern [ … ] [@inclusive] [as name]`."""

    pattern: PatternClause
    inclusive: bool = False
    name: str | None = None


class ContextKind(Node):
    """Base of the kinds of contexts."""


class KeyedType(Node):
    """`key and key from Type(filter) [as name]` of `partition by`."""

    keys: tuple[Expr, ...]
    stream: str
    filter: Expr | None = None
    name: str | None = None


class Keyed(ContextKind):
    """`partition by … [initiated by …] [terminated by …]`."""

    types: tuple[KeyedType, ...]
    initiated: tuple[EventPoint, ...] = ()
    terminated: Point | None = None


class HashedType(Node):
    """`func(argument, …) from Type(filter)` of `coalesce by`."""

    call: Call
    stream: str
    filter: Expr | None = None


class Hashed(ContextKind):
    """`coalesce by … granularity n [preallocate]`."""

    types: tuple[HashedType, ...]
    granularity: int
    preallocate: bool = False


class Category(Node):
    """`group by condition as label`."""

    condition: Expr
    label: str


class Categories(ContextKind):
    """`group by … as label, … from Type(filter)`."""

    categories: tuple[Category, ...]
    stream: str
    filter: Expr | None = None


class NonOverlapping(ContextKind):
    """`start … [end …]`."""

    start: Point
    end: Point | None = None


class Overlapping(ContextKind):
    """`initiated by [distinct(…)] [@now and] … [terminated by …]`."""

    initiated: Point
    terminated: Point | None = None
    distinct: tuple[Expr, ...] | None = None
    now: bool = False


class ContextPart(Node):
    """One level of a context; `name` is that of a nested context."""

    name: str
    kind: ContextKind


class CreateContext(Statement):
    """`create context name …`. A context that is not nested has one part, of its own name."""

    name: str
    parts: tuple[ContextPart, ...]
    nested: bool = False

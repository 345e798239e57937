"""Patterns of events: the contents of `pattern [ … ]` and `match_recognize ( … )`."""

from __future__ import annotations

from typing import Literal

from sql.syntax.cron_field import CronField
from sql.syntax.expressions import Expr
from sql.syntax.node import Node


class PatternNode(Node):
    """Base of all expressions of a pattern."""


# --- atoms --------------------------------------------------------------------------------------------------


class FilterAtom(PatternNode):
    """`[tag=] Stream [(filters)] [@consume[(level)]]`; `consume` is 0 without the
    annotation, 1 without a level."""

    stream: str
    tag: str | None = None
    filter: Expr | None = None
    consume: int = 0


class IntervalAtom(PatternNode):
    """`timer:interval(period)`."""

    period: Expr


class CrontabAtom(PatternNode):
    """`timer:at(minute, hour, …)`."""

    fields: tuple[CronField, ...]


class ScheduleAtom(PatternNode):
    """`timer:schedule(iso: …)` or `timer:schedule(date: …, period: …, repetitions: …)`."""

    iso: Expr | None = None
    date: Expr | None = None
    period: Expr | None = None
    repetitions: Expr | None = None


# --- operators ----------------------------------------------------------------------------------------------


class FollowedBy(PatternNode):
    """`a -> b -[2]> c`; `maxima` has one entry per arrow, None for a plain one."""

    steps: tuple[PatternNode, ...]
    maxima: tuple[Expr | None, ...]


class AllOf(PatternNode):
    """`a and b`."""

    parts: tuple[PatternNode, ...]


class AnyOf(PatternNode):
    """`a or b`."""

    parts: tuple[PatternNode, ...]


class Absent(PatternNode):
    """`not a`."""

    operand: PatternNode


class Every(PatternNode):
    """`every a`; with `keys` it is `every-distinct(keys [, period]) a`."""

    operand: PatternNode
    keys: tuple[Expr, ...] = ()
    period: Expr | None = None


class Repeat(PatternNode):
    """`[low:high] a until b`. `[n] a` has `exact`, and its n as `low` and `high`; `a until
    b` alone has no bound."""

    operand: PatternNode
    low: Expr | None = None
    high: Expr | None = None
    until: PatternNode | None = None
    exact: bool = False


class Within(PatternNode):
    """`a where timer:within(period)`; with `maximum` it is `timer:withinmax(period, maximum)`."""

    operand: PatternNode
    period: Expr
    maximum: Expr | None = None


class While(PatternNode):
    """`a while (condition)`."""

    operand: PatternNode
    condition: Expr


class PatternClause(Node):
    """`pattern [@SuppressOverlappingMatches] [@DiscardPartialsOnMatch] [ root ]`."""

    root: PatternNode
    suppress: bool = False
    discard: bool = False


# --- match_recognize ----------------------------------------------------------------------------------------


class RowPattern(Node):
    """Base of the expressions of a row pattern."""


class RowVariable(RowPattern):
    """A variable: one row."""

    name: str


class RowSequence(RowPattern):
    """`A B C`: one after the other."""

    parts: tuple[RowPattern, ...]


class RowChoice(RowPattern):
    """`A | B`."""

    parts: tuple[RowPattern, ...]


class RowPermutation(RowPattern):
    """`match_recognize_permute(A, B, …)`: all of them, in any order."""

    parts: tuple[RowPattern, ...]


class RowTimes(RowPattern):
    """`A*`, `A+?`, `(A B){2,3}`: `low` to `high` times (None: without end), as often as possible unless
    `reluctant`."""

    operand: RowPattern
    low: int
    high: int | None
    reluctant: bool = False


class Measure(Node):
    """`expression as name`."""

    value: Expr
    name: str


class Definition(Node):
    """`variable as condition` of DEFINE."""

    variable: str
    condition: Expr


class Recognize(Node):
    """`match_recognize ( … )` behind a stream and its windows."""

    pattern: RowPattern
    measures: tuple[Measure, ...]
    partition_by: tuple[Expr, ...] = ()
    all_matches: bool = False
    skip: Literal["past last row", "to next row", "to current row"] = "past last row"
    interval: Expr | None = None
    or_terminated: bool = False
    definitions: tuple[Definition, ...] = ()

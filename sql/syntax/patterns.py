"""Patterns of events: what may stand in `pattern [ … ]`, and `match_recognize ( … )`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sql.syntax.expressions import Expr
from sql.syntax.node import Node

if TYPE_CHECKING:
    from sql.syntax.select import CronField


@dataclass(frozen=True, slots=True)
class PatternNode(Node):
    """Base of all expressions of a pattern."""


# --- atoms --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FilterAtom(PatternNode):
    """`[tag=] Stream [(filters)] [@consume[(level)]]`; `consume` is 0 without the
    annotation, 1 without a level."""

    stream: str
    tag: str | None = None
    filter: Expr | None = None
    consume: int = 0


@dataclass(frozen=True, slots=True)
class IntervalAtom(PatternNode):
    """`timer:interval(period)`."""

    period: Expr


@dataclass(frozen=True, slots=True)
class CrontabAtom(PatternNode):
    """`timer:at(minute, hour, …)`."""

    fields: tuple[CronField, ...]


@dataclass(frozen=True, slots=True)
class ScheduleAtom(PatternNode):
    """`timer:schedule(iso: …)` or `timer:schedule(date: …, period: …, repetitions: …)`."""

    iso: Expr | None = None
    date: Expr | None = None
    period: Expr | None = None
    repetitions: Expr | None = None


# --- operators ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FollowedBy(PatternNode):
    """`a -> b -[2]> c`; `maxima` has one entry per arrow, None for a plain one."""

    steps: tuple[PatternNode, ...]
    maxima: tuple[Expr | None, ...]


@dataclass(frozen=True, slots=True)
class AllOf(PatternNode):
    """`a and b`."""

    parts: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(PatternNode):
    """`a or b`."""

    parts: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class Absent(PatternNode):
    """`not a`."""

    operand: PatternNode


@dataclass(frozen=True, slots=True)
class Every(PatternNode):
    """`every a`; with `keys` it is `every-distinct(keys [, period]) a`."""

    operand: PatternNode
    keys: tuple[Expr, ...] = ()
    period: Expr | None = None


@dataclass(frozen=True, slots=True)
class Repeat(PatternNode):
    """`[low:high] a until b`. `[n] a` has `exact`, and its n as `low` and `high`; `a until
    b` alone has no bound."""

    operand: PatternNode
    low: Expr | None = None
    high: Expr | None = None
    until: PatternNode | None = None
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Within(PatternNode):
    """`a where timer:within(period)`; with `maximum` it is `timer:withinmax(period, maximum)`."""

    operand: PatternNode
    period: Expr
    maximum: Expr | None = None


@dataclass(frozen=True, slots=True)
class While(PatternNode):
    """`a while (condition)`."""

    operand: PatternNode
    condition: Expr


@dataclass(frozen=True, slots=True)
class PatternClause(Node):
    """`pattern [@SuppressOverlappingMatches] [@DiscardPartialsOnMatch] [ root ]`."""

    root: PatternNode
    suppress: bool = False
    discard: bool = False


# --- match_recognize ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowPattern(Node):
    """Base of the expressions of a row pattern."""


@dataclass(frozen=True, slots=True)
class RowVariable(RowPattern):
    """A variable: one row."""

    name: str


@dataclass(frozen=True, slots=True)
class RowSequence(RowPattern):
    """`A B C`: one after the other."""

    parts: tuple[RowPattern, ...]


@dataclass(frozen=True, slots=True)
class RowChoice(RowPattern):
    """`A | B`."""

    parts: tuple[RowPattern, ...]


@dataclass(frozen=True, slots=True)
class RowPermutation(RowPattern):
    """`match_recognize_permute(A, B, …)`: all of them, in any order."""

    parts: tuple[RowPattern, ...]


@dataclass(frozen=True, slots=True)
class RowTimes(RowPattern):
    """`A*`, `A+?`, `(A B){2,3}`: `low` to `high` times (None: without end), as often as possible unless
    `reluctant`."""

    operand: RowPattern
    low: int
    high: int | None
    reluctant: bool = False


@dataclass(frozen=True, slots=True)
class Measure(Node):
    """`expression as name`."""

    value: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Definition(Node):
    """`variable as condition` of DEFINE."""

    variable: str
    condition: Expr


@dataclass(frozen=True, slots=True)
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

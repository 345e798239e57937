"""Expressions of the three languages."""

from __future__ import annotations

from sql.errors import NOWHERE, Span
from sql.syntax.node import Node


class Expr(Node):
    """Base of all expressions."""


class Constant(Expr):
    """A constant: None, bool, int, float or str."""

    value: None | bool | int | float | str


class Column(Expr):
    """A name, perhaps qualified. `a.b` is Column('b', 'a'); the binder decides whether `a` is
    a stream or an object."""

    name: str
    table: str | None = None


class SelectItem(Node):
    """One item of SELECT. `text` is the item's source text, the column name of an unnamed expression."""

    expr: Expr
    alias: str | None = None
    invisible: bool = False
    text: str = ""


class Star(Expr):
    """`*`, `s.*`, `* EXCEPT(a, b)`, `* REPLACE(e AS c)`."""

    table: str | None = None
    excluded: tuple[str, ...] = ()
    replaced: tuple[SelectItem, ...] = ()


class Unary(Expr):
    """`op` is 'not', '-' or '+'."""

    op: str
    operand: Expr


class Binary(Expr):
    """`op` is one of `+ - * / % & | ^ || = != < <= > >= and or is` (`is`: NULL-safe
    equality; `!=` for `<>` too)."""

    op: str
    left: Expr
    right: Expr


class IsNull(Expr):
    """`x IS [NOT] NULL`."""

    operand: Expr
    negated: bool = False


class Between(Expr):
    """`x [NOT] BETWEEN low AND high`, both ends included; EPL's `x in (low:high]` marks the included ones."""

    beside = Expr.beside | {"in_range"}

    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False
    low_open: bool = False
    high_open: bool = False
    in_range: bool = False
    """True for `in [low:high]`, whose bounds are in ascending order; those of EPL's BETWEEN may be in
    either."""


class In(Expr):
    """`x [NOT] IN (a, b)`; with `array` set instead of `items`: `x IN arr`."""

    operand: Expr
    items: tuple[Expr, ...] = ()
    array: Expr | None = None
    negated: bool = False


class Like(Expr):
    """`x [NOT] LIKE pattern [ESCAPE c]`; with `regexp` the pattern is a regular expression."""

    operand: Expr
    pattern: Expr
    escape: str | None = None
    negated: bool = False
    regexp: bool = False


class When(Node):
    """One WHEN … THEN … branch."""

    condition: Expr
    value: Expr


class Case(Expr):
    """Simple (`operand` set) or searched CASE."""

    whens: tuple[When, ...]
    operand: Expr | None = None
    default: Expr | None = None


class Cast(Expr):
    """`CAST(x AS type)`. eKuiper's `cast(x, "type")` arrives as a Call."""

    operand: Expr
    type_name: str


class Ordering(Expr):
    """`expr [ASC|DESC] [NULLS FIRST|LAST]`: ORDER BY items, and arguments of sort, rank and sorted."""

    operand: Expr
    descending: bool = False
    nulls_first: bool | None = None


class Over(Node):
    """`OVER([PARTITION BY …] [WHEN …] [ORDER BY …])`, clauses in any order."""

    partition_by: tuple[Expr, ...] = ()
    when: Expr | None = None
    order_by: tuple[Ordering, ...] = ()


class Call(Expr):
    """A function call. `count(*)` has one `Star` argument. `distinct` is `f(distinct x)`.

    `filter` is EPL's `filter:expr` parameter or SQL's `f(x) FILTER(WHERE …)`; `group_by` EPL's `group_by:(…)`
    (None if absent, () for `group_by:()`).
    """

    beside = Expr.beside | {"name_span"}

    name: str
    args: tuple[Expr, ...] = ()
    distinct: bool = False
    filter: Expr | None = None
    group_by: tuple[Expr, ...] | None = None
    over: Over | None = None
    name_span: Span = NOWHERE


class ArrayLiteral(Expr):
    """`{a, b}`, EPL: an array of the elements, NULLs among them."""

    items: tuple[Expr, ...]


class Field(Expr):
    """`base->name`, or `base.name` where base is not a plain name."""

    base: Expr
    name: str


class Index(Expr):
    """`base[i]`; `more` are the further keys of a table's row, `T[k1, k2]`."""

    base: Expr
    index: Expr
    more: tuple[Expr, ...] = ()


class Slice(Expr):
    """`base[low:high]`, either bound optional, the end excluded."""

    base: Expr
    low: Expr | None = None
    high: Expr | None = None


class Lambda(Expr):
    """`x => expr`."""

    parameters: tuple[str, ...]
    body: Expr


class Method(Expr):
    """`base.name(args)` where base is an expression: EPL's enumeration methods."""

    base: Expr
    name: str
    args: tuple[Expr, ...] = ()


class PeriodPart(Node):
    """One `amount unit` of a period; `unit` is year, month, week, day, hour, minute, second, millisecond,
    microsecond."""

    amount: Expr
    unit: str


class PeriodLiteral(Expr):
    """A time period in words: `2 minutes 5 seconds`, `1 month`."""

    parts: tuple[PeriodPart, ...]
